//! Reads `[network]`, and checks that it joins the nodes.

use super::codes;
use super::document::{At, Document, Section};
use super::read::{self, Mention};
use super::suggest::nearest;
use super::topology::{Link, Network, NodeGroupId};
use crate::diag::Diagnostic;
use crate::id::Id;
use std::collections::BTreeMap;

/// Reads `[network]`; `None` where something in it is wrong. A cluster without it has no links between nodes.
pub(super) fn network(
    root: &Section<'_, '_>,
    default_latency_ps: u64,
    groups: &BTreeMap<String, NodeGroupId>,
) -> Option<Network> {
    let mut network = Network::default();
    let Some(mut table) = root.table("network") else { return Some(network) };
    table.name_it("`[network]`".to_owned());
    let document = table.document();
    let before = document.n_faults();
    let latency_ps = read::latency_ps(&table);
    let given = latency_ps.unwrap_or(default_latency_ps);
    network.default = read::bandwidth(&table).map(|bytes_per_s| Link { bytes_per_s, latency_ps: given });
    for mut link in table.tables("link") {
        link.name_it("`[[network.link]]`".to_owned());
        let value = pair_value(&link, network.default, given);
        for (pair, span) in pairs(&link, groups) {
            let (Some(value), At { value: pair, .. }) = (value, pair) else { continue };
            if network.pairs.insert(pair, value).is_some() {
                document.fault(
                    codes::DUPLICATE_LINK,
                    format!("the link {span} is given twice"),
                    link.span.clone(),
                    "the second one",
                );
            }
        }
        link.finish();
    }
    if latency_ps.is_some() && network.default.is_none() && network.pairs.is_empty() && document.n_faults() == before {
        table.missing("bandwidth_gbps", "give the bandwidth between two nodes, as `bandwidth_gbps = 100`");
    }
    table.finish();
    (document.n_faults() == before).then_some(network)
}

/// The link that the table describes: `Some(None)` where it cuts the groups off from each other.
fn pair_value(table: &Section<'_, '_>, default: Option<Link>, latency_ps: u64) -> Option<Option<Link>> {
    let connected = table.flag("connected");
    let rate = read::bandwidth(table);
    let latency = read::latency_ps(table);
    match connected {
        Some(At { value: false, span }) => {
            if rate.is_some() || latency.is_some() {
                let message = "a link that is not connected has neither bandwidth nor latency".to_owned();
                table.document().fault(codes::CONFLICTING_KEYS, message, span, "says that there is no link");
                return None;
            }
            Some(None)
        }
        Some(At { value: true, .. }) | None => {
            let Some(bytes_per_s) = rate.or(default.map(|link| link.bytes_per_s)) else {
                if table.has("bandwidth_gbps").is_none() && table.has("bandwidth_gbytes_per_s").is_none() {
                    table.missing("bandwidth_gbps", "give the bandwidth of this link, as `bandwidth_gbps = 100`");
                }
                return None;
            };
            Some(Some(Link { bytes_per_s, latency_ps: latency.unwrap_or(latency_ps) }))
        }
    }
}

type Pair = (NodeGroupId, NodeGroupId);

