//! Runs a graph as it stands, one node after the other: the oracle that plans are held to.

use super::execute::{Arg, Context, Fault, Out, execute};
use super::tensor::Tensor;
use std::collections::BTreeMap;
use std::fmt;
use trainc_ir::id::SideTable;
use trainc_ir::{Graph, Type, ValueId};

/// Why a graph did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterpretError {
    /// An input of the graph was not given.
    MissingInput(String),
    /// An input was given with another type.
    InputType {
        /// Name of the input.
        name: String,
        /// The type in the graph.
        expected: Type,
        /// The type given.
        found: Type,
    },
    /// A node failed.
    Node {
        /// What the node is called.
        name: String,
        /// Why it failed.
        fault: Fault,
    },
}

impl fmt::Display for InterpretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingInput(name) => write!(f, "input `{name}` of the graph was not given"),
            Self::InputType { name, expected, found } => {
                write!(f, "input `{name}`: expected {expected}, found {found}")
            }
            Self::Node { name, fault } => write!(f, "node `{name}`: {fault}"),
        }
    }
}

impl std::error::Error for InterpretError {}

/// Runs the graph on the inputs, which are named as in the graph, and returns its outputs in order. Inputs that the graph
/// does not have are ignored.
///
/// # Errors
/// See [`InterpretError`].
pub fn interpret(
    graph: &Graph,
    inputs: &BTreeMap<String, Tensor>,
    context: Context,
) -> Result<Vec<Tensor>, InterpretError> {
    let mut given: SideTable<ValueId, Option<&Tensor>> = SideTable::new(None);
    for input in &graph.inputs {
        let tensor = inputs.get(&input.name).ok_or_else(|| InterpretError::MissingInput(input.name.clone()))?;
        if tensor.ty() != graph.ty(input.value) {
            return Err(InterpretError::InputType {
                name: input.name.clone(),
                expected: graph.ty(input.value).clone(),
                found: tensor.ty().clone(),
            });
        }
        given.set(input.value, Some(tensor));
    }
    let mut uses_left: SideTable<ValueId, usize> = SideTable::new(0);
    for node in graph.nodes.values() {
        node.inputs.iter().for_each(|&value| uses_left[value] += 1);
    }
    graph.outputs.iter().for_each(|output| uses_left[output.value] += 1);
    let mut computed: SideTable<ValueId, Option<Tensor>> = SideTable::new(None);
    for (id, node) in graph.nodes.iter() {
        let mut results: Vec<Tensor> =
            node.outputs.iter().map(|&value| Tensor::zeros(graph.ty(value).clone())).collect();
        {
            let tensor = |value: ValueId| {
                given[value].or(computed[value].as_ref()).expect("operands are defined before their users")
            };
            for &(result, operand) in node.op.in_place() {
                results[result].bytes_mut().copy_from_slice(tensor(node.inputs[operand]).bytes());
            }
            let args: Vec<Arg<'_>> =
                node.inputs.iter().map(|&value| Arg { ty: tensor(value).ty(), bytes: tensor(value).bytes() }).collect();
            let mut outs: Vec<Out<'_>> = node
                .outputs
                .iter()
                .zip(&mut results)
                .map(|(&value, result)| Out { ty: graph.ty(value), bytes: result.bytes_mut() })
                .collect();
            execute(&node.op, context, &args, &mut outs)
                .map_err(|fault| InterpretError::Node { name: graph.node_name(id), fault })?;
        }
        for (&value, result) in node.outputs.iter().zip(results) {
            if uses_left[value] > 0 {
                computed.set(value, Some(result));
            }
        }
        for &value in &node.inputs {
            uses_left[value] -= 1;
            if uses_left[value] == 0 {
                computed.set(value, None);
            }
        }
    }
    let output = |value: ValueId| given[value].or(computed[value].as_ref()).cloned();
    Ok(graph.outputs.iter().map(|o| output(o.value).expect("outputs stay until the end")).collect())
}
