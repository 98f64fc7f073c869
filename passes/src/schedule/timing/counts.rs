//! What follows from a rank's order alone: what it keeps, sends, gathers and reduces.

use super::{Costs, RankTiming, StageTiming};
use crate::schedule::{Ratio, Schedule, Work, WorkKind};

/// What comes out for a rank that is done at `end_ps`.
pub(super) fn count(schedule: &Schedule, costs: &Costs, rank: usize, end_ps: u64, makespan_ps: u64) -> RankTiming {
    let works = &schedule.ranks[rank];
    let busy_ps = works.iter().fold(0u64, |sum, work| sum.saturating_add(time(costs, work)));
    let (in_flight, peak_bytes) = peak(works, costs);
    let local: Vec<usize> = schedule.stages_of(rank).collect();
    let elsewhere =
        |stage: Option<usize>| stage.is_some_and(|to| schedule.rank_of.get(to).is_some_and(|&to| to != rank));
    let sends = |neighbour: fn(usize) -> Option<usize>| {
        local.iter().filter(|&&stage| elsewhere(neighbour(stage))).count() as u64 * schedule.micro_batches
    };
    RankTiming {
        busy_ps,
        idle_ps: makespan_ps.saturating_sub(busy_ps),
        end_ps,
        peak_micro_batches: Ratio::new(u128::from(in_flight), local.len() as u128),
        peak_bytes,
        switches: works.chunk_by(|one, next| one.stage == next.stage).count() as u64,
        activations_sent: sends(|stage| Some(stage + 1)),
        gradients_sent: sends(|stage| stage.checked_sub(1)),
        stages: stages(works, costs, schedule.n_stages(), local.len()),
    }
}

/// The time of a piece of work, with what is computed again for it.
fn time(costs: &Costs, work: &Work) -> u64 {
    let cost = &costs.stages[work.stage];
    match work.kind {
        WorkKind::Forward => cost.forward_ps,
        WorkKind::Backward => cost.backward_ps.saturating_add(cost.recompute_ps),
        WorkKind::InputGrad => cost.input_grad_ps.saturating_add(cost.recompute_ps),
        WorkKind::WeightGrad => cost.weight_grad_ps,
    }
}

/// The most bytes that are kept at once.
pub(in crate::schedule) fn peak_bytes(works: &[Work], costs: &Costs) -> u64 {
    peak(works, costs).1
}

/// The most pairs of a stage and a micro-batch, and the most bytes, that are kept at once.
fn peak(works: &[Work], costs: &Costs) -> (u64, u64) {
    let (mut pairs, mut most_pairs, mut bytes, mut most_bytes) = (0u64, 0u64, 0u64, 0u64);
    for work in works {
        let cost = &costs.stages[work.stage];
        let (more, less) = cost.changes(work.kind);
        bytes = bytes.saturating_add(more).saturating_sub(less);
        match work.kind {
            WorkKind::Forward => pairs += 1,
            WorkKind::Backward | WorkKind::WeightGrad => pairs -= 1,
            WorkKind::InputGrad => {}
        }
        most_pairs = most_pairs.max(pairs);
        most_bytes = most_bytes.max(bytes);
    }
    (most_pairs, most_bytes)
}

/// How often each stage's works are done, and begun anew.
struct Turns {
    each: Vec<u64>,
    turns: Vec<u64>,
    last: Option<usize>,
}

impl Turns {
    fn new(n_stages: usize) -> Self {
        Self { each: vec![0; n_stages], turns: vec![0; n_stages], last: None }
    }

    fn add(&mut self, stage: usize) {
        self.each[stage] += 1;
        if self.last != Some(stage) {
            self.last = Some(stage);
            self.turns[stage] += 1;
        }
    }
}

/// The stages of a rank in the order in which they finish.
fn stages(works: &[Work], costs: &Costs, n_stages: usize, n_local: usize) -> Vec<StageTiming> {
    // Weight gradients need no weights.
    let [mut uses, mut forwards, mut backwards, mut sums] = [(); 4].map(|()| Turns::new(n_stages));
    for work in works {
        match work.kind {
            WorkKind::Forward => forwards.add(work.stage),
            WorkKind::Backward | WorkKind::InputGrad => backwards.add(work.stage),
            WorkKind::WeightGrad => {}
        }
        if work.kind != WorkKind::WeightGrad {
            uses.add(work.stage);
        }
        if work.kind.adds_gradients() {
            sums.add(work.stage);
        }
    }
    let mut finished: Vec<StageTiming> = Vec::with_capacity(n_local);
    let mut slack_ps = 0u64;
    for work in works.iter().rev() {
        let stage = work.stage;
        if work.kind.adds_gradients() && finished.iter().all(|later| later.stage != stage) {
            finished.push(StageTiming {
                stage,
                gathers_each_use: uses.each[stage],
                gathers_one: uses.turns[stage],
                gathers_two: forwards.turns[stage] + backwards.turns[stage],
                reduces: sums.turns[stage],
                slack_ps,
            });
        }
        if finished.len() == n_local {
            break;
        }
        slack_ps = slack_ps.saturating_add(time(costs, work));
    }
    finished.reverse();
    finished
}
