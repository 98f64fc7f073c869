//! `summary.json`: what a plan is expected to take, in fields that stay (docs/plan.md lists them).

use serde::Serialize;
use trainc_ir::plan::{BlockClass, Breakdown, Plan};

/// Version of the summary's fields; grows when one is renamed or removed.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Summary<'a> {
    version: u32,
    model: &'a str,
    cluster: &'a str,
    micro_batches: u64,
    stages: u32,
    schedule: &'a str,
    stages_per_rank: u64,
    step_time_s: f64,
    tokens_per_s: f64,
    samples_per_s: f64,
    bubble_share: f64,
    ranks: Vec<Rank<'a>>,
    blocks: &'a [BlockClass],
    recompute: Recompute,
}

#[derive(Serialize)]
struct Rank<'a> {
    rank: usize,
    gpu: &'a str,
    group: &'a str,
    stage: u32,
    units: &'a [String],
    recomputed_blocks: u32,
    busy_s: f64,
    arena_bytes: u64,
    device_bytes: u64,
    capacity_bytes: u64,
    headroom_bytes: u64,
    breakdown: &'a Breakdown,
}

#[derive(Serialize)]
struct Recompute {
    total_s: f64,
    hidden_s: f64,
    exposed_s: f64,
}

/// The summary of a plan.
///
/// # Panics
/// A rank of the plan names a group that it does not have; a verified plan has none such.
pub fn summary_to_json(plan: &Plan) -> String {
    let prediction = &plan.prediction;
    let ranks = plan.ranks.values().zip(&prediction.ranks).enumerate();
    let ranks = ranks.map(|(rank, (place, expected))| Rank {
        rank,
        gpu: &plan.groups[place.group].gpu,
        group: &plan.groups[place.group].name,
        stage: place.stage,
        units: &expected.units,
        recomputed_blocks: expected.recomputed_blocks,
        busy_s: seconds(expected.busy_ps),
        arena_bytes: expected.arena_bytes,
        device_bytes: expected.device_bytes,
        capacity_bytes: expected.capacity_bytes,
        headroom_bytes: expected.capacity_bytes.saturating_sub(expected.device_bytes),
        breakdown: &expected.breakdown,
    });
    let step_time_s = seconds(prediction.step_ps);
    let summary = Summary {
        version: VERSION,
        model: &plan.header.model,
        cluster: &plan.header.cluster,
        micro_batches: plan.micro_batches,
        stages: plan.ranks.values().map(|rank| rank.stage + 1).max().unwrap_or(0),
        schedule: plan.header.options.get("schedule").map_or("1f1b", String::as_str),
        stages_per_rank: plan.header.options.get("loops").and_then(|loops| loops.parse().ok()).unwrap_or(1),
        step_time_s,
        tokens_per_s: ratio(prediction.tokens as f64, step_time_s),
        samples_per_s: ratio(prediction.samples as f64, step_time_s),
        bubble_share: ratio(prediction.idle_ps as f64, prediction.step_ps as f64 * plan.ranks.len() as f64),
        ranks: ranks.collect(),
        blocks: &prediction.blocks,
        recompute: Recompute {
            total_s: seconds(prediction.recompute.total_ps),
            hidden_s: seconds(prediction.recompute.hidden_ps),
            exposed_s: seconds(prediction.recompute.exposed_ps),
        },
    };
    let mut text = serde_json::to_string_pretty(&summary).expect("a summary holds nothing that JSON cannot spell");
    text.push('\n');
    text
}

fn seconds(picoseconds: u64) -> f64 {
    picoseconds as f64 / 1e12
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
