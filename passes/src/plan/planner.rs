//! From training graph and cluster to plan: partition, build, and partition again with less room where the laid-out
//! bytes exceed the estimate.

use super::build::{PlacedStage, build};
use super::choice::{ScheduleChoice, default_loops};
use super::crossing::StageUnits;
use super::facts::Facts;
use super::measure::profiles;
use super::partition::{
    Infeasible, Lost, Partition, PartitionOptions, Reason, RecomputePolicy, RunnerUp, StageChoice, StageCosts, Stages,
    is_productive, partition,
};
use super::profile::UnitProfile;
use super::searched::searched;
use super::simulate::{RecomputeTime, simulate};
use crate::schedule::{Generator, Schedule, ScheduleKind, Shape};
use trainc_ir::plan::{Header, Plan, RecomputePrediction};
use trainc_ir::{Cluster, NodeGroup, TrainingGraph};

/// What the user decides about a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// Micro-batches of a step, at least 1.
    pub micro_batches: u64,
    /// Number of ranks of the pipeline.
    pub stages: Stages,
    /// How much is recomputed.
    pub recompute: RecomputePolicy,
    /// The order of work.
    pub schedule: ScheduleChoice,
    /// Stages of each rank, at least 1; without it what the schedule has.
    pub loops: Option<usize>,
}

impl PlanOptions {
    /// 1F1B with one stage per rank.
    pub fn new(micro_batches: u64, stages: Stages, recompute: RecomputePolicy) -> Self {
        Self { micro_batches, stages, recompute, schedule: ScheduleChoice::default(), loops: None }
    }
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
    /// The order of work.
    pub schedule: Schedule,
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
    plan_with(training, cluster, options, header, &mut |_| {})
}

/// As [`plan`]; `observer` is told the name of every step that is done.
///
/// # Errors
/// As [`plan`].
pub fn plan_with(
    training: &TrainingGraph,
    cluster: &Cluster,
    options: &PlanOptions,
    header: &Header,
    observer: &mut dyn FnMut(&'static str),
) -> Result<Planned, Infeasible> {
    let facts = Facts::new(training);
    observer("facts");
    let units = profiles(&facts);
    observer("measure");
    let planner = Planner { facts: &facts, units: &units, cluster, options, header };
    match options.schedule {
        ScheduleChoice::Kind(kind) => planner.plan(kind, options.loops.unwrap_or(default_loops(kind)), observer),
        ScheduleChoice::Auto => planner.fastest(observer),
    }
}

struct Planner<'p> {
    facts: &'p Facts<'p>,
    units: &'p [UnitProfile],
    cluster: &'p Cluster,
    options: &'p PlanOptions,
    header: &'p Header,
}

