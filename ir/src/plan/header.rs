//! What a plan says of itself: its origin, its ranks, and what the compiler expects of a run.

use super::{CommunicatorId, GroupId, Holder, ProgramId};
use crate::graph::InputRole;
use crate::ty::Type;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where a plan comes from. By default it says nothing, for plans that are only tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The compiler and its version.
    pub compiler: String,
    /// Name of the model.
    pub model: String,
    /// Name of the cluster.
    pub cluster: String,
    /// Digests of the inputs.
    pub digests: Digests,
    /// Bound dimensions.
    pub bindings: BTreeMap<String, u64>,
    /// The other options that shaped the plan.
    pub options: BTreeMap<String, String>,
}

/// Hexadecimal SHA-256 digests of the inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Digests {
    /// Of the model without the values of its weights.
    pub model: String,
    /// Of the training graph's text form.
    pub training_graph: String,
    /// Of the cluster description.
    pub cluster: String,
}

/// What the host feeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanInput {
    /// Name of the training graph's input.
    pub name: String,
    /// Data and labels come once per micro-batch, scalars once per step.
    pub role: InputRole,
    /// Type for one micro-batch.
    #[serde(rename = "type")]
    pub ty: Type,
}

/// A set of equal GPUs; the cluster's scheduler chooses the hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacementGroup {
    /// Name, the cluster's.
    pub name: String,
    /// GPU type by its catalogue name.
    pub gpu: String,
    /// Number of GPUs, which is the number of ranks in it.
    pub count: u32,
    /// How they must lie together.
    pub locality: Locality,
}

/// How the GPUs of a group must lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locality {
    /// Nodes to ask for.
    pub nodes: u32,
    /// GPUs on each of them.
    pub gpus_per_node: u32,
}

/// One process with one GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rank {
    /// Its placement group.
    pub group: GroupId,
    /// Its position in the group.
    pub index: u32,
    /// What it runs.
    pub program: ProgramId,
    /// Pipeline stage.
    pub stage: u32,
    /// Coordinate along the data-parallel axis.
    pub data: u32,
    /// Coordinate along the tensor-parallel axis.
    pub tensor: u32,
    /// The communicator that fills each of the program's ports.
    pub communicators: Vec<CommunicatorId>,
}

/// A parameter (or constant table) of the model and the programs that hold it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanParameter {
    /// Name in the model.
    pub name: String,
    /// Type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// Whether the optimizer updates it.
    pub trained: bool,
    /// Who holds it.
    pub holders: Vec<Holder>,
}

/// What the compiler expects of a run. Times are picoseconds of the cost model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prediction {
    /// Time of a step.
    pub step_ps: u64,
    /// Time that ranks are idle, summed over ranks.
    pub idle_ps: u64,
    /// Samples of a step (micro-batch size times micro-batches).
    pub samples: u64,
    /// Tokens of a step; equal to the samples where the data has no sequence axis.
    pub tokens: u64,
    /// Per rank.
    pub ranks: Vec<RankPrediction>,
    /// Recomputation, summed over ranks.
    pub recompute: RecomputePrediction,
    /// The repeated structures that were found.
    pub blocks: Vec<BlockClass>,
}

/// A class of repeated structure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockClass {
    /// Name for people.
    pub name: String,
    /// How often it occurs.
    pub instances: u32,
    /// Forward nodes of one instance.
    pub nodes: u32,
    /// Parameter bytes of one instance.
    pub parameter_bytes: u64,
    /// Bytes of activations that one instance keeps for the backward, per micro-batch.
    pub saved_bytes: u64,
}

/// What is expected of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankPrediction {
    /// Bytes of the arena.
    pub arena_bytes: u64,
    /// Bytes on the device: arena, context, libraries and communication buffers.
    pub device_bytes: u64,
    /// Bytes that the device has.
    pub capacity_bytes: u64,
    /// What the device's bytes are for.
    pub breakdown: Breakdown,
    /// Time that the rank computes.
    pub busy_ps: u64,
    /// First and last unit of the model that it holds, for people: `embedding`, `block 0`, `head`.
    pub units: Vec<String>,
    /// How many of its blocks are recomputed.
    pub recomputed_blocks: u32,
}

/// What the bytes of a device are for. The arena is the sum of the first five less what they share, which is
/// accounted to `saved` first and `transient` last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breakdown {
    /// Weights.
    pub parameters: u64,
    /// Gradients summed over micro-batches.
    pub gradients: u64,
    /// Optimizer state.
    pub optimizer: u64,
    /// Activations kept for the backward, data and boundaries, at the fullest time.
    pub saved: u64,
    /// The rest of the arena.
    pub transient: u64,
    /// Communication buffers.
    pub communication: u64,
    /// Library workspace.
    pub workspace: u64,
    /// Context of the driver.
    pub context: u64,
}

impl Breakdown {
    /// All parts in order, with their names.
    pub fn parts(&self) -> [(&'static str, u64); 8] {
        let Self { parameters, gradients, optimizer, saved, transient, communication, workspace, context } = *self;
        [
            ("parameters", parameters),
            ("gradients", gradients),
            ("optimizer", optimizer),
            ("saved", saved),
            ("transient", transient),
            ("communication", communication),
            ("workspace", workspace),
            ("context", context),
        ]
    }
}

/// Recomputation time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecomputePrediction {
    /// All of it.
    pub total_ps: u64,
    /// What runs beside communication or in idle time.
    pub hidden_ps: u64,
    /// What lengthens the step.
    pub exposed_ps: u64,
}
