//! `trainc simulate`: replays a plan on a cluster and shows what the time of a step goes to.

use crate::args::SimulateArgs;
use crate::cmd::schedule;
use crate::output::Output;
use crate::table::{Align, Table};
use std::collections::BTreeMap;
use trainc::units::{percent, plural, time};
use trainc::{Failure, Replayed, replay, trace};
use trainc_backend::{trace_to_json, write_file};
use trainc_ir::id::Id;
use trainc_ir::{Phase, TransferKind};
use trainc_passes::plan::simulate::{CriticalStep, SpanKind};

/// Parts of the critical path that are told of.
const PARTS: usize = 6;

/// Replays a plan.
pub(crate) fn run(args: &SimulateArgs, output: Output) -> Result<(), Failure> {
    let (Some(plan), Some(cluster)) = (&args.plan, &args.cluster) else {
        return schedule::run(&args.schedules, output);
    };
    let replayed = replay(plan, cluster, args.profile.as_deref())?;
    output.diagnostics(&replayed.notes);
    let mut wrote = String::new();
    if let Some(file) = &args.trace {
        write_file(file, trace_to_json(&trace(&replayed)).as_bytes())?;
        wrote = format!("\nwrote the timeline to {}: open it in https://ui.perfetto.dev\n", file.display());
    }
    let sections = [head(&replayed), ranks(&replayed), critical(&replayed)];
    output.report(&(sections.join("\n") + &wrote));
    output.object(&object(&replayed));
    Ok(())
}

/// Idle time of all ranks, and all their time.
fn idle(replayed: &Replayed) -> (u64, u64) {
    let ranks = replayed.timeline.ranks.values();
    let sum = |values: &mut dyn Iterator<Item = u64>| values.fold(0u64, u64::saturating_add);
    let idle = sum(&mut ranks.clone().map(|rank| rank.idle_ps));
    (idle, sum(&mut ranks.map(|_| replayed.timeline.step_ps)))
}

/// The rank that computes longest; the first of several.
fn slowest(replayed: &Replayed) -> Option<(usize, u64)> {
    let busy = replayed.timeline.ranks.values().map(|rank| rank.busy_ps).enumerate();
    busy.rev().max_by_key(|(_, busy)| *busy)
}

fn head(replayed: &Replayed) -> String {
    let (idle, whole) = idle(replayed);
    let n = replayed.plan.ranks.len();
    let ranks = plural(n as u64, "rank", "ranks");
    let profiled = replayed.cluster.groups.values().any(|group| group.gpu.profile.is_some());
    let times = if profiled { "the times of the profile, modelled ones where it has none" } else { "modelled times" };
    let mut out = format!(
        "{} on {}: {ranks} replayed with {times}\n  step {}, bubble {}\n",
        replayed.plan.header.model,
        replayed.cluster.name,
        time(replayed.timeline.step_ps),
        percent(idle, whole)
    );
    if let Some((rank, busy)) = slowest(replayed).filter(|_| n > 1) {
        let share = percent(busy, replayed.timeline.step_ps);
        out += &format!("  slowest: rank {rank}, which computes for {} ({share} of the step)\n", time(busy));
    }
    out
}

fn ranks(replayed: &Replayed) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("rank", Right),
        ("GPU", Left),
        ("stage", Right),
        ("busy", Right),
        ("idle (bubble)", Right),
        ("exposed transfers", Right),
        ("recompute", Right),
        ("exposed recompute", Right),
    ]);
    let (plan, step) = (&replayed.plan, replayed.timeline.step_ps);
    for (id, of) in replayed.timeline.ranks.iter() {
        let rank = &plan.ranks[id];
        table.row([
            id.index().to_string(),
            plan.groups.get(rank.group).map(|group| group.gpu.clone()).unwrap_or_default(),
            rank.stage.to_string(),
            time(of.busy_ps),
            format!("{} ({})", time(of.idle_ps), percent(of.idle_ps, step)),
            time(of.exposed_transfer_ps),
            time(of.recompute.total_ps),
            time(of.recompute.exposed_ps),
        ]);
    }
    format!("Time of each rank; transfers are exposed where it does not compute meanwhile\n{}", table.print())
}

