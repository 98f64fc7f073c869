//! What `compile` and `estimate` print: who holds what, what the bytes are for, how long a step takes.

use crate::table::{Align, Table};
use std::fmt::Write;
use trainc::units::{bytes, count, percent, plural, rounded, time};
use trainc::{CompileOptions, Compiled, join_units};
use trainc_ir::Cluster;
use trainc_ir::plan::{Access, Action, Breakdown, Holder, Instr, Item, Plan, PlanParameter, Rank, RankPrediction};
use trainc_passes::plan::partition::{Lost, Partition, RunnerUp};
use trainc_passes::plan::simulate::unmeasured;

/// Plans that were not chosen, as many as are told of.
const ALSO_CONSIDERED: usize = 2;

/// The whole report. Where trainc chose the number of stages it names what else there was to choose from.
pub(crate) fn report(compiled: &Compiled, options: &CompileOptions) -> String {
    let plan = compiled.plan.plan();
    let others = match options.stages {
        None => also_considered(&compiled.partition, &compiled.cluster),
        Some(_) => String::new(),
    };
    let sections = [head(plan), ranks(plan), memory(plan), prediction(plan, &compiled.cluster) + &others];
    sections.join("\n")
}

/// Whether the forward updates the buffer: it holds a running average.
fn is_average(plan: &Plan, parameter: &PlanParameter) -> bool {
    let updates = |instr: &Instr, holder: &Holder| match &instr.action {
        Action::Call { segment, args, frames: _, micro_batch: _, site: _ } => {
            let formals = plan.segments[*segment].formals.iter().zip(args);
            formals.into_iter().any(|(formal, arg)| arg.buffer == holder.buffer && formal.access != Access::Read)
        }
        Action::Load { .. } | Action::Send { .. } | Action::Recv { .. } | Action::AllReduce { .. } => false,
        Action::Broadcast { .. } | Action::Group(_) => false,
    };
    parameter.holders.iter().any(|holder| {
        let instrs = plan.programs[holder.program].body.iter().flat_map(|item| match item {
            Item::Once(instr) => std::slice::from_ref(instr),
            Item::Loop { trips: _, body } => body,
        });
        instrs.into_iter().any(|instr| updates(instr, holder))
    })
}

/// What was compiled, in two lines or three.
fn head(plan: &Plan) -> String {
    let gpus: Vec<String> = plan.groups.values().map(|group| format!("{} x {}", group.count, group.gpu)).collect();
    let trained: u64 = plan.parameters.iter().filter(|p| p.trained).map(|p| p.ty.elements()).sum();
    let (averages, frozen): (Vec<_>, Vec<_>) =
        plan.parameters.iter().filter(|p| !p.trained).partition(|p| is_average(plan, p));
    let others = |which: &[&PlanParameter], what: &str| match which.iter().map(|p| p.ty.elements()).sum() {
        0 => String::new(),
        n => format!(", {} {what}", rounded(n)),
    };
    let others = others(&frozen, "frozen") + &others(&averages, "in running averages");
    let blocks: Vec<String> = plan
        .prediction
        .blocks
        .iter()
        .map(|class| format!("{} of {} operators", class.instances, class.nodes))
        .collect();
    let blocks =
        if blocks.is_empty() { "no repeated blocks".to_owned() } else { format!("blocks: {}", blocks.join(", ")) };
    let prediction = &plan.prediction;
    let tokens = if prediction.tokens == prediction.samples {
        String::new()
    } else {
        format!(" = {} {}", count(prediction.tokens), if prediction.tokens == 1 { "token" } else { "tokens" })
    };
    let options = &plan.header.options;
    let schedule = options.get("schedule").map_or_else(String::new, |kind| {
        let loops = options.get("loops").filter(|loops| *loops != "1");
        let loops = loops.map_or_else(String::new, |loops| format!(" with {loops} stages per rank"));
        format!("\n  schedule: {kind}{loops}")
    });
    format!(
        "{} on {}: {}
  {} trained parameters{others}; {blocks}
  a step: {} x {}{tokens}{schedule}
",
        plan.header.model,
        plan.header.cluster,
        gpus.join(", "),
        rounded(trained),
        plural(plan.micro_batches, "micro-batch", "micro-batches"),
        plural(prediction.samples / plan.micro_batches.max(1), "sample", "samples"),
    )
}

fn pairs(plan: &Plan) -> impl Iterator<Item = (usize, &Rank, &RankPrediction)> {
    let pairs = plan.ranks.values().zip(&plan.prediction.ranks);
    pairs.enumerate().map(|(i, (rank, prediction))| (i, rank, prediction))
}

