//! Softmax and its logarithm over the last axis, from exponentials and sums.

use super::Fuser;
use crate::transform::view;
use trainc_ir::op::{Elementwise, Movement, Normalization, ReduceKind, Reduction};
use trainc_ir::{Graph, Op, ValueId};

pub(super) fn fuse(f: &mut Fuser, value: ValueId) -> Option<ValueId> {
    let graph = f.graph();
    if let Some(x) = softmax(graph, value) {
        return Some(f.one(Normalization::Softmax, &[x]));
    }
    if let Some(x) = log_softmax(graph, value) {
        return Some(f.one(Normalization::LogSoftmax, &[x]));
    }
    None
}

/// `x` of `e / sum(e)` with `e = exp(x)`, where a maximum over the row may be subtracted from `x`.
fn softmax(graph: &Graph, value: ValueId) -> Option<ValueId> {
    let operands = view::elementwise(graph, value, &Elementwise::Div)?;
    let (e, sum) = (operands[0], operands[1]);
    let exponent = view::elementwise(graph, e, &Elementwise::Exp)?[0];
    (row_reduction(graph, sum, ReduceKind::Sum)? == e).then(|| shifted(graph, exponent))
}

/// `x` of `log softmax(x)`, or of `d - log(sum(exp(d)))`.
fn log_softmax(graph: &Graph, value: ValueId) -> Option<ValueId> {
    if let Some(operands) = view::elementwise(graph, value, &Elementwise::Log) {
        let node = &graph.nodes[graph.producer(operands[0])?];
        return matches!(node.op, Op::Normalization(Normalization::Softmax)).then(|| node.inputs[0]);
    }
    let operands = view::elementwise(graph, value, &Elementwise::Sub)?;
    let (d, log) = (operands[0], operands[1]);
    let sum = view::elementwise(graph, log, &Elementwise::Log)?[0];
    let e = row_reduction(graph, sum, ReduceKind::Sum)?;
    (view::elementwise(graph, e, &Elementwise::Exp)?[0] == d).then(|| shifted(graph, d))
}

/// `x` of `x - max(x)`, else the value itself.
fn shifted(graph: &Graph, value: ValueId) -> ValueId {
    let inner = || {
        let operands = view::elementwise(graph, value, &Elementwise::Sub)?;
        (row_reduction(graph, operands[1], ReduceKind::Max)? == operands[0]).then_some(operands[0])
    };
    inner().unwrap_or(value)
}

/// What a reduction of this kind over the last axis reduces; the axis stays as a dimension of 1.
pub(super) fn row_reduction(graph: &Graph, value: ValueId, wanted: ReduceKind) -> Option<ValueId> {
    let node = &graph.nodes[graph.producer(value)?];
    if let Op::Movement(Movement::Reshape { shape }) = &node.op {
        let source = node.inputs[0];
        let mut kept = graph.ty(source).shape.clone();
        kept.push(1);
        let dropped = *shape == kept;
        return dropped.then(|| last_axis(graph, source, wanted, false)).flatten();
    }
    last_axis(graph, value, wanted, true)
        .or_else(|| if wanted == ReduceKind::Mean { averaged(graph, value) } else { None })
}

/// What a sum over the last axis, divided by the length of the axis, averages.
fn averaged(graph: &Graph, value: ValueId) -> Option<ValueId> {
    let by = |op: &Elementwise| {
        let &[sum, number] = view::elementwise(graph, value, op)? else { return None };
        Some((row_reduction(graph, sum, ReduceKind::Sum)?, view::uniform(graph, number)?))
    };
    let width = |x: ValueId| graph.ty(x).shape.last().map_or(0.0, |&width| width as f64);
    if let Some((x, divisor)) = by(&Elementwise::Div) {
        return (divisor == width(x)).then_some(x);
    }
    let (x, factor) = by(&Elementwise::Mul)?;
    ((factor * width(x) - 1.0).abs() < 1e-6).then_some(x)
}

fn last_axis(graph: &Graph, value: ValueId, wanted: ReduceKind, kept: bool) -> Option<ValueId> {
    let node = &graph.nodes[graph.producer(value)?];
    let Op::Reduction(Reduction::Reduce { kind, axes, keep }) = &node.op else { return None };
    let last = graph.ty(node.inputs[0]).rank() as u64 - 1;
    (*kind == wanted && *keep == kept && axes[..] == [last]).then(|| node.inputs[0])
}
