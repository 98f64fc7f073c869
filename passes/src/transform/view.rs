//! How patterns look at a graph: the operator behind a value, and constants.

use trainc_ir::op::{Creation, Elementwise, Literal, Movement};
use trainc_ir::{Graph, Op, ValueId};

/// The operands of the elementwise operator that defines the value, where it is this one.
pub(super) fn elementwise<'a>(graph: &'a Graph, value: ValueId, op: &Elementwise) -> Option<&'a [ValueId]> {
    let node = &graph.nodes[graph.producer(value)?];
    matches!(&node.op, Op::Elementwise(found) if found == op).then_some(&node.inputs)
}

/// The movement that defines the value, and its first operand.
pub(super) fn movement(graph: &Graph, value: ValueId) -> Option<(&Movement, ValueId)> {
    let node = &graph.nodes[graph.producer(value)?];
    if let Op::Movement(op) = &node.op { Some((op, node.inputs[0])) } else { None }
}

/// The value behind reshapes.
pub(super) fn unshaped(graph: &Graph, mut value: ValueId) -> ValueId {
    for _ in 0..MAX_SEEN_THROUGH {
        let Some((Movement::Reshape { shape: _ }, source)) = movement(graph, value) else { break };
        value = source;
    }
    value
}

/// The constant that defines the value.
pub(super) fn constant(graph: &Graph, value: ValueId) -> Option<&Literal> {
    let op = graph.producer_op(value)?;
    if let Op::Creation(Creation::Constant { value }) = op { Some(value) } else { None }
}

/// Longer chains of movements are not seen through: canonical form has none.
const MAX_SEEN_THROUGH: usize = 8;

/// The one number that all elements of the value have, through broadcasts.
pub(super) fn uniform(graph: &Graph, mut value: ValueId) -> Option<f64> {
    for _ in 0..MAX_SEEN_THROUGH {
        if let Some(literal) = constant(graph, value) {
            return literal.uniform_f64();
        }
        let (Movement::Broadcast { shape: _ } | Movement::Reshape { shape: _ }, source) = movement(graph, value)?
        else {
            return None;
        };
        value = source;
    }
    None
}
