//! An order while it is built: which work can come next on each rank, and when.

use super::Unequal;
use crate::schedule::timing::{Boundary, StageCost};
use crate::schedule::{Schedule, Work, WorkKind};

/// The kinds of work in the order in which they are looked at.
const KINDS: [WorkKind; 4] = [WorkKind::Backward, WorkKind::InputGrad, WorkKind::Forward, WorkKind::WeightGrad];

/// How many micro-batches a stage is done with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Done {
    /// Forwards.
    pub(super) forwards: u64,
    /// Whole backwards and input gradients.
    pub(super) backwards: u64,
    /// Whole backwards and weight gradients.
    pub(super) weights: u64,
}

/// A work that can come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub(super) work: Work,
    /// When it occupies its rank, if it begins as late as it can without being done later.
    pub(super) start: u64,
    pub(super) end: u64,
}

/// What a work changed.
pub(super) struct Undo {
    rank: usize,
    free: u64,
    bytes: u64,
    channel: u64,
    waits: Vec<(WorkKind, usize)>,
}

/// An order while it is built.
#[derive(Clone)]
pub(super) struct Flow<'a> {
    pub(super) problem: &'a Unequal,
    /// Stages of each rank.
    pub(super) stages_of: Vec<Vec<usize>>,
    /// Between each stage and the next; nothing where both are on one rank.
    pub(super) hand_over: Vec<Boundary>,
    /// Of each stage.
    pub(super) done: Vec<Done>,
    /// When each rank is free.
    pub(super) free: Vec<u64>,
    /// Bytes that each rank keeps.
    pub(super) bytes: Vec<u64>,
    /// Bytes that each rank may keep.
    pub(super) room: Vec<u64>,
    /// Kinds and stages that are not to come next on their rank.
    pub(super) waits: Vec<Vec<(WorkKind, usize)>>,
    /// The orders so far.
    pub(super) ranks: Vec<Vec<Work>>,
    /// When the channels of each boundary are free.
    channels: Vec<Boundary>,
    /// When inputs and gradients have arrived, of those that were sent.
    input: Vec<u64>,
    gradient: Vec<u64>,
}

impl<'a> Flow<'a> {
    /// Nothing is done.
    pub(super) fn new(problem: &'a Unequal) -> Self {
        let (n_stages, n_ranks) = (problem.rank_of.len(), problem.room_bytes.len());
        let on = |rank| (0..n_stages).filter(|&stage| problem.rank_of[stage] == rank).collect();
        let n_pairs = n_stages * problem.micro_batches as usize;
        Self {
            problem,
            stages_of: (0..n_ranks).map(on).collect(),
            hand_over: problem.costs.hand_over(&problem.rank_of),
            done: vec![Done::default(); n_stages],
            free: vec![0; n_ranks],
            bytes: vec![0; n_ranks],
            room: problem.room_bytes.clone(),
            waits: vec![Vec::new(); n_ranks],
            ranks: vec![Vec::new(); n_ranks],
            channels: vec![Boundary::default(); n_stages - 1],
            input: vec![0; n_pairs],
            gradient: vec![0; n_pairs],
        }
    }

