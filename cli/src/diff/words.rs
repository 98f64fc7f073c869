//! Differences in words, the most important first: what the plans need and take, where the model lies, what was asked
//! for, what is inside.

use super::condition::Metric;
use super::facts::RankFacts;
use super::{Difference, Facts, inside};
use crate::infeasible::join_units;
use crate::units::{bytes, percent, plural};
use std::collections::BTreeMap;
use trainc_ir::plan::Breakdown;

/// All differences.
pub(super) fn differences(a: &Facts, b: &Facts) -> Vec<Difference> {
    let mut found = Vec::new();
    found.extend(value("gpus", "GPUs", &a.gpus(), &b.gpus()));
    found.extend(figure(a, b, Metric::Step, "step", "step time", ("slower", "faster")));
    found.extend(figure(a, b, Metric::Peak, "peak", "memory of the fullest GPU", ("more", "less")));
    found.extend(figure(a, b, Metric::Bubble, "bubble", "bubble", ("more", "less")));
    found.extend(figure(a, b, Metric::ExposedRecompute, "exposed-recompute", "exposed recompute", ("more", "less")));
    if a.exposed_recompute_ps == b.exposed_recompute_ps {
        found.extend(figure(a, b, Metric::Recompute, "recompute", "recompute", ("more", "less")));
    }
    found.extend(figure(a, b, Metric::Parameters, "parameters", "weights of all ranks", ("more", "less")));
    found.extend(value("stages", "stages", &a.stages().to_string(), &b.stages().to_string()));
    found.extend(ranks(a, b));
    found.extend(units(a, b));
    found.extend(policies(a, b));
    found.extend(value("model", "model", &a.model, &b.model));
    found.extend(value("cluster", "cluster", &a.cluster, &b.cluster));
    let micro_batches = [a, b].map(|facts| facts.micro_batches.to_string());
    found.extend(value("micro-batches", "micro-batches of a step", &micro_batches[0], &micro_batches[1]));
    if let (Some(a), Some(b)) = (&a.plan, &b.plan) {
        found.extend(inside::differences(a, b));
        if found.is_empty() && a != b {
            let text = "the plans differ in the order of their instructions or the places of their buffers only";
            found.push(Difference { topic: "layout", text: text.to_owned(), unit: None, before: None, after: None });
        }
    }
    found
}

/// A text that changed.
pub(super) fn value(topic: &'static str, name: &str, a: &str, b: &str) -> Option<Difference> {
    (a != b).then(|| Difference {
        topic,
        text: format!("{name}: {} -> {}", or_none(a), or_none(b)),
        unit: None,
        before: Some(a.into()),
        after: Some(b.into()),
    })
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

/// A figure that changed, with how much and in which direction.
fn figure(
    a: &Facts,
    b: &Facts,
    metric: Metric,
    topic: &'static str,
    name: &str,
    (up, down): (&str, &str),
) -> Option<Difference> {
    let (before, after) = (metric.of(a), metric.of(b));
    if before == after {
        return None;
    }
    let change = match metric {
        Metric::Bubble => String::new(),
        _ if before == 0 => String::new(),
        // Less than what one decimal shows of a percent.
        _ if before.abs_diff(after) < before / 1000 => metric.shown(before.abs_diff(after)),
        _ => percent(before.abs_diff(after), before),
    };
    let way = if after > before { up } else { down };
    let change = if change.is_empty() { format!(" ({way})") } else { format!(" ({change} {way})") };
    let text = format!("{name}: {} -> {}{change}", metric.shown(before), metric.shown(after));
    let unit = Some(metric.unit());
    Some(Difference { topic, text, unit, before: Some(before.into()), after: Some(after.into()) })
}

/// Ranks whose memory changed, those with equal words together.
fn ranks(a: &Facts, b: &Facts) -> Vec<Difference> {
    if a.ranks.len() != b.ranks.len() {
        return Vec::new();
    }
    let mut texts: Vec<(String, Vec<usize>)> = Vec::new();
    for (i, (a, b)) in a.ranks.iter().zip(&b.ranks).enumerate() {
        let Some(text) = rank(a, b) else { continue };
        match texts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, ranks)) => ranks.push(i),
            None => texts.push((text, vec![i])),
        }
    }
    let difference = |(text, ranks): (String, Vec<usize>)| {
        let names: Vec<String> = ranks.iter().map(|rank| format!("rank {rank}")).collect();
        Difference {
            topic: "rank",
            text: format!("{}: {text}", join_units(&names)),
            unit: None,
            before: None,
            after: None,
        }
    };
    texts.into_iter().map(difference).collect()
}

