//! How values flow under a schedule: how many micro-batches are held at a time, when values reach other ranks, on which
//! communicator, and how many slots buffers need so that the step comes to its end.
//!
//! The argument for the slots: let every piece of work take some time, and start when its rank and what it depends on are
//! done. A value goes to another rank when it is made and the work before its reader, in the order of stages, is done, and
//! no earlier than what goes before it on the same communicator. If a slot is free by then on both sides, that is a legal
//! execution; any legal execution shows that what waits for what has no cycle, so that every execution ends.

use super::crossing::Transfer;
use super::segments::Key;
use super::stage::{Act, PortKey, RankDraft, Task};
use crate::schedule::{Costs, Schedule, Work, WorkKind, spans};
use std::collections::{BTreeMap, BTreeSet};
use trainc_ir::ValueId;
use trainc_ir::plan::BufferKind;

/// Turns that are taken at most where the bytes do not ask for more: each costs room in the plan.
const MOST_TURNS: u64 = 64;

/// Times of a schedule, in which a forward takes 1.
pub(crate) struct Flow {
    micro_batches: u64,
    /// By value and direction.
    boundaries: BTreeMap<(ValueId, bool), BTreeSet<Boundary>>,
    times: Times,
    in_flight: Vec<u64>,
    ports: BTreeMap<Boundary, PortKey>,
    arrivals: BTreeMap<Boundary, Vec<u64>>,
}

/// The stages between which values go, and whether they are gradients.
type Boundary = (usize, usize, bool);

/// Start and end.
type Span = (u64, u64);

/// By stage and micro-batch.
struct Times {
    forward: Vec<Vec<Span>>,
    /// Of the whole backward or its first part.
    backward: Vec<Vec<Span>>,
    /// Of the whole backward or its last part.
    weight: Vec<Vec<Span>>,
}

/// What decides when a slot is in use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Task(WorkKind, usize),
    Transfer(Boundary),
}

impl Flow {
    /// How values flow. The schedule must have been checked.
    pub(crate) fn new(schedule: &Schedule, transfers: &[Transfer]) -> Self {
        let mut flow = Self {
            micro_batches: schedule.micro_batches,
            boundaries: BTreeMap::new(),
            times: Times::new(schedule),
            in_flight: in_flight(schedule),
            ports: BTreeMap::new(),
            arrivals: BTreeMap::new(),
        };
        for transfer in transfers {
            flow.boundaries.entry((transfer.value, transfer.backward)).or_default().insert(boundary(transfer));
        }
        flow.choose_ports(schedule, transfers);
        flow
    }

    /// The communicator on which a value goes.
    pub(crate) fn port(&self, transfer: Transfer) -> PortKey {
        self.ports[&boundary(&transfer)].clone()
    }

    /// In how many turns the micro-batches of a stage take slots and frames: as many as are in flight, and two at least, so
    /// that what is received or sent for one can overlap the computation of the next.
    pub(crate) fn turns(&self, stage: usize) -> u64 {
        self.micro_batches.min(self.in_flight[stage].clamp(2, MOST_TURNS))
    }

    /// One communicator for all values of a kind from one rank to another, where both sides come to them in one order; else
    /// one for each pair of stages, since within such a pair micro-batches ascend.
    fn choose_ports(&mut self, schedule: &Schedule, transfers: &[Transfer]) {
        let mut pairs: BTreeMap<(usize, usize, bool), BTreeSet<(usize, usize)>> = BTreeMap::new();
        for transfer in transfers {
            let ranks = (schedule.rank_of[transfer.from], schedule.rank_of[transfer.to], transfer.backward);
            pairs.entry(ranks).or_default().insert((transfer.from, transfer.to));
        }
        for ((from, to, backward), stages) in pairs {
            let sent = sequence(&schedule.ranks[from], &stages, backward, |(from, _)| from);
            let received = sequence(&schedule.ranks[to], &stages, backward, |(_, to)| to);
            let common = sent == received;
            let key = |stages| PortKey::Pair { from, to, backward, stages };
            for &(from, to) in &stages {
                let port = if common { key(None) } else { key(Some((from, to))) };
                self.ports.insert((from, to, backward), port);
            }
            if common {
                self.arrive(&received, backward);
            } else {
                for pair in &stages {
                    let own: Vec<_> = received.iter().filter(|(stages, _)| stages == pair).copied().collect();
                    self.arrive(&own, backward);
                }
            }
        }
    }

    /// Notes when the values of one communicator arrive.
    fn arrive(&mut self, sequence: &[((usize, usize), u64)], backward: bool) {
        let times = if backward { &self.times.backward } else { &self.times.forward };
        let mut last = 0;
        for &((from, to), micro_batch) in sequence {
            let at = micro_batch as usize;
            let before = if backward { to + 1 } else { to - 1 };
            last = last.max(times[from][at].1).max(times[before][at].1);
            let arrivals = self.arrivals.entry((from, to, backward)).or_default();
            arrivals.resize(self.micro_batches as usize, 0);
            arrivals[at] = last;
        }
    }

