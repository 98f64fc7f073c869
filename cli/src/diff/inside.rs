//! Differences that only whole plans show: inputs, options, parameters, kernels and segments.

use super::Difference;
use super::words::value;
use std::collections::BTreeMap;
use trainc_ir::plan::Plan;

/// All of them.
pub(super) fn differences(a: &Plan, b: &Plan) -> Vec<Difference> {
    let mut found = Vec::new();
    found.extend(inputs(a, b));
    found.extend(options(a, b));
    found.extend(value("compiler", "compiler", &a.header.compiler, &b.header.compiler));
    found.extend(parameters(a, b));
    found.extend(counted("segments", &segments(a), &segments(b)));
    found.extend(counted("kernels", &kernels(a), &kernels(b)));
    found
}

fn inputs(a: &Plan, b: &Plan) -> Vec<Difference> {
    let (a, b) = (&a.header.digests, &b.header.digests);
    let digests = [
        ("model-digest", "the model file changed", &a.model, &b.model),
        ("cluster-digest", "the cluster description changed", &a.cluster, &b.cluster),
        ("graph-digest", "the training graph changed", &a.training_graph, &b.training_graph),
    ];
    let changed = digests.into_iter().filter(|(_, _, a, b)| a != b);
    let mut found: Vec<Difference> = changed
        .map(|(topic, text, a, b)| Difference {
            topic,
            text: text.to_owned(),
            unit: None,
            before: Some(a.as_str().into()),
            after: Some(b.as_str().into()),
        })
        .collect();
    if let [only] = found.as_mut_slice()
        && only.topic == "model-digest"
    {
        only.text += ", its training graph did not";
    }
    found
}

fn options(a: &Plan, b: &Plan) -> Vec<Difference> {
    let all = |plan: &Plan| {
        let bindings = plan.header.bindings.iter().map(|(name, n)| (format!("bind {name}"), n.to_string()));
        let options = plan.header.options.iter().map(|(name, text)| (name.replace('_', "-"), text.clone()));
        bindings.chain(options).collect::<BTreeMap<String, String>>()
    };
    let (a, b) = (all(a), all(b));
    let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
    names.sort();
    names.dedup();
    let empty = String::new();
    let change = |name: &&String| {
        let (a, b) = (a.get(*name).unwrap_or(&empty), b.get(*name).unwrap_or(&empty));
        value("option", &format!("option {name}"), a, b)
    };
    names.iter().filter_map(change).collect()
}

fn parameters(a: &Plan, b: &Plan) -> Vec<Difference> {
    let all = |plan: &Plan| {
        let of = plan.parameters.iter().map(|of| {
            let trained = if of.trained { "trained" } else { "frozen" };
            (of.name.clone(), format!("{} {trained}", of.ty))
        });
        of.collect::<BTreeMap<String, String>>()
    };
    let (a, b) = (all(a), all(b));
    let mut found: Vec<Difference> = b
        .iter()
        .filter_map(|(name, of)| {
            value("parameter", &format!("parameter `{name}`"), a.get(name).map_or("", String::as_str), of)
        })
        .collect();
    found.extend(
        a.iter()
            .filter(|(name, _)| !b.contains_key(*name))
            .filter_map(|(name, of)| value("parameter", &format!("parameter `{name}`"), of, "")),
    );
    // More than a few come from another model, whose name and digest say so already.
    if found.len() > 8 {
        let text = format!("{} parameters differ in name, type or training", found.len());
        return vec![Difference { topic: "parameter", text, unit: None, before: None, after: None }];
    }
    found
}

/// How often there is a segment of each name.
fn segments(plan: &Plan) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut counts: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for segment in plan.segments.values() {
        *counts.entry(segment.name.clone()).or_default().entry(String::new()).or_default() += 1;
    }
    counts
}

/// How often there is a kernel of each operator at each types.
fn kernels(plan: &Plan) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut counts: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for kernel in plan.kernels.values() {
        let exact = serde_json::to_string(kernel).expect("a kernel holds nothing that JSON cannot spell");
        *counts.entry(kernel.op.spelling().to_owned()).or_default().entry(exact).or_default() += 1;
    }
    counts
}

/// What there is more and less of, by name.
fn counted(
    topic: &'static str,
    a: &BTreeMap<String, BTreeMap<String, u64>>,
    b: &BTreeMap<String, BTreeMap<String, u64>>,
) -> Option<Difference> {
    let more = |of: &BTreeMap<String, BTreeMap<String, u64>>, than: &BTreeMap<String, BTreeMap<String, u64>>| {
        let mut names = Vec::new();
        for (name, exact) in of {
            let other = than.get(name);
            let count = |(form, n): (&String, &u64)| {
                n.saturating_sub(other.and_then(|other| other.get(form)).copied().unwrap_or(0))
            };
            match exact.iter().map(count).sum::<u64>() {
                0 => {}
                1 => names.push(name.clone()),
                n => names.push(format!("{n} x {name}")),
            }
        }
        names
    };
    let (added, removed) = (more(b, a), more(a, b));
    let part = |what: &str, names: &[String]| (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")));
    let parts: Vec<String> = [part("added", &added), part("removed", &removed)].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| Difference {
        topic,
        text: format!("{topic}: {}", parts.join("; ")),
        unit: None,
        before: Some(removed.into()),
        after: Some(added.into()),
    })
}