fn rank(a: &RankFacts, b: &RankFacts) -> Option<String> {
    let mut parts = Vec::new();
    if a.gpu != b.gpu {
        parts.push(format!("now a {} instead of a {}", b.gpu, a.gpu));
    }
    if a.device_bytes != b.device_bytes {
        let why = largest_changes(&a.breakdown, &b.breakdown);
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        parts.push(format!("memory {} -> {}{why}", bytes(a.device_bytes), bytes(b.device_bytes)));
    } else if a.arena_bytes != b.arena_bytes {
        parts.push(format!("arena {} -> {}", bytes(a.arena_bytes), bytes(b.arena_bytes)));
    }
    if !parts.is_empty() && b.device_bytes > b.capacity_bytes {
        parts.push(format!("more than the {} that it has", bytes(b.capacity_bytes)));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The changes that make up a difference in memory, largest first.
fn largest_changes(a: &Breakdown, b: &Breakdown) -> String {
    let parts = a.parts().into_iter().zip(b.parts());
    let mut changes: Vec<(&str, u64, u64)> =
        parts.map(|((name, a), (_, b))| (name, a, b)).filter(|(_, a, b)| a != b).collect();
    changes.sort_by_key(|(_, a, b)| std::cmp::Reverse(a.abs_diff(*b)));
    let shown = |(name, a, b): &(&str, u64, u64)| {
        let sign = if b > a { '+' } else { '-' };
        format!("{name} {sign}{}", bytes(a.abs_diff(*b)))
    };
    changes.iter().take(3).map(shown).collect::<Vec<_>>().join(", ")
}

/// Units that are on another stage, or in one of the plans only.
fn units(a: &Facts, b: &Facts) -> Vec<Difference> {
    let places = |facts: &Facts| {
        let mut places: BTreeMap<String, u32> = BTreeMap::new();
        let mut order = Vec::new();
        for rank in &facts.ranks {
            for unit in &rank.units {
                if places.insert(unit.clone(), rank.stage).is_none() {
                    order.push(unit.clone());
                }
            }
        }
        (places, order)
    };
    let ((before, old), (after, new)) = (places(a), places(b));
    let mut moved: BTreeMap<(u32, u32), Vec<String>> = BTreeMap::new();
    for unit in &new {
        if let (Some(&from), Some(&to)) = (before.get(unit), after.get(unit))
            && from != to
        {
            moved.entry((from, to)).or_default().push(unit.clone());
        }
    }
    let mut found: Vec<Difference> = moved
        .into_iter()
        .map(|((from, to), units)| Difference {
            topic: "units",
            text: format!("{} moved from stage {from} to stage {to}", join_units(&units)),
            unit: None,
            before: Some(from.into()),
            after: Some(to.into()),
        })
        .collect();
    let only = |order: &[String], other: &BTreeMap<String, u32>| {
        let units: Vec<String> = order.iter().filter(|unit| !other.contains_key(*unit)).cloned().collect();
        (!units.is_empty()).then(|| join_units(&units))
    };
    let gone = only(&old, &after).map(|units| format!("units only in the first plan: {units}"));
    let added = only(&new, &before).map(|units| format!("units only in the second plan: {units}"));
    found.extend([gone, added].into_iter().flatten().map(|text| Difference {
        topic: "units",
        text,
        unit: None,
        before: None,
        after: None,
    }));
    found
}

/// Stages that recompute other numbers of blocks.
fn policies(a: &Facts, b: &Facts) -> Vec<Difference> {
    let of_stages = |facts: &Facts| {
        let ranks = facts.ranks.iter().map(|rank| (rank.stage, u64::from(rank.recomputed_blocks)));
        ranks.collect::<BTreeMap<u32, u64>>()
    };
    let (before, after) = (of_stages(a), of_stages(b));
    let changed = after.iter().filter_map(|(stage, n)| {
        let old = before.get(stage).copied().unwrap_or(0);
        (old != *n).then(|| Difference {
            topic: "recomputed-blocks",
            text: format!("stage {stage} recomputes {} instead of {old}", plural(*n, "block", "blocks")),
            unit: None,
            before: Some(old.into()),
            after: Some((*n).into()),
        })
    });
    changed.collect()
}