/// What a part of the critical path is: its kind for programs, and its name for people.
fn part(replayed: &Replayed, step: &CriticalStep) -> (&'static str, String) {
    let rank = step.rank.index();
    match step.span.kind {
        SpanKind::Call { segment, micro_batch: _ } => {
            let of = replayed.plan.segments.get(segment);
            let kind = match of.map(|of| of.phase) {
                Some(Phase::Recompute) => "recompute",
                Some(Phase::Forward | Phase::InputGrad | Phase::WeightGrad | Phase::Update) | None => "compute",
            };
            let name = of.map_or_else(|| segment.to_string(), |of| of.name.clone());
            (kind, format!("{name} on rank {rank}"))
        }
        SpanKind::Transfer { transfer, side: _ } => {
            let transfer = &replayed.timeline.transfers[transfer];
            let peer = transfer.sides.get(1).map_or(rank, |side| side.rank.index());
            match transfer.kind {
                TransferKind::Load => ("load", format!("load to rank {rank}")),
                TransferKind::PointToPoint => ("transfer", format!("send from rank {rank} to {peer}")),
                TransferKind::AllReduce => ("transfer", "all-reduce".to_owned()),
                TransferKind::Broadcast => ("transfer", "broadcast".to_owned()),
            }
        }
    }
}

fn by_kind(replayed: &Replayed) -> BTreeMap<&'static str, u64> {
    let mut kinds: BTreeMap<&'static str, u64> = ["compute", "recompute", "transfer", "load"].map(|k| (k, 0)).into();
    for step in &replayed.critical {
        *kinds.entry(part(replayed, step).0).or_default() += step.span.end_ps - step.span.start_ps;
    }
    kinds
}

/// What the critical path consists of, and its largest parts.
fn critical(replayed: &Replayed) -> String {
    let step_ps = replayed.timeline.step_ps;
    let kinds = by_kind(replayed);
    let shares: Vec<String> = ["compute", "recompute", "transfer", "load"]
        .into_iter()
        .filter(|kind| kinds[kind] > 0)
        .map(|kind| format!("{kind} {} ({})", time(kinds[kind]), percent(kinds[kind], step_ps)))
        .collect();
    let mut parts: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for step in &replayed.critical {
        let of = parts.entry(part(replayed, step).1).or_default();
        *of = (of.0 + step.span.end_ps - step.span.start_ps, of.1 + 1);
    }
    let mut parts: Vec<(String, (u64, u64))> = parts.into_iter().collect();
    parts.sort_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
    let mut table =
        Table::new(&[("part", Align::Left), ("times", Align::Right), ("time", Align::Right), ("share", Align::Right)]);
    for (name, (ps, n)) in parts.iter().take(PARTS) {
        table.row([name.clone(), n.to_string(), time(*ps), percent(*ps, step_ps)]);
    }
    let rest = parts.get(PARTS..).unwrap_or(&[]);
    if !rest.is_empty() {
        let (ps, n) = rest.iter().fold((0, 0), |(ps, n), (_, of)| (ps + of.0, n + of.1));
        table.row(["all others".to_owned(), n.to_string(), time(ps), percent(ps, step_ps)]);
    }
    format!("Critical path: what the step would be shorter without\n  {}\n{}", shares.join(", "), table.print())
}

fn object(replayed: &Replayed) -> serde_json::Value {
    let seconds = |ps: u64| ps as f64 / 1e12;
    let rank = |(id, of): (trainc_ir::plan::RankId, &trainc_passes::plan::simulate::RankTimeline)| {
        serde_json::json!({
            "rank": id.index(),
            "busy_s": seconds(of.busy_ps),
            "idle_s": seconds(of.idle_ps),
            "exposed_transfer_s": seconds(of.exposed_transfer_ps),
            "recompute_s": seconds(of.recompute.total_ps),
            "exposed_recompute_s": seconds(of.recompute.exposed_ps),
        })
    };
    let (idle, whole) = idle(replayed);
    let kinds: BTreeMap<String, f64> =
        by_kind(replayed).into_iter().map(|(kind, ps)| (format!("{kind}_s"), seconds(ps))).collect();
    serde_json::json!({
        "model": replayed.plan.header.model,
        "cluster": replayed.cluster.name,
        "step_time_s": seconds(replayed.timeline.step_ps),
        "bubble_share": if whole > 0 { idle as f64 / whole as f64 } else { 0.0 },
        "slowest_rank": slowest(replayed).map(|(rank, _)| rank),
        "ranks": replayed.timeline.ranks.iter().map(rank).collect::<Vec<_>>(),
        "critical_path": kinds,
    })
}
