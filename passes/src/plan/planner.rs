//! From training graph and cluster to plan: partition, build, and partition again with less room where the laid-out
//! bytes exceed the estimate.

use super::build::{PlacedStage, build};
use super::crossing::StageUnits;
use super::facts::Facts;
use super::measure::profiles;
use super::partition::{Infeasible, Partition, PartitionOptions, RecomputePolicy, StageChoice, Stages, partition};
use super::profile::UnitProfile;
use super::simulate::{RecomputeTime, simulate};
use trainc_ir::plan::{Header, Plan, RecomputePrediction};
use trainc_ir::{Cluster, TrainingGraph};

/// What the user decides about a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// Micro-batches of a step, at least 1.
    pub micro_batches: u64,
    /// Number of stages.
    pub stages: Stages,
    /// How much is recomputed.
    pub recompute: RecomputePolicy,
}

/// A plan and how it came about.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The division that won, and those that lost.
    pub partition: Partition,
    /// What the units of the model do and hold.
    pub units: Vec<UnitProfile>,
}

/// The room asked for grows by at most two to this power per round.
const MAX_SHIFT: u32 = 30;

/// Streams of a rank that call libraries: the compute stream.
const LIBRARY_STREAMS: u32 = 1;

/// Plans the training of a graph on a cluster. The training graph must be verified.
///
/// # Errors
/// No division fits; with the changes that would make one fit.
pub fn plan(
    training: &TrainingGraph,
    cluster: &Cluster,
    options: &PlanOptions,
    header: &Header,
) -> Result<Planned, Infeasible> {
    let facts = Facts::new(training);
    let units = profiles(&facts);
    let mut request = PartitionOptions {
        micro_batches: options.micro_batches,
        stages: options.stages,
        recompute: options.recompute,
        reductions: Vec::new(),
        n_library_streams: LIBRARY_STREAMS,
        cuda_only: true,
    };
    let mut round = 0;
    loop {
        let partition = partition(&units, cluster, &request)?;
        let mut plan = build(&facts, &units, cluster, &placed(&partition), options.micro_batches, header.clone());
        let ranks = &plan.prediction.ranks;
        let excess: Vec<u64> = ranks.iter().map(|r| r.device_bytes.saturating_sub(r.capacity_bytes)).collect();
        if excess.iter().all(|&bytes| bytes == 0) {
            predict(&mut plan, cluster, &partition);
            return Ok(Planned { plan, partition, units });
        }
        // Room is asked for twice as fast in every round, so that the rounds end: with a plan, or with no division left.
        request.reductions.resize(excess.len().max(request.reductions.len()), 0);
        for (reduction, bytes) in request.reductions.iter_mut().zip(excess) {
            *reduction = reduction.saturating_add(bytes.saturating_mul(1 << round));
        }
        round = (round + 1).min(MAX_SHIFT);
    }
}

/// The stages of a division with what they recompute.
fn placed(partition: &Partition) -> Vec<PlacedStage> {
    let place = |stage: &StageChoice| {
        let recompute = stage.units.clone().map(|unit| stage.recomputed.contains(&unit)).collect();
        PlacedStage { stage: StageUnits { units: stage.units.clone(), recompute }, group: stage.group }
    };
    partition.stages.iter().map(place).collect()
}

/// Fills in the times: those of the replayed plan.
fn predict(plan: &mut Plan, cluster: &Cluster, partition: &Partition) {
    let timeline = match simulate(plan, cluster) {
        Ok(timeline) => timeline,
        Err(_) => {
            // The verifier says what is wrong with such a plan; the division's own estimate stands in here.
            plan.prediction.step_ps = partition.step_ps;
            return;
        }
    };
    let prediction = &mut plan.prediction;
    prediction.step_ps = timeline.step_ps;
    for (rank, times) in prediction.ranks.iter_mut().zip(timeline.ranks.values()) {
        rank.busy_ps = times.busy_ps;
    }
    prediction.idle_ps = timeline.ranks.values().map(|times| times.idle_ps).sum();
    let RecomputeTime { total_ps, hidden_ps, exposed_ps } = timeline.recompute;
    prediction.recompute = RecomputePrediction { total_ps, hidden_ps, exposed_ps };
}