fn ranks(plan: &Plan) -> String {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("rank", Right),
        ("GPU", Left),
        ("group", Left),
        ("stage", Right),
        ("holds", Left),
        ("arena", Right),
        ("device", Right),
        ("capacity", Right),
        ("headroom", Right),
    ]);
    for (i, rank, prediction) in pairs(plan) {
        let group = &plan.groups[rank.group];
        let free = prediction.capacity_bytes.saturating_sub(prediction.device_bytes);
        table.row([
            i.to_string(),
            group.gpu.clone(),
            group.name.clone(),
            rank.stage.to_string(),
            join_units(&prediction.units),
            bytes(prediction.arena_bytes),
            bytes(prediction.device_bytes),
            bytes(prediction.capacity_bytes),
            format!("{} ({})", bytes(free), percent(free, prediction.capacity_bytes)),
        ]);
    }
    format!("Placement\n{}", table.print())
}

fn memory(plan: &Plan) -> String {
    let mut headings = vec![("rank", Align::Right)];
    headings.extend(Breakdown::default().parts().map(|(name, _)| (name, Align::Right)));
    let mut table = Table::new(&headings);
    for (i, _, prediction) in pairs(plan) {
        let parts = prediction.breakdown.parts().map(|(_, part)| bytes(part));
        table.row(std::iter::once(i.to_string()).chain(parts));
    }
    format!("Memory of each rank\n{}", table.print())
}

fn prediction(plan: &Plan, cluster: &Cluster) -> String {
    let prediction = &plan.prediction;
    let whole = u128::from(prediction.step_ps) * prediction.ranks.len() as u128;
    let whole = u64::try_from(whole).unwrap_or(u64::MAX);
    let per_second = per_second(prediction.tokens, prediction.step_ps);
    let unit = if prediction.tokens == prediction.samples { "samples" } else { "tokens" };
    let mut out = format!(
        "Prediction\n  step {}, {} {unit}/s, bubble {}\n",
        time(prediction.step_ps),
        rounded(per_second),
        percent(prediction.idle_ps, whole),
    );
    out += &recompute(plan);
    out += &basis(plan, cluster);
    out
}

/// What the times of each GPU type rest on, types alike in a line.
fn basis(plan: &Plan, cluster: &Cluster) -> String {
    let mut types: Vec<(String, Vec<&str>)> = Vec::new();
    for group in plan.groups.values() {
        let Some(of) = cluster.group(&group.name) else { continue };
        let gpu = &cluster.groups[of].gpu;
        let basis = gpu.times_basis(unmeasured(plan, gpu).len() < plan.prediction.blocks.len());
        match types.iter_mut().find(|(known, _)| *known == basis) {
            Some((_, names)) if names.contains(&gpu.name.as_str()) => {}
            Some((_, names)) => names.push(&gpu.name),
            None => types.push((basis, vec![&gpu.name])),
        }
    }
    types.iter().map(|(basis, names)| format!("  times of {}: {basis}\n", names.join(", "))).collect()
}

/// How many of `n` are done in a second.
pub(crate) fn per_second(n: u64, step_ps: u64) -> u64 {
    let rate = u128::from(n) * 1_000_000_000_000 / u128::from(step_ps.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// The best of the plans that were not chosen, in a line; nothing where there is none.
fn also_considered(partition: &Partition, cluster: &Cluster) -> String {
    let named = partition.runner_ups.iter().filter(|other| !other.gpus.is_empty());
    let others: Vec<String> =
        named.take(ALSO_CONSIDERED).map(|other| runner_up(other, partition.step_ps, cluster)).collect();
    if others.is_empty() { String::new() } else { format!("  also considered: {}\n", others.join("; ")) }
}

fn runner_up(other: &RunnerUp, chosen_ps: u64, cluster: &Cluster) -> String {
    let gpus: Vec<String> =
        other.gpus.iter().map(|(group, n)| format!("{n} x {}", cluster.groups[*group].gpu.name)).collect();
    let why = match other.lost {
        Lost::Slower { step_ps } => format!("{} slower", time(step_ps.saturating_sub(chosen_ps))),
        Lost::Unproductive { step_ps } => {
            format!("{} faster, but too idle for its GPUs", time(chosen_ps.saturating_sub(step_ps)))
        }
        Lost::Equal => "not faster".to_owned(),
        Lost::DoesNotFit { missing_bytes } => format!("lacks {}", bytes(missing_bytes)),
    };
    format!("{} ({why})", gpus.join(", "))
}

fn recompute(plan: &Plan) -> String {
    let stages: Vec<String> = pairs(plan)
        .filter(|(_, _, prediction)| prediction.recomputed_blocks > 0)
        .map(|(i, _, prediction)| {
            format!("{} of rank {i}", plural(prediction.recomputed_blocks.into(), "block", "blocks"))
        })
        .collect();
    if stages.is_empty() {
        return "  recomputed: nothing\n".to_owned();
    }
    let of = &plan.prediction.recompute;
    let mut out = format!("  recomputed: {}\n", stages.join(", "));
    writeln!(
        out,
        "  recompute time {}: {} hidden, {} exposed",
        time(of.total_ps),
        time(of.hidden_ps),
        time(of.exposed_ps)
    )
    .expect("writing to a string does not fail");
    out
}
