//! Reads what `kubectl get nodes -o json` prints.

use super::gather::{GFD_PRODUCT, Gathering, Offer};
use super::product::Slice;
use crate::cluster::codes;
use crate::cluster::labels::{KUBERNETES_PRODUCTS, KUBERNETES_RESOURCE};
use crate::diag::Diagnostic;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A `Node`, as far as it matters.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Node {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    unschedulable: Option<bool>,
    taints: Option<Vec<Taint>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Taint {
    key: String,
    effect: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    capacity: Option<BTreeMap<String, Value>>,
    allocatable: Option<BTreeMap<String, Value>>,
    conditions: Option<Vec<Condition>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

const MIG: &str = "nvidia.com/mig-";
const GPU: &str = "nvidia.com/gpu";
/// What time-slicing renames the resource to, where it is told to.
const SHARED: &str = "nvidia.com/gpu.shared";

/// Device resources of other makers, each with the labels that tell the type, and the type where none does.
const OTHERS: [(&str, &[&str], Option<&str>); 6] = [
    ("amd.com/gpu", &["amd.com/gpu.product-name", "beta.amd.com/gpu.product-name"], None),
    ("habana.ai/gaudi", &["habana.ai/gaudi.product"], Some("Gaudi2")),
    ("gpu.intel.com/i915", &["gpu.intel.com/product"], None),
    ("gpu.intel.com/xe", &["gpu.intel.com/product"], None),
    ("aws.amazon.com/neuron", &["node.kubernetes.io/instance-type"], None),
    ("google.com/tpu", &["cloud.google.com/gke-tpu-accelerator"], None),
];

/// Labels that a request selects nodes by, where they are there; the first spelling of each goes into the request.
const SELECTORS: [&[&str]; 2] = [
    &["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"],
    &["node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"],
];
const REGIONS: [&str; 2] = ["topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"];

/// Takes the GPUs of all nodes.
pub(super) fn nodes(nodes: Vec<Node>, gathering: &mut Gathering<'_>) {
    let mut names = std::collections::BTreeSet::new();
    for node in nodes {
        let name = node.metadata.name.clone();
        gathering.saw();
        if !names.insert(name.clone()) {
            let help = "give every node once";
            gathering.fault(codes::DUPLICATE_NAME, format!("node `{name}` is described twice"), help);
            continue;
        }
        one(&node, gathering);
    }
}

fn one(node: &Node, gathering: &mut Gathering<'_>) {
    let name = &node.metadata.name;
    let resources = node.status.allocatable.as_ref().or(node.status.capacity.as_ref());
    let devices: Vec<(&str, u64)> = resources
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| {
            let is_device =
                key == GPU || key == SHARED || key.starts_with(MIG) || OTHERS.iter().any(|(other, ..)| other == key);
            is_device.then(|| quantity(value).map(|n| (key.as_str(), n))).flatten()
        })
        .collect();
    let capacity = |key: &str| node.status.capacity.as_ref().and_then(|all| all.get(key)).and_then(quantity);
    let broken = devices.iter().filter(|(key, n)| capacity(key).is_some_and(|all| all > *n)).count();
    let devices: Vec<(&str, u64)> = devices.into_iter().filter(|(_, n)| *n > 0).collect();
    if devices.is_empty() {
        let reason = if broken > 0 { "its GPUs are not allocatable (unhealthy)" } else { "no GPUs" };
        gathering.leave_out(reason, name);
        return;
    }
    if let Some(reason) = unusable(node) {
        gathering.leave_out(reason, name);
        return;
    }
    if broken > 0 {
        let message = format!("some GPUs of node `{name}` are not allocatable (unhealthy), and are left out");
        gathering.notes.push(Diagnostic::note(codes::LEFT_OUT, message));
    }
    for (key, count) in devices {
        device(node, key, count, gathering);
    }
}

fn device(node: &Node, resource: &str, count: u64, gathering: &mut Gathering<'_>) {
    let name = &node.metadata.name;
    let mut offer = Offer { count, region: first(node, &REGIONS), ..Offer::default() };
    for spellings in SELECTORS {
        if let (Some(key), Some(value)) = (spellings.first(), first(node, spellings)) {
            offer.labels.insert((*key).to_owned(), value);
        }
    }
    if let Some((_, labels, product)) = OTHERS.iter().find(|(other, ..)| *other == resource) {
        offer.product_label = told(node, labels);
        offer.product = first(node, labels);
        if let (None, Some(guess)) = (&offer.product, product) {
            gathering.guess(resource, guess, name);
            offer.product = Some((*guess).to_owned());
        }
        gathering.offer(name, offer);
        return;
    }
    let product = first(node, &[GFD_PRODUCT]);
    let shared = resource == SHARED
        || product.as_deref().is_some_and(|product| product.ends_with("-SHARED"))
        || label(node, "nvidia.com/gpu.replicas").and_then(|n| n.parse::<u64>().ok()).is_some_and(|n| n > 1);
    let product = product.map(|product| product.trim_end_matches("-SHARED").to_owned());
    // Where GPU feature discovery does not run.
    let product = product.or_else(|| first(node, &KUBERNETES_PRODUCTS[1..]));
    offer.product_label = told(node, &KUBERNETES_PRODUCTS);
    let memory = |key: &str| label(node, key).and_then(|mib| mib.parse::<u64>().ok()).filter(|&mib| mib > 0);
    if let Some(profile) = resource.strip_prefix(MIG) {
        let Some(slice) = Slice::parse(profile) else {
            gathering.leave_out(format!("`{resource}` names no slice that is known"), name);
            return;
        };
        offer.memory_mib = memory(&format!("{MIG}{profile}.memory"));
        offer.labels.insert(KUBERNETES_RESOURCE.to_owned(), resource.to_owned());
        offer.slice = Some(slice);
        offer.product = product;
    } else {
        offer.memory_mib = memory("nvidia.com/gpu.memory");
        match product.as_deref().and_then(Slice::split) {
            Some((gpu, slice)) => {
                offer.product = Some(gpu.to_owned());
                offer.slice = Some(slice);
            }
            None => offer.product = product,
        }
    }
    if shared {
        let physical = label(node, "nvidia.com/gpu.count").and_then(|n| n.parse::<u64>().ok());
        match physical.filter(|_| gathering.options.shared) {
            Some(physical) => offer.count = physical.min(count),
            None => {
                gathering.leave_out(
                    "its GPUs are shared by time-slicing; `trainc cluster import --shared` offers them",
                    name,
                );
                return;
            }
        }
    }
    gathering.offer(name, offer);
}

/// Why nothing can be placed on a node.
fn unusable(node: &Node) -> Option<String> {
    if node.spec.unschedulable == Some(true) {
        return Some("cordoned (unschedulable)".to_owned());
    }
    let conditions = node.status.conditions.as_deref().unwrap_or_default();
    if conditions.iter().any(|condition| condition.kind == "Ready" && condition.status != "True") {
        return Some("not ready".to_owned());
    }
    // Device taints are tolerated by requests.
    let device = |key: &str| key == GPU || OTHERS.iter().any(|(other, ..)| *other == key);
    let taints = node.spec.taints.as_deref().unwrap_or_default();
    let taint = taints.iter().find(|taint| taint.effect != "PreferNoSchedule" && !device(&taint.key))?;
    Some(format!("tainted with `{}`", taint.key))
}

fn label<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    node.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// The first of the labels that is there.
fn first(node: &Node, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| label(node, key)).filter(|value| !value.is_empty()).map(str::to_owned)
}

/// The first of the labels that is there, with its value.
fn told(node: &Node, keys: &[&'static str]) -> Option<(&'static str, String)> {
    let mut found = keys.iter().filter_map(|key| label(node, key).map(|value| (*key, value.to_owned())));
    found.find(|(_, value)| !value.is_empty())
}

/// A whole number of devices, written as a number or a text.
fn quantity(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => super::gres::number(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
