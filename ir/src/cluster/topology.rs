//! A cluster: groups of equal nodes and the links between them.

use super::catalogue::Catalogue;
use super::contention::Contention;
use super::gpu::{GpuType, LinkKind};
use super::read;
use super::reserve::MemoryReserve;
use crate::diag::Diagnostics;
use crate::id::{Id, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

crate::id!(
    /// A group of equal nodes of a cluster.
    NodeGroupId,
    "g"
);

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Bytes per second. Inside a node: of one GPU to the other GPUs together. Between nodes: of one node to the other
    /// node; all GPUs of a node share it.
    pub bytes_per_s: u64,
    /// Time of the smallest message.
    pub latency_ps: u64,
}

/// Equal nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeGroup {
    /// Its name, unique in the cluster.
    pub name: String,
    /// The type of all its GPUs.
    pub gpu: Arc<GpuType>,
    /// How many nodes.
    pub nodes: u32,
    /// How many GPUs each node has.
    pub gpus_per_node: u32,
    /// How the GPUs of a node are joined.
    pub link_kind: LinkKind,
    /// The link between two GPUs of a node.
    pub link: Link,
    /// Labels of the nodes, as the cluster's scheduler knows them.
    pub labels: BTreeMap<String, String>,
    /// Where the nodes are.
    pub region: Option<String>,
    /// Price of one GPU in millionths of a US dollar per hour: the group's own, or the lowest of the catalogue.
    pub price_micro_usd_per_hour: Option<u64>,
    /// Bytes of each GPU that buffers cannot use.
    pub reserve: MemoryReserve,
}

impl NodeGroup {
    /// GPUs of all its nodes.
    pub fn n_gpus(&self) -> u32 {
        self.nodes * self.gpus_per_node
    }

    /// Whether its nodes are equal to those of the other.
    fn is_like(&self, other: &Self) -> bool {
        let alone = |group: &Self| Self { name: String::new(), nodes: 1, ..group.clone() };
        alone(self) == alone(other)
    }

    /// Bytes of one GPU that a program sees. What a plan needs of it ([`MemoryReserve::beyond_arena`] and the arena) must
    /// fit in them.
    pub fn capacity_bytes(&self) -> u64 {
        self.reserve.capacity_of(self.gpu.memory_bytes)
    }

    /// Bytes left for the arena of a rank with that many streams and with communicators of those sizes.
    pub fn arena_budget(&self, n_streams: u32, communicators: &[u32]) -> u64 {
        self.capacity_bytes().saturating_sub(self.reserve.beyond_arena(n_streams, communicators))
    }
}

/// The links between nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Network {
    /// Between any two nodes that no entry of `pairs` speaks of.
    pub(super) default: Option<Link>,
    /// By sending and receiving group; `None` where they are cut off from each other.
    pub(super) pairs: BTreeMap<(NodeGroupId, NodeGroupId), Option<Link>>,
    /// What joins two regions.
    pub(super) regions: Regions,
}

/// The links between nodes of different regions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Regions {
    /// The number of each group's region, where it has one and the file says something of links between regions.
    pub(super) of_groups: Vec<Option<u32>>,
    /// Between any two regions that no entry of `pairs` speaks of: `None` where they are as far apart as any two nodes,
    /// `Some(None)` where they are cut off from each other.
    pub(super) default: Option<Option<Link>>,
    /// By sending and receiving region.
    pub(super) pairs: BTreeMap<(u32, u32), Option<Link>>,
}

impl Regions {
    /// The region of a group, where links depend on it.
    fn of(&self, group: NodeGroupId) -> Option<u32> {
        self.of_groups.get(group.index()).copied().flatten()
    }
}

impl Network {
    /// What joins a node of `from` and another node of `to`.
    pub(super) fn link(&self, from: NodeGroupId, to: NodeGroupId) -> Option<Link> {
        if let Some(link) = self.pairs.get(&(from, to)) {
            return *link;
        }
        let apart = match (self.regions.of(from), self.regions.of(to)) {
            (Some(a), Some(b)) if a != b => self.regions.pairs.get(&(a, b)).copied().or(self.regions.default),
            (Some(_) | None, _) => None,
        };
        apart.unwrap_or(self.default)
    }
}

/// A cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Its groups, in the order of the file. At least one, with at least one GPU each.
    pub groups: Table<NodeGroupId, NodeGroup>,
    /// How much computation and transfers slow each other on a GPU.
    pub contention: Contention,
    pub(super) network: Network,
}