    /// Gives the buffers of micro-batches their slots.
    pub(crate) fn assign_slots(&self, draft: &mut RankDraft) {
        let mut uses: BTreeMap<&Key, BTreeSet<Use>> = BTreeMap::new();
        for task in &draft.tasks {
            for instruction in &task.drafts {
                for (key, _) in &instruction.args {
                    uses.entry(key).or_default().extend(self.uses(task, &instruction.act, key));
                }
            }
        }
        let mut spans: BTreeMap<BTreeSet<Use>, u64> = BTreeMap::new();
        for (key, buffer) in &mut draft.buffers {
            let Some(of) = uses.get(key) else { continue };
            let m = self.micro_batches;
            let turns = of.iter().map(|of| match of {
                Use::Task(_, stage) => self.turns(*stage),
                Use::Transfer(_) => 1,
            });
            let turns = turns.max().unwrap_or(1);
            let mut span = || *spans.entry(of.clone()).or_insert_with(|| self.span(of));
            buffer.ahead = match buffer.kind {
                BufferKind::Parameter | BufferKind::State | BufferKind::Gradient | BufferKind::Scalar => 1,
                // One more, so that the next can be loaded.
                BufferKind::Data => m.min(span() + 1),
                BufferKind::Saved | BufferKind::Boundary => m.min(span().max(turns)),
            };
            buffer.slots = buffer.ahead;
        }
    }

    fn uses(&self, task: &Task, act: &Act, key: &Key) -> Vec<Use> {
        let (value, backward) = match key {
            Key::Forward(value) => (*value, false),
            Key::Gradient(value) => (*value, true),
            Key::Recomputed(_) | Key::Named(_) => return vec![Use::Task(task.kind, task.stage)],
        };
        let all = self.boundaries.get(&(value, backward)).into_iter().flatten().copied();
        match act {
            Act::Recv => all.filter(|(_, to, _)| *to == task.stage).map(Use::Transfer).collect(),
            Act::Send => all.filter(|(from, _, _)| *from == task.stage).map(Use::Transfer).collect(),
            Act::Call { .. } | Act::Load(_) | Act::AllReduce | Act::Broadcast { .. } => {
                vec![Use::Task(task.kind, task.stage)]
            }
        }
    }

    /// The least number of slots such that micro-batches of one slot, taken modulo that number, never use it at once.
    fn span(&self, uses: &BTreeSet<Use>) -> u64 {
        let mut changes: Vec<(u64, bool, u64)> = Vec::new();
        for micro_batch in 0..self.micro_batches {
            let at = micro_batch as usize;
            let spans = uses.iter().map(|of| match of {
                Use::Task(WorkKind::Forward, stage) => self.times.forward[*stage][at],
                Use::Task(WorkKind::Backward | WorkKind::InputGrad, stage) => self.times.backward[*stage][at],
                Use::Task(WorkKind::WeightGrad, stage) => self.times.weight[*stage][at],
                Use::Transfer(boundary) => (self.arrivals[boundary][at], self.arrivals[boundary][at]),
            });
            let used = spans.reduce(|(start, end), (from, to)| (start.min(from), end.max(to))).unwrap_or_default();
            changes.push((used.0, true, micro_batch));
            changes.push((used.1, false, micro_batch));
        }
        // What ends at a time makes room for what starts then.
        changes.sort_unstable();
        let mut held = BTreeSet::new();
        let mut most = 1;
        for (_, starts, micro_batch) in changes {
            if starts {
                held.insert(micro_batch);
            } else {
                held.remove(&micro_batch);
            }
            if let (Some(first), Some(last)) = (held.first(), held.last()) {
                most = most.max(last - first + 1);
            }
        }
        most
    }
}

/// How many micro-batches each stage holds at a time, from the forward to the last of the backward.
pub(crate) fn in_flight(schedule: &Schedule) -> Vec<u64> {
    let mut held = vec![0u64; schedule.n_stages()];
    let mut most = held.clone();
    for work in schedule.ranks.iter().flatten() {
        let held = &mut held[work.stage];
        match work.kind {
            WorkKind::Forward => *held += 1,
            WorkKind::Backward | WorkKind::WeightGrad => *held = held.saturating_sub(1),
            WorkKind::InputGrad => {}
        }
        most[work.stage] = most[work.stage].max(*held);
    }
    most
}

fn boundary(transfer: &Transfer) -> Boundary {
    (transfer.from, transfer.to, transfer.backward)
}

/// The pairs of stages and micro-batches in the order in which a rank comes to their transfers; `end` is its own stage.
fn sequence(
    works: &[Work],
    stages: &BTreeSet<(usize, usize)>,
    backward: bool,
    end: impl Fn((usize, usize)) -> usize,
) -> Vec<((usize, usize), u64)> {
    let mut found = Vec::new();
    for work in works {
        let transfers = match work.kind {
            WorkKind::Forward => !backward,
            WorkKind::Backward | WorkKind::InputGrad => backward,
            WorkKind::WeightGrad => false,
        };
        if transfers {
            let own = stages.iter().filter(|&&pair| end(pair) == work.stage);
            found.extend(own.map(|&pair| (pair, work.micro_batch)));
        }
    }
    found
}

impl Times {
    /// Runs the schedule: whole backwards take 2, everything else 1.
    fn new(schedule: &Schedule) -> Self {
        let n_stages = schedule.n_stages();
        let table = || vec![vec![Span::default(); schedule.micro_batches as usize]; n_stages];
        let mut times = Self { forward: table(), backward: table(), weight: table() };
        spans(schedule, &Costs::uniform(n_stages), |work, span| times.note(work, span));
        times
    }

    fn note(&mut self, work: Work, span: Span) {
        let (stage, at) = (work.stage, work.micro_batch as usize);
        match work.kind {
            WorkKind::Forward => self.forward[stage][at] = span,
            WorkKind::Backward => (self.backward[stage][at], self.weight[stage][at]) = (span, span),
            WorkKind::InputGrad => self.backward[stage][at] = span,
            WorkKind::WeightGrad => self.weight[stage][at] = span,
        }
    }
}
