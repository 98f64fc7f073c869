//! Reads a cluster description; `docs/cluster.md` documents the format.

use super::catalogue::Catalogue;
use super::codes;
use super::contention;
use super::document::{self, Document, Section};
use super::gpu::{GpuType, LinkKind};
use super::gpu_read::{self, GB_PER_S, LATENCY_US, MICRO_USD, PS_PER_US, USD_PER_HOUR};
use super::network_read;
use super::reserve::MemoryReserve;
use super::topology::{Cluster, Link, Network, NodeGroup, NodeGroupId};
use crate::diag::{Diagnostic, Diagnostics};
use crate::id::{Id, Table};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

const MOST_NODES: u64 = 100_000;
const MOST_GPUS_PER_NODE: u64 = 1024;

/// A group as the network section sees it, whether or not its own table could be read.
pub(super) struct Mention {
    pub(super) name: String,
    pub(super) nodes: u32,
    pub(super) region: Option<String>,
    pub(super) span: Range<usize>,
}

pub(super) fn cluster(catalogue: &Catalogue, file: &str, text: &str) -> Result<Cluster, Diagnostics> {
    let (document, root) = document::parse(file, text)?;
    let section = document.root(&root);
    let name = section.text("name").map_or_else(|| "cluster".to_owned(), |at| at.value.to_owned());

    let mut catalogue = Cow::Borrowed(catalogue);
    if section.has("gpu").is_some() {
        gpu_read::types(&section, catalogue.to_mut());
    }
    let mut reading = Reading { document: &document, catalogue: &catalogue, reserves: BTreeMap::new() };
    let tables = section.tables("group");
    if tables.is_empty() && section.has("group").is_none() {
        let diagnostic = Diagnostic::error(codes::NO_GPUS, format!("cluster `{name}` has no GPUs"));
        let diagnostic = diagnostic.at(document.place(0..0), "no `[[group]]` table in this file");
        let help = "describe equal nodes as a group: `[[group]]` with `name`, `gpu`, `nodes` and `gpus_per_node`";
        document.push(diagnostic.with_help(help));
    }
    let mut mentions: BTreeMap<String, NodeGroupId> = BTreeMap::new();
    let mut order: Vec<Mention> = Vec::new();
    let mut groups: Vec<NodeGroup> = Vec::new();
    for mut table in tables {
        let (mention, group) = reading.group(&section, &mut table, order.len());
        if mentions.insert(mention.name.clone(), NodeGroupId::from_index(order.len())).is_some() {
            let message = format!("group `{}` is described twice", mention.name);
            document.fault(codes::DUPLICATE_NAME, message, mention.span.clone(), "the second one");
        }
        order.push(mention);
        groups.extend(group);
        table.finish();
    }
    let network = match network_read::network(&section, catalogue.defaults.network_latency_ps, &mentions, &order) {
        Some(network) if document.is_clean() => {
            network_read::check_connected(&document, &network, &order);
            network
        }
        Some(_) | None => Network::default(),
    };
    // A plain `[reserve]` without a group is asked for here, so that it is known and its own faults are found.
    let _ = reading.reserve(&section, None);
    let contention = contention::contention(&section, &catalogue.defaults.contention);
    section.finish();
    if document.is_clean() {
        let groups: Table<NodeGroupId, NodeGroup> = groups.into_iter().collect();
        Ok(Cluster { name, groups, contention, network })
    } else {
        Err(document.into_faults())
    }
}

struct Reading<'d, 'i, 'c> {
    document: &'d Document<'i>,
    catalogue: &'c Catalogue,
    /// The cluster's `[reserve]` over that of each GPU type, by type name: read once, not once a group.
    reserves: BTreeMap<String, MemoryReserve>,
}

impl<'i> Reading<'_, 'i, '_> {
    /// The cluster's `[reserve]` over that of the GPU type.
    fn reserve(&mut self, root: &Section<'_, 'i>, gpu: Option<&GpuType>) -> Option<MemoryReserve> {
        let Some(gpu) = gpu else {
            if self.reserves.is_empty() {
                let any = self.catalogue.types().next()?;
                gpu_read::reserve(root, &any.reserve);
            }
            return None;
        };
        let reserve = self.reserves.entry(gpu.name.clone());
        Some(reserve.or_insert_with(|| gpu_read::reserve(root, &gpu.reserve)).clone())
    }

