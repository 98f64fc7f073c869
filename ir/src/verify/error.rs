//! What the verifier finds: a rule, an entity, and what is wrong with it.

use crate::diag::{Diagnostic, Place};
use crate::graph::NodeId;
use crate::training::ParameterId;
use std::fmt;

macro_rules! rules {
    ($($(#[$meta:meta])* $name:ident = $meaning:literal),* $(,)?) => {
        /// A rule of the verifier; its name is its stable code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule { $(#[doc = $meaning] $name),* }

        impl Rule {
            /// All rules in order.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Stable code.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }

            /// What the rule demands.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning),* }
            }
        }
    };
}

rules! {
    V01 = "every value that is named exists",
    V02 = "every value is defined exactly once",
    V03 = "every value knows the input or node that defines it",
    V04 = "the dimensions and the size in bytes of every value fit in 63 bits",
    V05 = "every operand is defined before it is used",
    V06 = "results have the types that the operator's rule gives",
    V07 = "names of inputs are unique",
    V08 = "names of outputs are unique",
    V09 = "whole numbers in attributes fit in 63 bits",
    V10 = "constant data has the size of its type, and bools are 0 or 1",
    V11 = "scalars have rank 0 and gradient sums are floats",
    V12 = "there is at most one loss sum (a float scalar) and one loss count (an i64 scalar), and gradients are floats",
    V13 = "forward nodes have the phase forward and no anchor, all others the phase input_grad or weight_grad",
    V14 = "every backward node is anchored to a forward node",
    V15 = "only weight gradients read weight gradients",
    V16 = "the parameters are the step's inputs of that role, in their order",
    V17 = "contributions have their parameter's type, and their users read the parameter, in the order of use",
    V18 = "the step gives out loss_sum, loss_count, all contributions as `grad.<parameter>.<k>`, and updated buffers",
    V19 = "the update takes trained parameters, their gradient sums and states, and the scalars lr, step and count",
    V20 = "the update gives out every parameter and state that it takes, updated, and nothing else",
    V21 = "every node of the update belongs to exactly one parameter",
    V22 = "an updated buffer is read by one forward node only, which gives its next value in place; nothing reads that",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// What has a line in the text form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entity {
    /// The graph as a whole.
    Graph,
    /// The input at this position.
    Input(usize),
    /// A node.
    Node(NodeId),
    /// The output at this position.
    Output(usize),
    /// A parameter of a training graph.
    Parameter(ParameterId),
}

impl fmt::Display for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Graph => f.write_str("graph"),
            Self::Input(position) => write!(f, "input {position}"),
            Self::Node(id) => write!(f, "{id}"),
            Self::Output(position) => write!(f, "output {position}"),
            Self::Parameter(id) => write!(f, "{id}"),
        }
    }
}

/// Which graph an entity is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// A graph on its own.
    Whole,
    /// The step of a training graph; its parameters count to it.
    Step,
    /// The update of a training graph.
    Update,
}

/// One violation of one rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VerifyError {
    /// Which graph.
    pub part: Part,
    /// The entity at fault.
    pub at: Entity,
    /// The rule.
    pub rule: Rule,
    /// What is wrong: lower case, no final dot.
    pub message: String,
}

impl VerifyError {
    /// The error as a diagnostic. It points at the entity by its printed id.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let of = match self.part {
            Part::Whole => "",
            Part::Step => " of the step",
            Part::Update => " of the update",
        };
        let place = Place::Entity(format!("{}{of}", self.at));
        Diagnostic::error(self.rule.code(), self.message.clone()).at(place, self.rule.meaning())
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.rule, self.message)
    }
}

impl std::error::Error for VerifyError {}

/// Collects the violations of one graph.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) part: Part,
    pub(super) errors: Vec<VerifyError>,
}

impl Findings {
    pub(super) fn add(&mut self, rule: Rule, at: Entity, message: impl Into<String>) {
        self.errors.push(VerifyError { part: self.part, at, rule, message: message.into() });
    }
}
