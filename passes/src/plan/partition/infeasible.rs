//! Why no division fits, and what would make one fit: each change is found by solving the changed problem.

use super::objective::{Bytes, Want};
use super::search::{Placed, Space, search};
use super::stage_cost::{RecomputePolicy, StageCosts};
use super::{MAX_STAGES, PartitionOptions, Stages};
use crate::schedule::ScheduleError;
use std::ops::Range;
use trainc_ir::NodeGroupId;
use trainc_ir::id::Id;

/// Points that are kept in searches for few bytes.
const BYTES_WIDTH: usize = 20_000;

/// No division is possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Infeasible {
    /// Why.
    pub reason: Reason,
    /// Changes, each of which makes one possible.
    pub changes: Vec<Change>,
}

/// Why no division is possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The GPUs of every group are ruled out, for these reasons.
    NoUsableGpu(Vec<(NodeGroupId, String)>),
    /// More stages than units.
    TooFewUnits {
        /// Stages asked for.
        asked: u32,
        /// Units of the model.
        units: u32,
    },
    /// More stages than GPUs that can be used.
    TooFewGpus {
        /// Stages asked for.
        asked: u32,
        /// GPUs that can be used.
        usable: u64,
    },
    /// The schedule does not exist for these numbers.
    NoSchedule(ScheduleError),
    /// The groups are not connected as the stages would need.
    NotConnected {
        /// Number of stages.
        n_stages: usize,
    },
    /// A stage needs more bytes than its GPU has, in the division that lacks the fewest.
    Memory {
        /// Number of stages.
        n_stages: usize,
        /// The stage that lacks the most.
        stage: usize,
        /// Its units.
        units: Range<usize>,
        /// The group of its GPU.
        group: NodeGroupId,
        /// Bytes that it needs: arena, context, workspace and communication buffers.
        needed_bytes: u64,
        /// Bytes that a program sees of the GPU.
        available_bytes: u64,
    },
}

/// A change that makes a division possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// To recompute.
    Recompute(RecomputePolicy),
    /// This number of stages on the same cluster.
    Stages(u32),
    /// This number of stages, with more nodes of the same groups.
    MoreGpus {
        /// Number of stages, and of GPUs.
        stages: u32,
    },
    /// GPUs whose driver reports at least this many bytes, one for each of so many stages.
    Memory {
        /// Number of stages.
        stages: u32,
        /// Bytes of each GPU.
        bytes: u64,
    },
    /// Micro-batches of this many samples. Added by callers that can lower the model again.
    MicroBatch(u64),
}

/// The numbers of stages to try, ascending.
pub(super) fn candidates(
    costs: &StageCosts<'_>,
    options: &PartitionOptions,
    limits: &[u32],
) -> Result<Vec<usize>, Infeasible> {
    let n_units = u32::try_from(costs.n_units()).unwrap_or(u32::MAX);
    let usable: u64 = limits.iter().map(|&n| u64::from(n)).sum();
    let fail = |reason, changes| Err(Infeasible { reason, changes });
    if usable == 0 {
        let reasons = costs.cluster().groups.iter().map(|(id, group)| {
            let no_program = || format!("no program can be emitted for a {}", group.gpu.name);
            (id, costs.missing_type(id).map_or_else(no_program, ToString::to_string))
        });
        return fail(Reason::NoUsableGpu(reasons.collect()), Vec::new());
    }
    let usable_stages = u32::try_from(usable).unwrap_or(u32::MAX);
    let (asked, least) = match options.stages {
        Stages::Forced(n) => (n.max(1), n.max(1)),
        Stages::Best { max } => (max.min(MAX_STAGES).min(usable_stages).min(n_units).max(1), 1),
    };
    if asked > n_units {
        let changes = if n_units > 0 { vec![Change::Stages(n_units.min(usable_stages))] } else { Vec::new() };
        let changes = changes.into_iter().filter(|change| fits(costs, options, limits, change)).collect();
        return fail(Reason::TooFewUnits { asked, units: n_units }, changes);
    }
    if asked > usable_stages {
        let mut changes = vec![Change::Stages(usable_stages), Change::MoreGpus { stages: asked }];
        changes.retain(|change| fits(costs, options, limits, change));
        return fail(Reason::TooFewGpus { asked, usable }, changes);
    }
    Ok((least as usize..=asked as usize).collect())
}

/// Whether a division with the changed number of stages fits.
fn fits(costs: &StageCosts<'_>, options: &PartitionOptions, limits: &[u32], change: &Change) -> bool {
    match *change {
        Change::Stages(n) => shortage(costs, options, limits, n as usize) == 0,
        Change::MoreGpus { stages } => shortage(costs, options, &unlimited(limits), stages as usize) == 0,
        Change::Recompute(_) | Change::Memory { stages: _, bytes: _ } | Change::MicroBatch(_) => false,
    }
}