    /// All that can come next on a rank.
    pub(super) fn next(&self, rank: usize) -> impl Iterator<Item = Next> + '_ {
        let works = self.stages_of[rank].iter().flat_map(|&stage| KINDS.map(|kind| (kind, stage)));
        works
            .filter(move |pair| !self.waits[rank].contains(pair))
            .filter_map(move |(kind, stage)| self.can(kind, stage))
    }

    /// The work of this kind that comes next on a stage, if what it needs was sent and the rank has room.
    pub(super) fn can(&self, kind: WorkKind, stage: usize) -> Option<Next> {
        let (done, micro_batches) = (self.done[stage], self.problem.micro_batches);
        let (cost, rank) = (self.cost(stage), self.problem.rank_of[stage]);
        let sent_back = || stage + 1 == self.done.len() || self.done[stage + 1].backwards > done.backwards;
        let allowed = match kind {
            WorkKind::Forward => {
                done.forwards < micro_batches && (stage == 0 || self.done[stage - 1].forwards > done.forwards)
            }
            WorkKind::Backward => {
                self.may_be_whole(stage)
                    && done.weights == done.backwards
                    && done.backwards < done.forwards
                    && sent_back()
            }
            WorkKind::InputGrad => self.problem.split && done.backwards < done.forwards && sent_back(),
            WorkKind::WeightGrad => done.weights < done.backwards,
        };
        let (more, less) = cost.changes(kind);
        let bytes = (self.bytes[rank] - less.min(self.bytes[rank])).saturating_add(more);
        if !allowed || (more > less && bytes > self.room[rank]) {
            return None;
        }
        let (micro_batch, arrived, before, time) = match kind {
            WorkKind::Forward => (done.forwards, self.input[self.index(stage, done.forwards)], 0, cost.forward_ps),
            WorkKind::Backward | WorkKind::InputGrad => {
                let whole = kind == WorkKind::Backward;
                let arrived = self.gradient[self.index(stage, done.backwards)];
                let time = if whole { cost.backward_ps } else { cost.input_grad_ps };
                (done.backwards, arrived, cost.recompute_ps, time)
            }
            WorkKind::WeightGrad => (done.weights, 0, 0, cost.weight_grad_ps),
        };
        let start = self.free[rank].max(arrived.saturating_sub(before));
        let end = start.saturating_add(before).saturating_add(time);
        Some(Next { work: Work { kind, stage, micro_batch }, start, end })
    }

    /// Whether a stage's backwards may be left whole: where splitting costs time or memory, or is not allowed.
    pub(super) fn may_be_whole(&self, stage: usize) -> bool {
        let cost = self.cost(stage);
        let halves = cost.input_grad_ps.saturating_add(cost.weight_grad_ps);
        !self.problem.split || cost.backward_ps < halves || cost.kept_for_weights_bytes > cost.kept_bytes
    }

    /// Whether bytes of the rank grow with the work.
    pub(super) fn grows(&self, work: Work) -> bool {
        let (more, less) = self.cost(work.stage).changes(work.kind);
        more > less
    }

    /// Everything is done.
    pub(super) fn is_done(&self) -> bool {
        self.done.iter().all(|done| done.weights == self.problem.micro_batches)
    }

    /// The work comes next.
    pub(super) fn push(&mut self, next: Next) -> Undo {
        let Next { work, start: _, end } = next;
        let Work { kind, stage, micro_batch } = work;
        let rank = self.problem.rank_of[stage];
        let mut undo = Undo {
            rank,
            free: self.free[rank],
            bytes: self.bytes[rank],
            channel: 0,
            waits: std::mem::take(&mut self.waits[rank]),
        };
        self.free[rank] = end;
        let (more, less) = self.cost(stage).changes(kind);
        self.bytes[rank] = (self.bytes[rank] - less).saturating_add(more);
        let done = &mut self.done[stage];
        match kind {
            WorkKind::Forward => done.forwards += 1,
            WorkKind::Backward => {
                done.backwards += 1;
                done.weights += 1;
            }
            WorkKind::InputGrad => done.backwards += 1,
            WorkKind::WeightGrad => done.weights += 1,
        }
        match kind {
            WorkKind::Forward if stage + 1 < self.done.len() => {
                let channel = &mut self.channels[stage].forward_ps;
                undo.channel = *channel;
                *channel = end.max(*channel).saturating_add(self.hand_over[stage].forward_ps);
                let to = (stage + 1) * self.problem.micro_batches as usize + micro_batch as usize;
                self.input[to] = *channel;
            }
            WorkKind::Backward | WorkKind::InputGrad if stage > 0 => {
                let channel = &mut self.channels[stage - 1].backward_ps;
                undo.channel = *channel;
                *channel = end.max(*channel).saturating_add(self.hand_over[stage - 1].backward_ps);
                let to = (stage - 1) * self.problem.micro_batches as usize + micro_batch as usize;
                self.gradient[to] = *channel;
            }
            WorkKind::Forward | WorkKind::Backward | WorkKind::InputGrad | WorkKind::WeightGrad => {}
        }
        self.ranks[rank].push(work);
        undo
    }

    /// Takes back the work that came last.
    pub(super) fn pop(&mut self, undo: Undo) {
        let Undo { rank, free, bytes, channel, waits } = undo;
        let Work { kind, stage, micro_batch: _ } = self.ranks[rank].pop().expect("a work was pushed");
        self.free[rank] = free;
        self.bytes[rank] = bytes;
        self.waits[rank] = waits;
        let done = &mut self.done[stage];
        match kind {
            WorkKind::Forward => done.forwards -= 1,
            WorkKind::Backward => {
                done.backwards -= 1;
                done.weights -= 1;
            }
            WorkKind::InputGrad => done.backwards -= 1,
            WorkKind::WeightGrad => done.weights -= 1,
        }
        match kind {
            WorkKind::Forward if stage + 1 < self.done.len() => self.channels[stage].forward_ps = channel,
            WorkKind::Backward | WorkKind::InputGrad if stage > 0 => self.channels[stage - 1].backward_ps = channel,
            WorkKind::Forward | WorkKind::Backward | WorkKind::InputGrad | WorkKind::WeightGrad => {}
        }
    }

    /// When the next input of a stage arrives, if it was sent.
    pub(super) fn next_input(&self, stage: usize) -> Option<u64> {
        let next = self.done[stage].forwards;
        let sent = stage == 0 || self.done[stage - 1].forwards > next;
        (sent && next < self.problem.micro_batches).then(|| self.input[self.index(stage, next)])
    }

    /// When the next gradient of a stage's output arrives, if it was sent.
    pub(super) fn next_gradient(&self, stage: usize) -> Option<u64> {
        let next = self.done[stage].backwards;
        let sent = stage + 1 == self.done.len() || self.done[stage + 1].backwards > next;
        (sent && next < self.problem.micro_batches).then(|| self.gradient[self.index(stage, next)])
    }

    /// All times on which the rest depends.
    pub(super) fn times(&self) -> Vec<u64> {
        let mut times = self.free.clone();
        for (stage, channel) in self.channels.iter().enumerate() {
            times.extend([channel.forward_ps, channel.backward_ps]);
            let inputs = self.done[stage + 1].forwards..self.done[stage].forwards;
            times.extend(inputs.map(|micro_batch| self.input[self.index(stage + 1, micro_batch)]));
            let gradients = self.done[stage].backwards..self.done[stage + 1].backwards;
            times.extend(gradients.map(|micro_batch| self.gradient[self.index(stage, micro_batch)]));
        }
        times
    }

    /// The order.
    pub(super) fn schedule(&self) -> Schedule {
        Schedule {
            micro_batches: self.problem.micro_batches,
            rank_of: self.problem.rank_of.clone(),
            ranks: self.ranks.clone(),
        }
    }

    pub(super) fn cost(&self, stage: usize) -> &'a StageCost {
        &self.problem.costs.stages[stage]
    }

    fn index(&self, stage: usize, micro_batch: u64) -> usize {
        stage * self.problem.micro_batches as usize + micro_batch as usize
    }
}
