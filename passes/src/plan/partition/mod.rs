//! Divides the units of a model into pipeline stages and gives each stage a GPU: the fastest division that fits.
//!
//! Every stage has one GPU (several stages per GPU: `looped.rs`). The GPUs of a group are used in the order of stages, node after node, so two neighbouring
//! stages of a group are on one node unless the first of them fills it. Neighbours, and holders of shared parameters,
//! must be connected. What is minimized is the predicted step time of 1F1B (`objective.rs` has the formula; other schedules
//! count with the micro-batches that they hold), exactly unless more than [`WIDTH`] points are left after a stage, which the result says.

mod infeasible;
mod limits;
mod looped;
mod objective;
mod search;
mod stage_cost;

#[cfg(test)]
mod tests;

pub use infeasible::{Change, Infeasible, Reason};
pub use stage_cost::{RecomputePolicy, StageCosts, StagePoint};

use crate::schedule::ScheduleKind;
use objective::{StepTime, transfer_times};
use search::{Found, Placed, Space, search};
use std::collections::BTreeSet;
use std::ops::Range;
use trainc_ir::id::Id;
use trainc_ir::{Cluster, NodeGroupId};

use super::profile::UnitProfile;

/// Points of the search that are kept after each stage.
pub const WIDTH: usize = 20_000;

/// Points that are kept in the first, quick search, which gives the second its ceiling.
const QUICK_WIDTH: usize = 200;

/// The most stages that are tried where the number is free.
pub const MAX_STAGES: u32 = 64;

/// The runner-ups that are told of.
const MAX_RUNNER_UPS: usize = 8;

/// How many stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stages {
    /// This many.
    Forced(u32),
    /// As many as give the least step time, at most `max` and [`MAX_STAGES`]; of equal times the fewest.
    Best {
        /// The most.
        max: u32,
    },
}

/// What to partition for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionOptions {
    /// Micro-batches of a step.
    pub micro_batches: u64,
    /// Number of ranks, each with `loops` stages.
    pub stages: Stages,
    /// How much is recomputed.
    pub recompute: RecomputePolicy,
    /// Bytes to leave free on each rank, where the laid-out bytes exceeded the estimate; missing entries are 0.
    pub reductions: Vec<u64>,
    /// Streams of a rank that call libraries with a workspace.
    pub n_library_streams: u32,
    /// Whether only GPUs are used that programs can be emitted for.
    pub cuda_only: bool,
    /// The order of work.
    pub schedule: ScheduleKind,
    /// Stages of each rank.
    pub loops: usize,
}

impl PartitionOptions {
    /// How many micro-batches a stage holds at a time where every rank has one stage.
    pub fn in_flight(&self, n_stages: usize, stage: usize) -> u64 {
        let m = self.micro_batches;
        let behind = n_stages.saturating_sub(stage) as u64;
        match self.schedule {
            ScheduleKind::OneFOneB | ScheduleKind::Interleaved => m.min(behind),
            ScheduleKind::BreadthFirst { contiguous: Some(contiguous) } if contiguous < m => m.min(behind),
            ScheduleKind::GPipe | ScheduleKind::BreadthFirst { contiguous: _ } => m,
            // Until the weight gradients.
            ScheduleKind::ZbH1 | ScheduleKind::ZbV => m.min(n_stages as u64),
        }
    }

    /// Bytes to leave free on a rank.
    pub fn reduction(&self, stage: usize) -> u64 {
        self.reductions.get(stage).copied().unwrap_or(0)
    }
}

/// A division into stages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The stages in order.
    pub stages: Vec<StageChoice>,
    /// The rank of each.
    pub rank_of: Vec<usize>,
    /// Predicted time of a step.
    pub step_ps: u64,
    /// Whether no division has a lower predicted time. False where the search had to drop points.
    pub exact: bool,
    /// Other numbers of stages and other mixes of GPUs, and why each lost; the best first.
    pub runner_ups: Vec<RunnerUp>,
}

impl Partition {
    /// GPUs that it takes of each group.
    pub fn gpus(&self) -> Vec<(NodeGroupId, u32)> {
        let mut seen = BTreeSet::new();
        let first = self.stages.iter().zip(&self.rank_of).filter(|(_, rank)| seen.insert(**rank));
        count(first.map(|(stage, _)| stage.group))
    }

    /// Ranks of the pipeline.
    pub fn n_ranks(&self) -> usize {
        self.rank_of.iter().max().map_or(0, |last| last + 1)
    }
}

