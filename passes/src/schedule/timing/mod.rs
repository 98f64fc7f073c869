//! When everything of a schedule happens, for given times of its stages: exact, in integers.
//!
//! A rank does its work in order, one piece at a time. Work begins when the rank is free and what it needs has arrived. A
//! recomputation needs nothing of other ranks: it runs right before the backward and may run while the rank waits for the
//! gradient. Transfers run beside the work; each boundary between stages carries one transfer at a time in each direction,
//! and stages on one rank hand over at once. With sharded data parallelism each rank has one stream for gathering weights
//! and reducing gradients, beside its work, in the order in which they can begin.

mod clock;
mod counts;
mod traffic;

#[cfg(test)]
mod tests;

pub use traffic::{Reduce, Resident, Traffic};

pub(super) use counts::peak_bytes;

use super::{Ratio, Schedule, ScheduleError, Work, WorkKind};

/// What one stage takes, for one micro-batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageCost {
    /// Time of the forward.
    pub forward_ps: u64,
    /// Time of the whole backward.
    pub backward_ps: u64,
    /// Time of the input gradients alone.
    pub input_grad_ps: u64,
    /// Time of the weight gradients alone.
    pub weight_grad_ps: u64,
    /// Time of what is computed again before the backward, or before the input gradients.
    pub recompute_ps: u64,
    /// Bytes kept from the forward to the end of the backward, or of the input gradients.
    pub kept_bytes: u64,
    /// Bytes kept from the end of the input gradients to the end of the weight gradients.
    pub kept_for_weights_bytes: u64,
}

impl StageCost {
    /// Bytes that a piece of work adds to what its rank keeps, and bytes that it lets go.
    pub(super) fn changes(&self, kind: WorkKind) -> (u64, u64) {
        match kind {
            WorkKind::Forward => (self.kept_bytes, 0),
            WorkKind::Backward => (0, self.kept_bytes),
            WorkKind::InputGrad => (self.kept_for_weights_bytes, self.kept_bytes),
            WorkKind::WeightGrad => (0, self.kept_for_weights_bytes),
        }
    }
}

/// What it takes to hand over one micro-batch between a stage and the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Boundary {
    /// Time of the activations.
    pub forward_ps: u64,
    /// Time of their gradients.
    pub backward_ps: u64,
}

/// What a schedule's parts take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Each stage.
    pub stages: Vec<StageCost>,
    /// Between each stage and the next: one less than stages.
    pub boundaries: Vec<Boundary>,
    /// Data parallelism with sharded weights and gradients.
    pub traffic: Option<Traffic>,
}

impl Costs {
    /// Equal stages: forward, input and weight gradients take 1, the backward 2; activations have 1 byte, also for the weight
    /// gradients; transfers take no time.
    pub fn uniform(n_stages: usize) -> Self {
        let stage = StageCost {
            forward_ps: 1,
            backward_ps: 2,
            input_grad_ps: 1,
            weight_grad_ps: 1,
            recompute_ps: 0,
            kept_bytes: 1,
            kept_for_weights_bytes: 1,
        };
        let boundaries = vec![Boundary::default(); n_stages.saturating_sub(1)];
        Self { stages: vec![stage; n_stages], boundaries, traffic: None }
    }

    /// Between each stage and the next; nothing where both are on one rank.
    pub(super) fn hand_over(&self, rank_of: &[usize]) -> Vec<Boundary> {
        let boundaries = rank_of.windows(2).zip(&self.boundaries);
        boundaries.map(|(ranks, &cost)| if ranks[0] == ranks[1] { Boundary::default() } else { cost }).collect()
    }

    /// There are numbers for all stages and boundaries.
    pub(super) fn check(&self, n_stages: usize) -> Result<(), ScheduleError> {
        let traffic = self.traffic.iter().flat_map(|traffic| {
            [("gathers", traffic.gather_ps.len(), n_stages), ("reduces", traffic.reduce_ps.len(), n_stages)]
        });
        let own = [
            ("stages", self.stages.len(), n_stages),
            ("boundaries", self.boundaries.len(), n_stages.saturating_sub(1)),
        ];
        match own.into_iter().chain(traffic).find(|(_, number, expected)| number != expected) {
            Some((what, number, expected)) => Err(ScheduleError::Costs { what, number, expected }),
            None => Ok(()),
        }
    }
}

