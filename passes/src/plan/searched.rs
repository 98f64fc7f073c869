//! The order of work for a division that exists: the times of its stages and the room of its ranks, for the search.

use super::partition::{Partition, StageChoice, StageCosts};
use super::profile::UnitProfile;
use crate::schedule::{Boundary, Costs, FoundBy, Schedule, SearchOptions, StageCost, Unequal, search};
use std::collections::BTreeMap;
use trainc_ir::plan::Plan;

/// Larger problems are left to the fixed schedules: orders without a pattern make long plans.
const MOST_PIECES: u64 = 512;

/// Effort of the search, about 0.2 s.
const STEPS: u64 = 2_000_000;

/// An order of work that promises to be faster than any fixed schedule on this division; `plan` is a plan of it that fits.
pub(crate) fn searched(
    costs: &StageCosts<'_>,
    partition: &Partition,
    plan: &Plan,
    micro_batches: u64,
) -> Option<Schedule> {
    let n_stages = partition.stages.len();
    if n_stages as u64 * micro_batches > MOST_PIECES || partition.n_ranks() < 2 {
        return None;
    }
    let stages: Vec<StageCost> = partition.stages.iter().map(|stage| cost(costs, stage)).collect();
    let boundary = |stage: &StageChoice| {
        let (forward_ps, backward_ps) = stage.transfer_ps;
        Boundary { forward_ps, backward_ps }
    };
    let boundaries = partition.stages.iter().take(n_stages - 1).map(boundary).collect();
    // What a rank keeps in the plan, and what its GPU has left.
    let mut kept: BTreeMap<usize, u64> = BTreeMap::new();
    for ((stage, cost), &rank) in partition.stages.iter().zip(&stages).zip(&partition.rank_of) {
        let sum = kept.entry(rank).or_insert(0);
        *sum = sum.saturating_add(stage.in_flight.saturating_mul(cost.kept_bytes));
    }
    let room = |(rank, expected): (usize, &trainc_ir::plan::RankPrediction)| {
        let free = expected.capacity_bytes.saturating_sub(expected.device_bytes);
        kept.get(&rank).copied().unwrap_or(0).saturating_add(free)
    };
    let problem = Unequal {
        rank_of: partition.rank_of.clone(),
        micro_batches,
        costs: Costs { stages, boundaries, traffic: None },
        room_bytes: plan.prediction.ranks.iter().enumerate().map(room).collect(),
        split: true,
    };
    let found = search(&problem, &SearchOptions { steps: STEPS }).ok()?;
    let is_new = !matches!(found.by, FoundBy::Fixed(_));
    (is_new && found.schedule.check().is_ok()).then_some(found.schedule)
}

fn cost(costs: &StageCosts<'_>, stage: &StageChoice) -> StageCost {
    let kept = stage.units.clone().map(|unit| {
        let profile: &UnitProfile = &costs.units()[unit];
        let saved = if stage.recomputed.contains(&unit) { 0 } else { profile.saved_bytes };
        profile.input_bytes.saturating_add(profile.data_bytes).saturating_add(saved)
    });
    let kept_bytes = kept.fold(0u64, u64::saturating_add);
    StageCost {
        kept_bytes,
        // What the weights' gradients read may be all of it.
        kept_for_weights_bytes: kept_bytes,
        ..costs.work(stage)
    }
}