impl Planner<'_> {
    /// The plan under one schedule.
    fn plan(
        &self,
        kind: ScheduleKind,
        loops: usize,
        observer: &mut dyn FnMut(&'static str),
    ) -> Result<Planned, Infeasible> {
        let Self { facts, units, cluster, options, header } = *self;
        let mut request = self.request(kind, loops);
        let mut header = header.clone();
        if (kind, loops) != (ScheduleKind::OneFOneB, 1) {
            header.options.insert("schedule".to_owned(), kind.to_string());
            header.options.insert("loops".to_owned(), loops.to_string());
        }
        let mut round = 0;
        loop {
            let partition = divide(units, cluster, &request)?;
            observer("partition");
            let shape = Shape { ranks: partition.n_ranks(), loops, micro_batches: options.micro_batches };
            let schedule = kind
                .generate(&shape)
                .map_err(|error| Infeasible { reason: Reason::NoSchedule(error), changes: Vec::new() })?;
            let mut plan = build(facts, units, cluster, &placed(&partition), &schedule, header.clone());
            observer("build");
            let ranks = &plan.prediction.ranks;
            let excess: Vec<u64> = ranks.iter().map(|r| r.device_bytes.saturating_sub(r.capacity_bytes)).collect();
            if excess.iter().all(|&bytes| bytes == 0) {
                predict(&mut plan, cluster, &partition);
                observer("simulate");
                return Ok(Planned { plan, partition, units: units.to_vec(), schedule });
            }
            // Room is asked for twice as fast in every round, so that the rounds end: with a plan, or with no division left.
            request.reductions.resize(excess.len().max(request.reductions.len()), 0);
            for (reduction, bytes) in request.reductions.iter_mut().zip(excess) {
                *reduction = reduction.saturating_add(bytes.saturating_mul(1 << round));
            }
            round = (round + 1).min(MAX_SHIFT);
        }
    }

    /// The plan of the schedule with the least simulated step; of equal ones the first.
    fn fastest(&self, observer: &mut dyn FnMut(&'static str)) -> Result<Planned, Infeasible> {
        let loops = self.options.loops.unwrap_or(2).max(2);
        let mut tried = vec![(ScheduleKind::OneFOneB, 1), (ScheduleKind::GPipe, 1), (ScheduleKind::ZbH1, 1)];
        if self.options.loops != Some(1) {
            tried.push((ScheduleKind::Interleaved, loops));
            tried.push((ScheduleKind::BreadthFirst { contiguous: None }, loops));
        }
        if self.options.loops.is_none_or(|loops| loops == 2) {
            tried.push((ScheduleKind::ZbV, 2));
        }
        let mut best: Option<Planned> = None;
        let mut why = None;
        for (kind, loops) in tried {
            match self.plan(kind, loops, observer) {
                Ok(found) => {
                    let slower =
                        best.as_ref().is_some_and(|b| b.plan.prediction.step_ps <= found.plan.prediction.step_ps);
                    if !slower {
                        best = Some(found);
                    }
                }
                Err(error) => why = why.or(Some(error)),
            }
        }
        let best = best.ok_or_else(|| why.expect("a schedule without a plan says why"))?;
        let faster = self.searched(&best).filter(|f| f.plan.prediction.step_ps < best.plan.prediction.step_ps);
        observer("search");
        Ok(faster.unwrap_or(best))
    }

    /// A plan of the same division with an order of work of its own, if one is found that fits.
    fn searched(&self, best: &Planned) -> Option<Planned> {
        let Self { facts, units, cluster, options, header } = *self;
        let partition = &best.partition;
        let loops = partition.stages.len() / partition.n_ranks().max(1);
        let request = self.request(ScheduleKind::OneFOneB, loops);
        let costs = StageCosts::new(units, cluster, &request);
        let schedule = searched(&costs, partition, &best.plan, options.micro_batches)?;
        let mut header = header.clone();
        header.options.insert("schedule".to_owned(), "searched".to_owned());
        header.options.insert("loops".to_owned(), loops.to_string());
        let mut plan = build(facts, units, cluster, &placed(partition), &schedule, header);
        if plan.prediction.ranks.iter().any(|rank| rank.device_bytes > rank.capacity_bytes) {
            return None;
        }
        predict(&mut plan, cluster, partition);
        Some(Planned { plan, partition: partition.clone(), units: units.to_vec(), schedule })
    }

    fn request(&self, schedule: ScheduleKind, loops: usize) -> PartitionOptions {
        PartitionOptions {
            micro_batches: self.options.micro_batches,
            stages: self.options.stages,
            recompute: self.options.recompute,
            reductions: Vec::new(),
            n_library_streams: LIBRARY_STREAMS,
            cuda_only: true,
            schedule,
            loops,
        }
    }
}

/// The division into stages. Where their number is free and one GPU holds the whole model, more are taken only while each
/// does at least four fifths of what one alone would do: a small model gains little time from many GPUs, and wastes them.
fn divide(units: &[UnitProfile], cluster: &Cluster, request: &PartitionOptions) -> Result<Partition, Infeasible> {
    let best = partition(units, cluster, request)?;
    if request.loops > 1 {
        return Ok(best);
    }
    if matches!(request.stages, Stages::Forced(_)) || best.stages.len() == 1 || !fits_alone(units, cluster, request) {
        return Ok(best);
    }
    let up_to = |max: u32| {
        let stages = Stages::Best { max };
        partition(units, cluster, &PartitionOptions { stages, ..request.clone() })
    };
    let alone = up_to(1)?;
    let productive = |p: &Partition| is_productive(alone.step_ps.into(), p.stages.len(), p.step_ps);
    // No division is faster than the best, so that none of more stages than this is productive.
    let most = 5 * u128::from(alone.step_ps) / (4 * u128::from(best.step_ps)).max(1);
    let most = u32::try_from(most).unwrap_or(u32::MAX);
    let mut rejected = Vec::new();
    let mut found = best;
    while !productive(&found) {
        let n_stages = found.stages.len();
        rejected.push(RunnerUp { n_stages, gpus: found.gpus(), lost: Lost::Unproductive { step_ps: found.step_ps } });
        found = up_to((n_stages as u32 - 1).min(most).max(1))?;
    }
    rejected.append(&mut found.runner_ups);
    Ok(Partition { runner_ups: rejected, ..found })
}

/// Whether a GPU of some group holds all units.
fn fits_alone(units: &[UnitProfile], cluster: &Cluster, request: &PartitionOptions) -> bool {
    let costs = StageCosts::new(units, cluster, request);
    let limit =
        |group: &NodeGroup| group.arena_budget(request.n_library_streams, &[]).saturating_sub(request.reduction(0));
    let mut usable = cluster.groups.iter().filter(|(_, group)| group.gpu.cuda || !request.cuda_only);
    usable.any(|(id, group)| costs.frontier(0..units.len(), id, 1).iter().any(|point| point.bytes <= limit(group)))
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