fn unlimited(limits: &[u32]) -> Vec<u32> {
    limits.iter().map(|&n| if n > 0 { MAX_STAGES.max(n) } else { 0 }).collect()
}

fn fewest(
    costs: &StageCosts<'_>,
    options: &PartitionOptions,
    limits: &[u32],
    n_stages: usize,
    want: Want,
) -> Option<(u64, Vec<Placed>)> {
    let (n_units, cluster) = (costs.n_units(), costs.cluster());
    let (shared, width, ceiling) = (&costs.shared[..], BYTES_WIDTH, u64::MAX);
    let space = Space { n_units, n_stages, cluster, limits, shared, width, ceiling };
    let bytes = Bytes { costs, options, n_stages, want };
    search(&space, &bytes).solutions.into_iter().next()
}

/// Bytes that the stage of the largest shortage lacks at best; all of them where the stages cannot be connected.
pub(super) fn shortage(costs: &StageCosts<'_>, options: &PartitionOptions, limits: &[u32], n_stages: usize) -> u64 {
    fewest(costs, options, limits, n_stages, Want::Shortage).map_or(u64::MAX, |(missing, _)| missing)
}

/// Why no number of stages is possible.
pub(super) fn explain(
    costs: &StageCosts<'_>,
    options: &PartitionOptions,
    limits: &[u32],
    candidates: &[usize],
) -> Infeasible {
    let of =
        |&n: &usize| fewest(costs, options, limits, n, Want::Shortage).map(|(missing, stages)| (missing, n, stages));
    let least = candidates.iter().filter_map(of).min_by_key(|(missing, n, _)| (*missing, *n));
    let Some((_, n_stages, stages)) = least else {
        let n_stages = candidates.first().copied().unwrap_or(1);
        // Unlike memory, links may be enough for fewer stages.
        let fewer = (1..n_stages).rev().find(|&n| shortage(costs, options, limits, n) == 0);
        let fewer = fewer.map(|n| Change::Stages(n as u32));
        let changes = fewer.into_iter().chain(changes(costs, options, limits, candidates)).collect();
        return Infeasible { reason: Reason::NotConnected { n_stages }, changes };
    };
    let bytes = Bytes { costs, options, n_stages, want: Want::Shortage };
    let figures = |(stage, placed): (usize, &Placed)| {
        let group = NodeGroupId::from_index(placed.group);
        let needed = bytes.needed(stage, placed.group, (placed.start, placed.end));
        let available = costs.cluster().groups[group].capacity_bytes();
        (needed.saturating_sub(available), std::cmp::Reverse(stage), needed, available, group, placed.start..placed.end)
    };
    let worst = stages.iter().enumerate().map(figures).max_by_key(|f| (f.0, f.1)).expect("a division has stages");
    let (_, std::cmp::Reverse(stage), needed_bytes, available_bytes, group, units) = worst;
    let reason = Reason::Memory { n_stages, stage, units, group, needed_bytes, available_bytes };
    Infeasible { reason, changes: changes(costs, options, limits, candidates) }
}

/// The changes that make a division possible, the smallest first.
fn changes(costs: &StageCosts<'_>, options: &PartitionOptions, limits: &[u32], candidates: &[usize]) -> Vec<Change> {
    let mut changes = Vec::new();
    let tried = candidates.last().copied().unwrap_or(1);
    if options.recompute != RecomputePolicy::Fit {
        let options = PartitionOptions { recompute: RecomputePolicy::Fit, ..options.clone() };
        let costs = StageCosts::new(costs.units(), costs.cluster(), &options);
        if candidates.iter().any(|&n| shortage(&costs, &options, limits, n) == 0) {
            changes.push(Change::Recompute(RecomputePolicy::Fit));
        }
    }
    let most = costs.n_units().min(MAX_STAGES as usize);
    let usable: u64 = limits.iter().map(|&n| u64::from(n)).sum();
    let wider = |limits: &[u32], most: usize| (tried + 1..=most).find(|&n| shortage(costs, options, limits, n) == 0);
    let of_this = most.min(usize::try_from(usable).unwrap_or(most));
    if let Some(n) = wider(limits, of_this) {
        changes.push(Change::Stages(n as u32));
    } else if let Some(n) = wider(&unlimited(limits), most) {
        changes.push(Change::MoreGpus { stages: n as u32 });
    }
    let need = |&n: &usize| fewest(costs, options, limits, n, Want::Memory).map(|(bytes, _)| (bytes, n));
    if let Some((bytes, n)) = candidates.iter().filter_map(need).min() {
        changes.push(Change::Memory { stages: n as u32, bytes });
    }
    changes
}
