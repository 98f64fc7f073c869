//! A cluster: groups of equal nodes and the links between them.

use super::catalogue::Catalogue;
use super::contention::Contention;
use super::gpu::{GpuType, LinkKind};
use super::read;
use super::reserve::MemoryReserve;
use crate::diag::Diagnostics;
use crate::id::Table;
use std::collections::BTreeMap;
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
        self.network.pairs.get(&(from, to)).copied().unwrap_or(self.network.default)
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
