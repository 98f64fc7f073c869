//! The dataflow graph: values in static single assignment form, nodes in topological order.

use crate::id;
use crate::id::{SideTable, Table};
use crate::op::Op;
use crate::ty::Type;

id!(
    /// Names a value.
    ValueId,
    "v"
);
id!(
    /// Names a node.
    NodeId,
    "n"
);

/// A value and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Element type and static shape.
    pub ty: Type,
    /// Its definition.
    pub def: Def,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Def {
    /// The graph's input at this position.
    Input(usize),
    /// A result of a node.
    Result {
        /// The node.
        node: NodeId,
        /// Which of its results.
        index: usize,
    },
}

/// An operator applied to values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The operator.
    pub op: Op,
    /// Operands.
    pub inputs: Vec<ValueId>,
    /// Results.
    pub outputs: Vec<ValueId>,
}

/// What an input is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputRole {
    /// Data of a micro-batch.
    Data,
    /// Labels of a micro-batch.
    Label,
    /// A trained (or frozen) weight.
    Parameter,
    /// State of the model that no gradient updates, such as running averages or tables.
    Buffer,
    /// State of the optimizer.
    State,
    /// A sum of gradient contributions over micro-batches (update graphs only).
    GradientSum,
    /// A number that the host sets before each step: learning rate, step number.
    Scalar,
}

impl InputRole {
    /// All roles with their spelling in the text form.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Data, "data"),
        (Self::Label, "label"),
        (Self::Parameter, "param"),
        (Self::Buffer, "buffer"),
        (Self::State, "state"),
        (Self::GradientSum, "grad_sum"),
        (Self::Scalar, "scalar"),
    ];
}

/// What an output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutputRole {
    /// A result for the user (logits).
    Prediction,
    /// The sum of the loss over the terms of this micro-batch, a scalar.
    LossSum,
    /// The number of those terms, an i64 scalar.
    LossCount,
    /// One contribution to a parameter's gradient.
    Gradient,
    /// The next value of a parameter, state or buffer.
    Updated,
}

impl OutputRole {
    /// All roles with their spelling in the text form.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Prediction, "prediction"),
        (Self::LossSum, "loss_sum"),
        (Self::LossCount, "loss_count"),
        (Self::Gradient, "gradient"),
        (Self::Updated, "updated"),
    ];
}

/// A graph input. Names are unique among the inputs of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Name, the source model's for what it defines.
    pub name: String,
    /// What it is for.
    pub role: InputRole,
    /// The value it defines.
    pub value: ValueId,
}

/// A graph output. Names are unique among the outputs of a graph; a value may be given out several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Name.
    pub name: String,
    /// What it is.
    pub role: OutputRole,
    /// The value given out.
    pub value: ValueId,
}

/// Where a node comes from in the source model; preserved by passes, never interpreted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// Name of the node of the source model.
    pub name: String,
}

/// A dataflow graph. Nodes stand in an order in which every operand is defined before it is used; transforms build a
/// new graph through [`GraphBuilder`](crate::GraphBuilder), so ids are always dense.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Name of the model.
    pub name: String,
    /// All values.
    pub values: Table<ValueId, Value>,
    /// All nodes, in topological order.
    pub nodes: Table<NodeId, Node>,
    /// Inputs in order.
    pub inputs: Vec<Input>,
    /// Outputs in order.
    pub outputs: Vec<Output>,
    /// Where nodes come from.
    pub origins: SideTable<NodeId, Option<Origin>>,
}

impl Graph {
    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> &Type {
        &self.values[value].ty
    }

    /// The types of several values.
    pub fn types<'a>(&'a self, values: &'a [ValueId]) -> Vec<&'a Type> {
        values.iter().map(|&v| self.ty(v)).collect()
    }

    /// The node that defines the value, or `None` for an input.
    pub fn producer(&self, value: ValueId) -> Option<NodeId> {
        match self.values[value].def {
            Def::Input(_) => None,
            Def::Result { node, index: _ } => Some(node),
        }
    }

    /// The operator that defines the value, or `None` for an input.
    pub fn producer_op(&self, value: ValueId) -> Option<&Op> {
        self.producer(value).map(|node| &self.nodes[node].op)
    }

    /// The input that defines the value, or `None` for a result of a node.
    pub fn input_of(&self, value: ValueId) -> Option<&Input> {
        match self.values[value].def {
            Def::Input(position) => self.inputs.get(position),
            Def::Result { node: _, index: _ } => None,
        }
    }

    /// The input of this name.
    pub fn input(&self, name: &str) -> Option<&Input> {
        self.inputs.iter().find(|input| input.name == name)
    }

    /// The output of this name.
    pub fn output(&self, name: &str) -> Option<&Output> {
        self.outputs.iter().find(|output| output.name == name)
    }

    /// For every value the nodes that read it, in order; a node that reads a value twice is listed twice.
    pub fn users(&self) -> SideTable<ValueId, Vec<NodeId>> {
        let mut users = SideTable::new(Vec::new());
        for (id, node) in self.nodes.iter() {
            for &input in &node.inputs {
                users[input].push(id);
            }
        }
        users
    }

    /// What the node is called in diagnostics: its name in the source model, or its operator.
    pub fn node_name(&self, node: NodeId) -> String {
        match &self.origins[node] {
            Some(origin) => origin.name.clone(),
            None => format!("{node} ({})", self.nodes[node].op.spelling()),
        }
    }
}