/// One stage of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageChoice {
    /// Its units.
    pub units: Range<usize>,
    /// The group of its GPU.
    pub group: NodeGroupId,
    /// Which GPU of the group, counted in the order of stages.
    pub index: u32,
    /// Micro-batches in flight.
    pub in_flight: u64,
    /// The units that are recomputed.
    pub recomputed: Vec<usize>,
    /// Estimated bytes of the arena.
    pub arena_bytes: u64,
    /// Bytes that the arena may have.
    pub budget_bytes: u64,
    /// Time of the forward of a micro-batch.
    pub forward_ps: u64,
    /// Time of the backward of a micro-batch, recomputation included.
    pub backward_ps: u64,
    /// The recomputation in it.
    pub recompute_ps: u64,
    /// Time of the update, once per step.
    pub update_ps: u64,
    /// Time to send an activation to the next stage and a gradient back; zero on the last stage.
    pub transfer_ps: (u64, u64),
}

/// A plan that was not chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunnerUp {
    /// Its number of stages.
    pub n_stages: usize,
    /// Its GPUs, by group. Empty where none was found.
    pub gpus: Vec<(NodeGroupId, u32)>,
    /// Why it was not chosen.
    pub lost: Lost,
}

/// Why a plan was not chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Its step takes longer.
    Slower {
        /// Its predicted step time, or a lower bound of it where no GPUs are named.
        step_ps: u64,
    },
    /// Its step takes less time, but its GPUs would idle too much for what they add.
    Unproductive {
        /// Its predicted step time.
        step_ps: u64,
    },
    /// Its step takes as long, and it has more GPUs or later groups.
    Equal,
    /// At best a stage lacks this many bytes.
    DoesNotFit {
        /// The missing bytes.
        missing_bytes: u64,
    },
}

/// Finds the fastest division of the units into stages.
///
/// # Errors
/// Why there is none, and which changes would make one possible.
pub fn partition(
    units: &[UnitProfile],
    cluster: &Cluster,
    options: &PartitionOptions,
) -> Result<Partition, Infeasible> {
    if options.loops > 1 {
        return looped::partition(units, cluster, options);
    }
    let costs = StageCosts::new(units, cluster, options);
    let limits = usable_gpus(&costs, options);
    let candidates = infeasible::candidates(&costs, options, &limits)?;
    let mut time = StepTime::new(&costs, options, &limits);
    let mut best = u64::MAX;
    let mut found: Vec<(usize, Option<Found>)> = Vec::new();
    for &n_stages in &candidates {
        time.set_stages(n_stages);
        let ceiling = best.saturating_add(best / 4);
        let may_win = time.least(n_stages, &limits) <= ceiling;
        let quick = may_win.then(|| search(&space(&costs, &limits, n_stages, QUICK_WIDTH, ceiling), &time));
        best = best.min(quick.as_ref().and_then(|f| f.solutions.first()).map_or(u64::MAX, |(step, _)| *step));
        found.push((n_stages, quick));
    }
    let mut winner: Option<(u64, usize, Vec<Placed>)> = None;
    let mut exact = true;
    for (n_stages, quick) in &mut found {
        time.set_stages(*n_stages);
        let Some(quick) = quick.as_mut().filter(|_| time.least(*n_stages, &limits) <= best) else { continue };
        if !quick.exact {
            let full = search(&space(&costs, &limits, *n_stages, WIDTH, best), &time);
            exact &= full.exact;
            if let Some(first) = full.solutions.into_iter().next() {
                quick.solutions.retain(|(_, stages)| mix(stages) != mix(&first.1));
                quick.solutions.insert(0, first);
            }
        }
        let Some((step, stages)) = quick.solutions.first() else { continue };
        if winner.as_ref().is_none_or(|(least, ..)| step < least) {
            best = best.min(*step);
            winner = Some((*step, *n_stages, stages.clone()));
        }
    }
    let Some((step_ps, _, stages)) = winner else {
        return Err(infeasible::explain(&costs, options, &limits, &candidates));
    };
    let runner_ups = runner_ups(&costs, options, &limits, &found, &stages, &time);
    let n_stages = stages.len();
    let choose = |(stage, placed): (usize, &Placed)| {
        let next = stages.get(stage + 1);
        choice(&costs, options, n_stages, stage, placed, next)
    };
    let (rank_of, stages) = ((0..n_stages).collect(), stages.iter().enumerate().map(choose).collect());
    Ok(Partition { stages, rank_of, step_ps, exact, runner_ups })
}

/// Whether each of so many ranks does at least four fifths of what one GPU alone, which takes `alone_ps` for the step, would.
pub(crate) fn is_productive(alone_ps: u128, n_ranks: usize, step_ps: u64) -> bool {
    5 * alone_ps >= 4 * n_ranks as u128 * u128::from(step_ps)
}