impl Cluster {
    /// Reads a cluster description with the built-in catalogue. `file` is only spelled in diagnostics.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, Diagnostics> {
        read::cluster(&Catalogue::builtin(), file, text)
    }

    /// Reads a cluster description with a catalogue of the caller.
    pub fn from_toml_with(catalogue: &Catalogue, file: &str, text: &str) -> Result<Self, Diagnostics> {
        read::cluster(catalogue, file, text)
    }

    /// The link from a GPU of `from` to a GPU of `to`, or `None` where they are not connected. GPUs of different groups
    /// are never on the same node, whatever `same_node` says.
    pub fn link(&self, from: NodeGroupId, to: NodeGroupId, same_node: bool) -> Option<Link> {
        if same_node && from == to {
            return Some(self.groups[from].link);
        }
        self.network.link(from, to)
    }

    /// The link between any two nodes that nothing else is said of.
    pub fn default_link(&self) -> Option<Link> {
        self.network.default
    }

    /// The links that are described group by group, from one to another; `None` where they are cut off from each other.
    pub fn listed_links(&self) -> impl Iterator<Item = (NodeGroupId, NodeGroupId, Option<Link>)> {
        self.network.pairs.iter().map(|(&(from, to), &link)| (from, to, link))
    }

    /// What joins any two regions, where that differs from two nodes of one; `Some(None)` where nothing does.
    pub fn link_between_regions(&self) -> Option<Option<Link>> {
        self.network.regions.default
    }

    /// The links that are described region by region, each once.
    pub fn region_links(&self) -> impl Iterator<Item = (&str, &str, Option<Link>)> {
        let regions = &self.network.regions;
        let mut names: BTreeMap<u32, &str> = BTreeMap::new();
        for (number, group) in regions.of_groups.iter().zip(self.groups.values()) {
            if let (Some(number), Some(region)) = (number, &group.region) {
                names.entry(*number).or_insert(region);
            }
        }
        let once = regions.pairs.iter().filter(|((a, b), _)| a < b);
        once.filter_map(move |((a, b), link)| Some((*names.get(a)?, *names.get(b)?, *link)))
    }

    /// This cluster with groups of equal nodes joined: of the same GPUs, links, labels, region and price. Groups that a
    /// link is described of by name stay as they are. A joined group has the name of its first.
    #[must_use]
    pub fn merged(&self) -> Self {
        let named: BTreeSet<NodeGroupId> = self.network.pairs.keys().flat_map(|&(from, to)| [from, to]).collect();
        let mut kept: Vec<NodeGroupId> = Vec::new();
        let mut nodes: Vec<u32> = Vec::new();
        let mut alike: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (id, group) in self.groups.iter() {
            let key = (group.gpu.name.as_str(), group.gpus_per_node, group.region.as_deref(), &group.labels);
            let positions = alike.entry(key).or_default();
            let same = |position: &&usize| self.groups[kept[**position]].is_like(group);
            let same = if named.contains(&id) { None } else { positions.iter().find(same) };
            match same {
                Some(&position) => {
                    // Counts of GPUs fit in 32 bits.
                    let most = u32::MAX / group.gpus_per_node.max(1);
                    nodes[position] = nodes[position].saturating_add(group.nodes).min(most);
                }
                None => {
                    if !named.contains(&id) {
                        positions.push(kept.len());
                    }
                    kept.push(id);
                    nodes.push(group.nodes);
                }
            }
        }
        self.rebuilt(&kept, &nodes)
    }

    /// This cluster as estimates see it: every GPU counts as one that programs can be emitted for.
    #[must_use]
    pub fn for_estimates(&self) -> Self {
        let mut cluster = self.clone();
        for (_, group) in cluster.groups.iter_mut() {
            if !group.gpu.cuda {
                group.gpu = Arc::new(GpuType { cuda: true, ..GpuType::clone(&group.gpu) });
            }
        }
        cluster
    }

    /// This cluster with these groups alone.
    #[must_use]
    pub fn only(&self, groups: &[NodeGroupId]) -> Self {
        let nodes: Vec<u32> = groups.iter().map(|&id| self.groups[id].nodes).collect();
        self.rebuilt(groups, &nodes)
    }

    fn rebuilt(&self, kept: &[NodeGroupId], nodes: &[u32]) -> Self {
        let group = |(&id, &nodes): (&NodeGroupId, &u32)| NodeGroup { nodes, ..self.groups[id].clone() };
        let positions: BTreeMap<NodeGroupId, NodeGroupId> =
            kept.iter().enumerate().map(|(i, &id)| (id, NodeGroupId::from_index(i))).collect();
        let pair = |(&(from, to), &link): (&(NodeGroupId, NodeGroupId), &Option<Link>)| {
            Some(((*positions.get(&from)?, *positions.get(&to)?), link))
        };
        let regions = &self.network.regions;
        let of_kept = || kept.iter().map(|&id| regions.of(id)).collect();
        let of_groups = if regions.of_groups.is_empty() { Vec::new() } else { of_kept() };
        Self {
            name: self.name.clone(),
            contention: self.contention.clone(),
            groups: kept.iter().zip(nodes).map(group).collect(),
            network: Network {
                default: self.network.default,
                pairs: self.network.pairs.iter().filter_map(pair).collect(),
                regions: Regions { of_groups, default: regions.default, pairs: regions.pairs.clone() },
            },
        }
    }

    /// The group of that name.
    pub fn group(&self, name: &str) -> Option<NodeGroupId> {
        self.groups.iter().find(|(_, group)| group.name == name).map(|(id, _)| id)
    }

    /// GPUs of all groups.
    pub fn n_gpus(&self) -> u64 {
        self.groups.values().map(|group| u64::from(group.n_gpus())).sum()
    }

    /// How many GPUs of each type there are, in order of first mention.
    pub fn gpus_by_type(&self) -> Vec<(Arc<GpuType>, u64)> {
        let mut counts: Vec<(Arc<GpuType>, u64)> = Vec::new();
        let mut positions = BTreeMap::new();
        for group in self.groups.values() {
            let position = *positions.entry(group.gpu.name.as_str()).or_insert(counts.len());
            if position == counts.len() {
                counts.push((Arc::clone(&group.gpu), 0));
            }
            counts[position].1 += u64::from(group.n_gpus());
        }
        counts
    }
}
