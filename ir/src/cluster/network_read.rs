//! Reads `[network]`, and checks that it joins the nodes.

use super::codes;
use super::document::{At, Document, Section};
use super::read::{self, Mention};
use super::suggest::nearest;
use super::topology::{Link, Network, NodeGroupId, Regions};
use crate::diag::Diagnostic;
use crate::id::Id;
use std::collections::BTreeMap;

/// Reads `[network]`; `None` where something in it is wrong. A cluster without it has no links between nodes.
pub(super) fn network(
    root: &Section<'_, '_>,
    default_latency_ps: u64,
    groups: &BTreeMap<String, NodeGroupId>,
    mentions: &[Mention],
) -> Option<Network> {
    let mut network = Network::default();
    let Some(mut table) = root.table("network") else { return Some(network) };
    table.name_it("`[network]`".to_owned());
    let document = table.document();
    let before = document.n_faults();
    let latency_ps = read::latency_ps(&table);
    let given = latency_ps.unwrap_or(default_latency_ps);
    network.default = read::bandwidth(&table).map(|bytes_per_s| Link { bytes_per_s, latency_ps: given });
    let names = region_names(mentions);
    if let Some(mut between) = table.table("between_regions") {
        between.name_it("`[network.between_regions]`".to_owned());
        network.regions.default = pair_value(&between, network.default, given);
        between.finish();
    }
    for mut link in table.tables("link") {
        link.name_it("`[[network.link]]`".to_owned());
        let value = pair_value(&link, network.default, given);
        if link.has("regions").is_some() {
            region_link(&link, value, &names, &mut network.regions);
            link.finish();
            continue;
        }
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
    let regions = &mut network.regions;
    let apart = regions.default.is_some() || !regions.pairs.is_empty();
    if apart {
        let number = |mention: &Mention| mention.region.as_ref().and_then(|region| names.get(region.as_str()).copied());
        regions.of_groups = mentions.iter().map(number).collect();
    }
    let alone = network.default.is_none() && network.pairs.is_empty() && !apart;
    if latency_ps.is_some() && alone && document.n_faults() == before {
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

/// The regions of the groups, each with a number.
fn region_names(mentions: &[Mention]) -> BTreeMap<&str, u32> {
    let mut names = BTreeMap::new();
    for region in mentions.iter().filter_map(|mention| mention.region.as_deref()) {
        let next = names.len() as u32;
        names.entry(region).or_insert(next);
    }
    names
}

/// Reads a link between two regions, which is the same in both directions.
fn region_link(
    table: &Section<'_, '_>,
    value: Option<Option<Link>>,
    names: &BTreeMap<&str, u32>,
    regions: &mut Regions,
) {
    let document = table.document();
    if ["between", "from", "to"].iter().any(|key| table.has(key).is_some()) {
        let message = "a network link has both `regions` and `between`, `from` or `to`".to_owned();
        document.fault(codes::CONFLICTING_KEYS, message, table.span.clone(), "keep one of the two");
    }
    let Some(given) = table.texts("regions") else { return };
    let [a, b] = given.value.as_slice() else {
        let message = format!("`regions` names two regions, found {}", given.value.len());
        document.fault(codes::WRONG_TYPE, message, given.span, "expected two regions");
        return;
    };
    let find = |name: &At<&str>| {
        let found = names.get(name.value).copied();
        if found.is_none() {
            let message = format!("a network link names the region `{}`, which no group has", name.value);
            let diagnostic = Diagnostic::error(codes::UNKNOWN_GROUP, message);
            let diagnostic = diagnostic.at(document.place(name.span.clone()), "no group is there");
            document.push(match nearest(name.value, document.suggestions(names.keys().copied())) {
                Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
                None => diagnostic.with_help("name it as the `region` of a group does"),
            });
        }
        found
    };
    let (Some(from), Some(to)) = (find(a), find(b)) else { return };
    if from == to {
        let message = format!("a network link joins the region `{}` with itself", a.value);
        document.fault(codes::CONFLICTING_KEYS, message, given.span, "expected two different regions");
        return;
    }
    let Some(value) = value else { return };
    let twice = regions.pairs.insert((from, to), value).is_some();
    regions.pairs.insert((to, from), value);
    if twice {
        let message = format!("the link between the regions `{}` and `{}` is given twice", a.value, b.value);
        document.fault(codes::DUPLICATE_LINK, message, table.span.clone(), "the second one");
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
            document.push(match nearest(name.value, document.suggestions(groups.keys().map(String::as_str))) {
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
        let back = network.link(to, from);
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
        join(&mut parents, from.index(), to.index());
    }
    join_regions(network, &mut parents);
    if let Some(stranger) = (1..groups.len()).find(|&i| root(&mut parents, i) != 0) {
        let (first, other) = (&groups[0], &groups[stranger]);
        let message = format!("group `{}` cannot reach group `{}`", other.name, first.name);
        document.fault(codes::DISCONNECTED, message, other.span.clone(), "no link to it");
        document.help(CONNECT);
    }
}

/// Joins the groups whose regions are linked, or are said not to be.
fn join_regions(network: &Network, parents: &mut [usize]) {
    let regions = &network.regions;
    let mut first: BTreeMap<u32, usize> = BTreeMap::new();
    for (group, region) in regions.of_groups.iter().enumerate() {
        if let Some(region) = region {
            first.entry(*region).or_insert(group);
        }
    }
    // Each group of a region is linked to each of another: through it to the others of its own region.
    let mut partners: BTreeMap<u32, u32> = regions.pairs.keys().copied().collect();
    if regions.default.is_some() && first.len() > 1 {
        let ids: Vec<u32> = first.keys().copied().collect();
        for (i, region) in ids.iter().enumerate() {
            partners.entry(*region).or_insert(ids[(i + 1) % ids.len()]);
        }
    }
    for (group, region) in regions.of_groups.iter().enumerate() {
        let partner = region.and_then(|region| partners.get(&region)).and_then(|partner| first.get(partner));
        if let Some(other) = partner {
            join(parents, group, *other);
        }
    }
    if regions.default.is_some() {
        for other in first.values() {
            join(parents, first.values().next().copied().unwrap_or(*other), *other);
        }
    }
    for (a, b) in regions.pairs.keys() {
        if let (Some(a), Some(b)) = (first.get(a), first.get(b)) {
            join(parents, *a, *b);
        }
    }
}

const CONNECT: &str = "add `[network]` with `bandwidth_gbps`, or a `[[network.link]]`; say `connected = false` in one where there is none";

/// Puts two groups into one set, whose root is its first group.
fn join(parents: &mut [usize], a: usize, b: usize) {
    let (a, b) = (root(parents, a), root(parents, b));
    parents[a.max(b)] = a.min(b);
}

fn root(parents: &mut [usize], mut node: usize) -> usize {
    while parents[node] != node {
        parents[node] = parents[parents[node]];
        node = parents[node];
    }
    node
}