    fn group(
        &mut self,
        root: &Section<'_, 'i>,
        table: &mut Section<'_, 'i>,
        position: usize,
    ) -> (Mention, Option<NodeGroup>) {
        let named = table.text("name");
        let name = match &named {
            Some(at) => at.value.to_owned(),
            None => format!("group-{}", position + 1),
        };
        let span = named.map_or_else(|| table.span.clone(), |at| at.span);
        table.name_it(format!("group `{name}`"));
        let gpu = self.gpu(table);
        let count = |key, most, default: Option<u32>| match table.count(key, 1..=most) {
            Some(at) => Some(at.value as u32),
            None if table.has(key).is_some() => None,
            None => {
                if default.is_none() {
                    table.missing(key, &format!("say how many GPUs each node has, as `{key} = 8`"));
                }
                default
            }
        };
        let nodes = count("nodes", MOST_NODES, Some(1));
        let gpus_per_node = count("gpus_per_node", MOST_GPUS_PER_NODE, None);
        let labels = table.text_table("labels");
        let region = table.text("region").map(|at| at.value.to_owned());
        let price = table.scaled("price_usd_per_gpu_hour", USD_PER_HOUR, MICRO_USD).map(|at| at.value);
        let link = gpu.as_deref().map(|gpu| link_in_node(table, gpu, gpus_per_node));
        if link.is_none() {
            // The GPU type is at fault already; what the table of the link says is not.
            let _ = table.has("link");
        }
        let reserve = gpu.as_deref().and_then(|gpu| self.reserve(root, Some(gpu)));
        let reserve = reserve.map(|reserve| gpu_read::reserve(table, &reserve));
        if reserve.is_none() {
            let _ = table.has("reserve");
        }
        let mention = Mention { name: name.clone(), nodes: nodes.unwrap_or(1), region: region.clone(), span };
        let group = (|| {
            let gpu = gpu?;
            let (link_kind, link) = link??;
            let price = price.or(gpu.price_micro_usd_per_hour.map(|(low, _)| low));
            Some(NodeGroup {
                name,
                nodes: nodes?,
                gpus_per_node: gpus_per_node?,
                link_kind,
                link,
                labels,
                region,
                price_micro_usd_per_hour: price,
                reserve: reserve?,
                gpu,
            })
        })();
        (mention, group)
    }

    fn gpu(&self, table: &Section<'_, 'i>) -> Option<Arc<GpuType>> {
        let Some(text) = table.text("gpu") else {
            if table.has("gpu").is_none() {
                table.missing("gpu", "name the GPU type of these nodes, as `gpu = \"A100-SXM-80GB\"`");
            }
            return None;
        };
        let found = self.catalogue.find(text.value).cloned();
        if found.is_none() {
            let message = format!("unknown GPU type `{}`{}", text.value, table.inside());
            let diagnostic = Diagnostic::error(codes::UNKNOWN_GPU, message);
            let diagnostic = diagnostic.at(self.document.place(text.span), "not in the catalogue");
            let define = "describe it in this file with a `[[gpu]]` table";
            let near = if self.document.tells_more() { self.catalogue.nearest(text.value) } else { None };
            self.document.push(match near {
                Some(near) => diagnostic.with_help(format!("did you mean `{near}`? otherwise {define}")),
                None => {
                    let names: Vec<&str> = self.catalogue.types().map(|gpu| gpu.name.as_str()).collect();
                    diagnostic.with_note(format!("known types: {}", names.join(", "))).with_help(define)
                }
            });
        }
        found
    }
}

/// The link inside a node: what `link` says, else the catalogue's figures.
fn link_in_node(table: &Section<'_, '_>, gpu: &GpuType, gpus_per_node: Option<u32>) -> Option<(LinkKind, Link)> {
    let document = table.document();
    let before = document.n_faults();
    let given = table.table("link");
    let mut kind = gpu.default_link_kind();
    let (mut rate, mut latency) = (None, None);
    if let Some(link) = &given {
        let name = gpu_read::one_of(link, "kind", &LinkKind::ALL.map(LinkKind::name));
        kind = LinkKind::ALL.into_iter().find(|kind| Some(kind.name()) == name).unwrap_or(kind);
        (rate, latency) = (bandwidth(link), latency_ps(link));
    }
    if document.n_faults() > before {
        return None;
    }
    let (known_rate, known_latency) = gpu.link_figures(kind);
    let Some(bytes_per_s) = rate.or(known_rate) else {
        if gpus_per_node == Some(1) {
            // A lone GPU talks to no neighbour: its memory is the only thing that could carry the bytes.
            let lone = Link { bytes_per_s: gpu.memory_bytes_per_s, latency_ps: known_latency };
            return Some((kind, lone));
        }
        let help =
            format!("the catalogue has no {} figure for `{}`; give `bandwidth_gbytes_per_s`", kind.name(), gpu.name);
        given.as_ref().unwrap_or(table).missing("bandwidth_gbytes_per_s", &help);
        return None;
    };
    if let Some(link) = given {
        link.finish();
    }
    Some((kind, Link { bytes_per_s, latency_ps: latency.unwrap_or(known_latency) }))
}

/// One direction of a link, in bytes per second, from either of its two spellings.
pub(super) fn bandwidth(table: &Section<'_, '_>) -> Option<u64> {
    let document = table.document();
    let bits = table.has("bandwidth_gbps");
    if let (Some(_), Some(span)) = (bits, table.has("bandwidth_gbytes_per_s")) {
        let message = format!("the bandwidth{} is given twice, in bits and in bytes", table.inside());
        document.fault(codes::CONFLICTING_KEYS, message, span, "keep one of the two");
        return None;
    }
    let before = document.n_faults();
    let bits = table.scaled("bandwidth_gbps", GB_PER_S, 1e9 / 8.0);
    let rate = bits.or_else(|| table.scaled("bandwidth_gbytes_per_s", GB_PER_S, 1e9));
    if document.n_faults() > before {
        document.help("give one direction as sold; leave a link out, or say `connected = false`, where there is none");
    }
    rate.map(|at| at.value)
}

/// The latency of a link in picoseconds.
pub(super) fn latency_ps(table: &Section<'_, '_>) -> Option<u64> {
    table.scaled("latency_us", LATENCY_US, PS_PER_US).map(|at| at.value)
}
