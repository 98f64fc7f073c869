//! The training graph: one micro-batch forward and backward, and one update per step. Logical: unsharded, unscheduled.

use crate::graph::{Graph, NodeId, ValueId};
use crate::id;
use crate::id::{Id, SideTable, Table};
use serde::{Deserialize, Serialize};

id!(
    /// Names a parameter of a training graph.
    ParameterId,
    "w"
);

/// When a node of the step graph runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Computes the loss.
    Forward,
    /// Computes gradients of activations.
    InputGrad,
    /// Computes gradients of parameters; nothing else in the step waits for it.
    WeightGrad,
    /// A forward node run again (plans only).
    Recompute,
    /// The optimizer (plans and update graphs only).
    Update,
}

/// A trained parameter: one logical tensor, however many ranks hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name in the source model.
    pub name: String,
    /// Its input in the step graph.
    pub input: ValueId,
    /// Contributions to its gradient, one for each use of the parameter by the forward, ordered by use. Each is summed
    /// over the micro-batches in ascending order on its own; the sums are added in this order by the update graph.
    /// Empty for a frozen parameter.
    pub contributions: Vec<Contribution>,
}

/// The gradient that one use of a parameter gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contribution {
    /// The gradient in the step graph, of the parameter's type.
    pub value: ValueId,
    /// The forward node that uses the parameter.
    pub user: NodeId,
}

/// What differentiation makes of a forward graph.
///
/// The nodes of `step` are the forward's, in its order and with its ids, followed by the backward's. Its outputs are
/// the loss sum and count (named `loss_sum` and `loss_count`), the contributions (named `grad.<parameter>.<k>`), and
/// the updated buffers, if any: each has the name of the buffer (a running average) that it is the next value of. The forward
/// of every micro-batch reads what the one before it left, in ascending order.
///
/// `update` runs once per step. Its inputs are named: `<parameter>` (role parameter), `grad.<parameter>.<k>` (role
/// gradient sum: contribution `k` summed over micro-batches), `<parameter>.<state>` (role state: `m`, `v`), and the
/// scalars `lr` (f32), `step` (i64, from 1) and `count` (i64: the loss count summed over micro-batches). Its outputs
/// (role updated) have the names of the parameters and states they replace. Every node of it belongs to one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainingGraph {
    /// Forward and backward of one micro-batch.
    pub step: Graph,
    /// How many of the step's nodes are the forward's.
    pub forward_nodes: usize,
    /// When each node of the step runs.
    pub phases: SideTable<NodeId, Phase>,
    /// For each backward node the forward node whose gradient it computes: both run on the same stage. A sum of
    /// gradients of one value belongs to the node that defines the value (for an input of the graph: to its first user).
    pub anchors: SideTable<NodeId, Option<NodeId>>,
    /// All parameters, frozen ones included, in the order of the step's inputs.
    pub parameters: Table<ParameterId, Parameter>,
    /// The optimizer.
    pub update: Graph,
}

impl TrainingGraph {
    /// Whether the node is one of the forward's.
    pub fn is_forward(&self, node: NodeId) -> bool {
        node.index() < self.forward_nodes
    }
}
