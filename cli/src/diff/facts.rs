//! What is compared of a plan, read from a plan or, as far as it goes, from its summary.

use crate::check::read_plan_file;
use crate::failure::{Failure, unreadable};
use crate::folder::plan_file;
use serde::Deserialize;
use std::path::Path;
use trainc_ir::plan::{Breakdown, Plan};

/// What is compared of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Name of the model.
    pub model: String,
    /// Name of the cluster.
    pub cluster: String,
    /// Micro-batches of a step.
    pub micro_batches: u64,
    /// Time of a step.
    pub step_ps: u64,
    /// Idle share of the GPUs' time, in millionths.
    pub bubble_ppm: u64,
    /// Time of recomputation over all ranks: all of it, and what makes the step longer.
    pub recompute_ps: u64,
    /// The part of it that makes the step longer.
    pub exposed_recompute_ps: u64,
    /// Ranks in order.
    pub ranks: Vec<RankFacts>,
    /// The whole plan, where it was not read from a summary.
    pub plan: Option<Box<Plan>>,
}

/// What is compared of a rank.
#[derive(Clone, Debug, PartialEq)]
pub struct RankFacts {
    /// Type of its GPU.
    pub gpu: String,
    /// Its group in the cluster.
    pub group: String,
    /// Its stage.
    pub stage: u32,
    /// The units of the model that it holds.
    pub units: Vec<String>,
    /// How many of its blocks are recomputed.
    pub recomputed_blocks: u32,
    /// Bytes of its arena.
    pub arena_bytes: u64,
    /// Bytes of its device.
    pub device_bytes: u64,
    /// Bytes that it has.
    pub capacity_bytes: u64,
    /// What the bytes are for.
    pub breakdown: Breakdown,
}

/// The parts of `summary.json` that are compared; it has more.
#[derive(Deserialize)]
struct Summary {
    model: String,
    cluster: String,
    micro_batches: u64,
    step_time_s: f64,
    bubble_share: f64,
    ranks: Vec<SummaryRank>,
    recompute: SummaryRecompute,
}

#[derive(Deserialize)]
struct SummaryRank {
    gpu: String,
    group: String,
    stage: u32,
    units: Vec<String>,
    recomputed_blocks: u32,
    arena_bytes: u64,
    device_bytes: u64,
    capacity_bytes: u64,
    breakdown: Breakdown,
}

#[derive(Deserialize)]
struct SummaryRecompute {
    total_s: f64,
    exposed_s: f64,
}

impl Facts {
    /// Reads the plan of a folder, a plan file, or a summary.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let file = plan_file(path);
        match summary(&file) {
            Some(summary) => summary.map(Self::of_summary),
            None => Ok(Self::of_plan(read_plan_file(&file)?)),
        }
    }

    pub(super) fn of_plan(plan: Plan) -> Self {
        let prediction = &plan.prediction;
        let rank = |(rank, of): (&trainc_ir::plan::Rank, &trainc_ir::plan::RankPrediction)| {
            let group = plan.groups.get(rank.group);
            RankFacts {
                gpu: group.map(|group| group.gpu.clone()).unwrap_or_default(),
                group: group.map(|group| group.name.clone()).unwrap_or_default(),
                stage: rank.stage,
                units: of.units.clone(),
                recomputed_blocks: of.recomputed_blocks,
                arena_bytes: of.arena_bytes,
                device_bytes: of.device_bytes,
                capacity_bytes: of.capacity_bytes,
                breakdown: of.breakdown.clone(),
            }
        };
        let whole = u128::from(prediction.step_ps) * plan.ranks.len() as u128;
        let ppm = (u128::from(prediction.idle_ps) * 1_000_000 + whole / 2).checked_div(whole).unwrap_or(0);
        Self {
            model: plan.header.model.clone(),
            cluster: plan.header.cluster.clone(),
            micro_batches: plan.micro_batches,
            step_ps: prediction.step_ps,
            bubble_ppm: u64::try_from(ppm).unwrap_or(u64::MAX),
            recompute_ps: prediction.recompute.total_ps,
            exposed_recompute_ps: prediction.recompute.exposed_ps,
            ranks: plan.ranks.values().zip(&prediction.ranks).map(rank).collect(),
            plan: Some(Box::new(plan)),
        }
    }

    fn of_summary(summary: Summary) -> Self {
        let rank = |rank: SummaryRank| {
            let SummaryRank { gpu, group, stage, units, recomputed_blocks, .. } = rank;
            let SummaryRank { arena_bytes, device_bytes, capacity_bytes, breakdown, .. } = rank;
            RankFacts {
                gpu,
                group,
                stage,
                units,
                recomputed_blocks,
                arena_bytes,
                device_bytes,
                capacity_bytes,
                breakdown,
            }
        };
        Self {
            model: summary.model,
            cluster: summary.cluster,
            micro_batches: summary.micro_batches,
            step_ps: picoseconds(summary.step_time_s),
            bubble_ppm: (summary.bubble_share * 1e6).round() as u64,
            recompute_ps: picoseconds(summary.recompute.total_s),
            exposed_recompute_ps: picoseconds(summary.recompute.exposed_s),
            ranks: summary.ranks.into_iter().map(rank).collect(),
            plan: None,
        }
    }

    /// Number of stages.
    pub(super) fn stages(&self) -> u64 {
        self.ranks.iter().map(|rank| u64::from(rank.stage) + 1).max().unwrap_or(0)
    }

    /// The largest of the ranks, and which rank has it.
    pub(super) fn largest(&self, of: impl Fn(&RankFacts) -> u64) -> (usize, u64) {
        let values = self.ranks.iter().map(of).enumerate();
        values.rev().max_by_key(|(_, value)| *value).unwrap_or((0, 0))
    }

    /// The sum over ranks.
    pub(super) fn sum(&self, of: impl Fn(&RankFacts) -> u64) -> u64 {
        self.ranks.iter().map(of).fold(0, u64::saturating_add)
    }

    /// The GPUs asked for, as in `2 x T4, 1 x A100-SXM-80GB`, in order of ranks.
    pub(super) fn gpus(&self) -> String {
        let mut counts: Vec<(&str, u64)> = Vec::new();
        for rank in &self.ranks {
            match counts.iter_mut().find(|(gpu, _)| *gpu == rank.gpu) {
                Some((_, n)) => *n += 1,
                None => counts.push((&rank.gpu, 1)),
            }
        }
        counts.iter().map(|(gpu, n)| format!("{n} x {gpu}")).collect::<Vec<_>>().join(", ")
    }
}

/// The summary in a file; `None` where it is none, so that it is read as a plan, which says what is wrong with it.
fn summary(file: &Path) -> Option<Result<Summary, Failure>> {
    let text = std::fs::read_to_string(file).ok()?;
    let document: serde_json::Value = serde_json::from_str(&text).ok()?;
    document.get("step_time_s")?;
    Some(serde_json::from_value(document).map_err(|error| {
        let help = "give a `summary.json` that this version of trainc wrote, or the folder or plan itself";
        unreadable("summary", file, &error).with_help(help).into()
    }))
}

/// Summaries hold seconds, divided from picoseconds: the nearest whole number is the one it was.
fn picoseconds(seconds: f64) -> u64 {
    (seconds * 1e12).round() as u64
}
