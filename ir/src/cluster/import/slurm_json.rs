//! Reads what `sinfo --json` and `scontrol show nodes --json` print, of Slurm 20.11 and later.

use super::gather::Gathering;
use super::gres;
use super::hostlist;
use super::slurm::{self, Machine};
use crate::cluster::codes;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A node: `scontrol show nodes --json`, and `sinfo --json` before Slurm 23.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Node {
    name: String,
    gres: Option<String>,
    gres_used: Option<String>,
    features: Value,
    state: Value,
    state_flags: Value,
    partitions: Option<Vec<String>>,
    cluster_name: Option<String>,
}

/// Nodes that are alike, in one partition: `sinfo --json` from Slurm 23 on.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Row {
    cluster: Option<String>,
    partition: Option<Named>,
    node: Option<State>,
    nodes: Option<Names>,
    gres: Option<Resources>,
    features: Option<Features>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct State {
    state: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Names {
    nodes: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Resources {
    total: Option<String>,
    used: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Features {
    total: Value,
}

/// Takes the GPUs of all nodes.
pub(super) fn nodes(nodes: Vec<Node>, gathering: &mut Gathering<'_>) {
    let mut seen = std::collections::BTreeSet::new();
    let mut busy = Busy::default();
    for node in nodes {
        gathering.name = gathering.name.take().or_else(|| node.cluster_name.clone());
        if !seen.insert(node.name.clone()) {
            let message = format!("node `{}` is described twice", node.name);
            gathering.fault(codes::DUPLICATE_NAME, message, "give every node once");
            continue;
        }
        busy.count(node.gres.as_deref(), node.gres_used.as_deref(), 1);
        let mut states = words(&node.state);
        states.extend(words(&node.state_flags));
        let machine = Machine {
            gres: node.gres.unwrap_or_default(),
            features: words(&node.features),
            states,
            partition: node.partitions.unwrap_or_default().into_iter().next(),
        };
        slurm::offer(&node.name, &machine, gathering);
    }
    busy.tell(gathering);
}

/// Takes the GPUs of all rows. A node is in one row for each of its partitions.
pub(super) fn rows(rows: Vec<Row>, gathering: &mut Gathering<'_>) {
    let mut machines: BTreeMap<String, usize> = BTreeMap::new();
    let mut order: Vec<(String, Machine)> = Vec::new();
    let mut busy = Busy::default();
    for row in rows {
        gathering.name = gathering.name.take().or_else(|| row.cluster.clone().filter(|name| !name.is_empty()));
        let gres = row.gres.unwrap_or_default();
        let machine = Machine {
            gres: gres.total.clone().unwrap_or_default(),
            features: row.features.map(|features| words(&features.total)).unwrap_or_default(),
            states: row.node.map(|node| words(&node.state)).unwrap_or_default(),
            partition: row.partition.and_then(|partition| partition.name),
        };
        let lists = row.nodes.map(|names| texts(&names.nodes)).unwrap_or_default();
        let mut fresh = 0;
        for list in lists {
            let names = match hostlist::expand(&list) {
                Ok(names) => names,
                Err(why) => {
                    slurm::bad_hosts(&list, &why, gathering);
                    continue;
                }
            };
            for name in names {
                let position = *machines.entry(name.clone()).or_insert(order.len());
                if position == order.len() {
                    order.push((name, machine.clone()));
                    fresh += 1;
                }
            }
        }
        if fresh > 0 {
            busy.count(gres.total.as_deref(), gres.used.as_deref(), fresh);
        }
    }
    for (name, machine) in order {
        slurm::offer(&name, &machine, gathering);
    }
    busy.tell(gathering);
}

/// How many GPUs there are, and how many of them jobs use now.
#[derive(Debug, Default)]
struct Busy {
    all: u64,
    used: u64,
}

impl Busy {
    fn count(&mut self, total: Option<&str>, used: Option<&str>, n_nodes: u64) {
        let sum = |list: Option<&str>| {
            let gpus = gres::gpus(list.unwrap_or_default()).unwrap_or_default();
            gpus.iter().fold(0u64, |sum, gres| sum.saturating_add(gres.count))
        };
        self.all = self.all.saturating_add(sum(total).saturating_mul(n_nodes));
        self.used = self.used.saturating_add(sum(used).saturating_mul(n_nodes));
    }

    fn tell(&self, gathering: &mut Gathering<'_>) {
        if self.used > 0 {
            gathering.in_use(self.used, self.all);
        }
    }
}

/// Words of a text between commas, or of a list of texts.
fn words(value: &Value) -> Vec<String> {
    let text = texts(value).join(",");
    text.split([',', '&', '+']).map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}