/// The ordered pairs that the table speaks of, each with its spelling for messages.
fn pairs(table: &Section<'_, '_>, groups: &BTreeMap<String, NodeGroupId>) -> Vec<(At<Pair>, String)> {
    let find = |name: &At<&str>| {
        let found = groups.get(name.value).copied();
        if found.is_none() {
            let message = format!("a network link names the group `{}`, which does not exist", name.value);
            let document = table.document();
            let diagnostic = Diagnostic::error(codes::UNKNOWN_GROUP, message);
            let diagnostic = diagnostic.at(document.place(name.span.clone()), "no group of this name");
            document.push(match nearest(name.value, groups.keys().map(String::as_str)) {
                Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
                None => diagnostic.with_help("name it as the group's own table does"),
            });
        }
        found
    };
    let pair = |from: &At<&str>, to: &At<&str>| {
        let (a, b) = (find(from), find(to));
        let at = At { value: (a?, b?), span: from.span.clone() };
        Some((at, format!("from `{}` to `{}`", from.value, to.value)))
    };
    let both = table.has("between").is_some();
    let directed = table.has("from").is_some() || table.has("to").is_some();
    if both == directed {
        let document = table.document();
        let help = "write `between = [\"a\", \"b\"]` for both directions, or `from = \"a\"` and `to = \"b\"` for one";
        if both {
            let message = "a network link has both `between` and `from`/`to`".to_owned();
            document.fault(codes::CONFLICTING_KEYS, message, table.span.clone(), "keep one of the two");
            document.help(help);
        } else {
            table.missing("between", help);
        }
        let _ = (table.texts("between"), table.text("from"), table.text("to"));
        return Vec::new();
    }
    if directed {
        let (from, to) = (table.text("from"), table.text("to"));
        for key in ["from", "to"] {
            if table.has(key).is_none() {
                table.missing(key, "a link in one direction has a `from` and a `to`");
            }
        }
        return from.zip(to).and_then(|(from, to)| pair(&from, &to)).into_iter().collect();
    }
    let Some(names) = table.texts("between") else { return Vec::new() };
    let [a, b] = names.value.as_slice() else {
        let message = format!("`between` names two groups, found {}", names.value.len());
        table.document().fault(codes::WRONG_TYPE, message, names.span, "expected two group names");
        return Vec::new();
    };
    if a.value == b.value {
        return pair(a, b).into_iter().collect();
    }
    let Some(forward) = pair(a, b) else { return Vec::new() };
    let (from, to) = forward.0.value;
    let back = At { value: (to, from), span: b.span.clone() };
    let spelled = format!("from `{}` to `{}`", b.value, a.value);
    vec![forward, (back, spelled)]
}

/// Reports nodes that nothing joins, unless the file says so itself with `connected = false`.
pub(super) fn check_connected(document: &Document<'_>, network: &Network, groups: &[Mention]) {
    for (&(from, to), link) in &network.pairs {
        let back = network.pairs.get(&(to, from)).copied().unwrap_or(network.default);
        if link.is_some() && back.is_none() && !network.pairs.contains_key(&(to, from)) {
            let (a, b) = (&groups[from.index()], &groups[to.index()]);
            let message = format!("group `{}` is linked to `{}`, but `{}` not to `{}`", a.name, b.name, b.name, a.name);
            document.fault(codes::ONE_WAY_LINK, message, b.span.clone(), "has no way back");
            document.help("gradients travel against activations: use `between`, or give the way back too");
        }
    }
    if network.default.is_some() {
        return;
    }
    for (i, group) in groups.iter().enumerate() {
        let id = NodeGroupId::from_index(i);
        if group.nodes > 1 && !network.pairs.contains_key(&(id, id)) {
            let message = format!("the {} nodes of group `{}` are not connected", group.nodes, group.name);
            document.fault(codes::DISCONNECTED, message, group.span.clone(), "no link between its nodes");
            document.help(CONNECT);
        }
    }
    let mut parents: Vec<usize> = (0..groups.len()).collect();
    for &(from, to) in network.pairs.keys() {
        let (a, b) = (root(&mut parents, from.index()), root(&mut parents, to.index()));
        parents[a.max(b)] = a.min(b);
    }
    if let Some(stranger) = (1..groups.len()).find(|&i| root(&mut parents, i) != 0) {
        let (first, other) = (&groups[0], &groups[stranger]);
        let message = format!("group `{}` cannot reach group `{}`", other.name, first.name);
        document.fault(codes::DISCONNECTED, message, other.span.clone(), "no link to it");
        document.help(CONNECT);
    }
}

const CONNECT: &str = "add `[network]` with `bandwidth_gbps`, or a `[[network.link]]`; say `connected = false` in one where there is none";

fn root(parents: &mut [usize], mut node: usize) -> usize {
    while parents[node] != node {
        parents[node] = parents[parents[node]];
        node = parents[node];
    }
    node
}