/// What comes out of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Time of a step, with the last reduction of gradients.
    pub makespan_ps: u64,
    /// Each rank.
    pub ranks: Vec<RankTiming>,
}

impl Timing {
    /// Idle time of all ranks over their busy time.
    pub fn bubble(&self) -> Ratio {
        let sum = |of: fn(&RankTiming) -> u64| self.ranks.iter().map(|rank| u128::from(of(rank))).sum();
        Ratio::new(sum(|rank| rank.idle_ps), sum(|rank| rank.busy_ps))
    }

    /// The most micro-batches that a rank keeps.
    pub fn peak_micro_batches(&self) -> Ratio {
        self.ranks.iter().map(|rank| rank.peak_micro_batches).max().unwrap_or(Ratio::new(0, 1))
    }

    /// The most bytes that a rank keeps.
    pub fn peak_bytes(&self) -> u64 {
        self.ranks.iter().map(|rank| rank.peak_bytes).max().unwrap_or(0)
    }
}

/// What comes out for one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankTiming {
    /// Time in which it computes.
    pub busy_ps: u64,
    /// What is left of the step.
    pub idle_ps: u64,
    /// When its last work is done.
    pub end_ps: u64,
    /// The most micro-batches whose activations it keeps at once; one of its stages counts as its share of them. They are kept
    /// from the forward to the end of the weight gradients.
    pub peak_micro_batches: Ratio,
    /// The most bytes of activations that it keeps at once.
    pub peak_bytes: u64,
    /// How often it turns to a stage, the first included.
    pub switches: u64,
    /// Activations sent to other ranks in a step.
    pub activations_sent: u64,
    /// Gradients of activations sent to other ranks in a step.
    pub gradients_sent: u64,
    /// Its stages in the order in which they finish.
    pub stages: Vec<StageTiming>,
}

/// What comes out for one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageTiming {
    /// The stage.
    pub stage: usize,
    /// Gathers of its weights if they are gathered for each use.
    pub gathers_each_use: u64,
    /// Gathers if one stage is resident.
    pub gathers_one: u64,
    /// Gathers if one stage is resident for forwards and one for backwards.
    pub gathers_two: u64,
    /// Reductions of its gradients if they are reduced when the rank turns to another stage's gradients.
    pub reduces: u64,
    /// Time in which the rank still computes after the stage's last gradient: what its last reduction can hide behind.
    pub slack_ps: u64,
}

/// When everything of the schedule happens.
///
/// # Errors
/// If the schedule cannot be executed, or numbers are missing. Gradients may come in any order.
pub fn simulate(schedule: &Schedule, costs: &Costs) -> Result<Timing, ScheduleError> {
    schedule.check_complete()?;
    costs.check(schedule.n_stages())?;
    let Some(ends) = clock::run(schedule, costs, |_, _| {}) else {
        return Err(schedule.run().expect_err("where the clock stops, ranks wait for each other for ever"));
    };
    let makespan_ps = ends.iter().map(|end| end.compute.max(end.traffic)).max().unwrap_or(0);
    let rank = |(rank, end): (usize, &clock::End)| counts::count(schedule, costs, rank, end.compute, makespan_ps);
    Ok(Timing { makespan_ps, ranks: ends.iter().enumerate().map(rank).collect() })
}

/// Tells `note` when each piece of work of a schedule that was checked starts and ends.
pub(crate) fn spans(schedule: &Schedule, costs: &Costs, note: impl FnMut(Work, (u64, u64))) {
    clock::run(schedule, costs, note).expect("no ranks of a schedule that was checked wait for each other for ever");
}

/// The makespan of an order with complete and possible costs, if it can be executed as far as its ranks wait for each other.
pub(super) fn makespan(schedule: &Schedule, costs: &Costs) -> Option<u64> {
    value(schedule, costs).map(|(makespan, _)| makespan)
}

/// The makespan, and the sum of the times at which the ranks are done.
pub(super) fn value(schedule: &Schedule, costs: &Costs) -> Option<(u64, u64)> {
    let ends = clock::run(schedule, costs, |_, _| {})?;
    let ends = ends.iter().map(|end| end.compute.max(end.traffic));
    Some((ends.clone().max().unwrap_or(0), ends.fold(0, u64::saturating_add)))
}