/// How many GPUs of each group a plan may use.
fn usable_gpus(costs: &StageCosts<'_>, options: &PartitionOptions) -> Vec<u32> {
    let usable = |(id, group): (NodeGroupId, &trainc_ir::NodeGroup)| {
        let usable = costs.missing_type(id).is_none() && (group.gpu.cuda || !options.cuda_only);
        if usable { group.n_gpus() } else { 0 }
    };
    costs.cluster().groups.iter().map(usable).collect()
}

fn space<'a>(costs: &'a StageCosts<'_>, limits: &'a [u32], n_stages: usize, width: usize, ceiling: u64) -> Space<'a> {
    Space {
        n_units: costs.n_units(),
        n_stages,
        cluster: costs.cluster(),
        limits,
        shared: &costs.shared,
        width,
        ceiling,
    }
}

/// GPUs of each group.
fn mix(stages: &[Placed]) -> Vec<(NodeGroupId, u32)> {
    count(stages.iter().map(|stage| NodeGroupId::from_index(stage.group)))
}

/// How often each group occurs.
fn count(groups: impl Iterator<Item = NodeGroupId>) -> Vec<(NodeGroupId, u32)> {
    let mut counts = std::collections::BTreeMap::new();
    for group in groups {
        *counts.entry(group).or_insert(0) += 1;
    }
    counts.into_iter().collect()
}

fn choice(
    costs: &StageCosts<'_>,
    options: &PartitionOptions,
    n_stages: usize,
    stage: usize,
    placed: &Placed,
    next: Option<&Placed>,
) -> StageChoice {
    let group = NodeGroupId::from_index(placed.group);
    let units = placed.start..placed.end;
    let in_flight = options.in_flight(n_stages, stage);
    let node_group = &costs.cluster().groups[group];
    let beyond = costs.beyond_arena(&units, group, n_stages).saturating_add(options.reduction(stage));
    let budget_bytes = node_group.capacity_bytes().saturating_sub(beyond);
    let (n_recomputed, arena_bytes) =
        costs.fastest(units.clone(), in_flight, budget_bytes).expect("the search placed only stages that fit");
    let (forward_ps, backward_ps) =
        costs.time(units.clone(), group, n_recomputed).expect("the search placed stages only where they can run");
    let per_node = node_group.gpus_per_node.max(1);
    let transfer_ps = next.map_or((0, 0), |next| {
        let same_node = next.group == placed.group && next.index / per_node == placed.index / per_node;
        transfer_times(costs, (placed.group, next.group), same_node, placed.end)
            .expect("the search placed neighbours only where they are connected")
    });
    StageChoice {
        group,
        index: placed.index,
        in_flight,
        recomputed: costs.recomputed(&units, n_recomputed),
        arena_bytes,
        budget_bytes,
        forward_ps,
        backward_ps,
        recompute_ps: costs.recompute_time(units.clone(), group, n_recomputed),
        update_ps: costs.update_time(units.clone(), group),
        transfer_ps,
        units,
    }
}

fn runner_ups(
    costs: &StageCosts<'_>,
    options: &PartitionOptions,
    limits: &[u32],
    found: &[(usize, Option<Found>)],
    winner: &[Placed],
    time: &StepTime<'_>,
) -> Vec<RunnerUp> {
    let best = found.iter().filter_map(|(_, f)| f.as_ref()?.solutions.first()).map(|(step, _)| *step).min();
    let best = best.unwrap_or(0);
    let mut ranked: Vec<(u64, RunnerUp)> = Vec::new();
    for (n_stages, found) in found {
        let solutions = found.as_ref().map_or(&[][..], |f| &f.solutions);
        for (step, stages) in solutions.iter().filter(|(_, stages)| mix(stages) != mix(winner)) {
            let lost = if *step == best { Lost::Equal } else { Lost::Slower { step_ps: *step } };
            ranked.push((*step, RunnerUp { n_stages: *n_stages, gpus: mix(stages), lost }));
        }
        if solutions.is_empty() {
            let missing =
                if *n_stages < winner.len() { infeasible::shortage(costs, options, limits, *n_stages) } else { 0 };
            let least = time.least(*n_stages, limits).max(best);
            let lost = match missing {
                0 => Lost::Slower { step_ps: least },
                missing_bytes => Lost::DoesNotFit { missing_bytes },
            };
            ranked.push((least.saturating_mul(2), RunnerUp { n_stages: *n_stages, gpus: Vec::new(), lost }));
        }
    }
    ranked.sort_by_key(|(step, runner_up)| (*step, runner_up.n_stages));
    ranked.into_iter().map(|(_, runner_up)| runner_up).take(MAX_RUNNER_UPS).collect()
}
