//! Cross-entropy from a log-softmax and a lookup of the labels, as exporters take PyTorch's loss apart.

use super::Fuser;
use crate::transform::view;
use trainc_ir::op::{Elementwise, Indexing, Loss, Normalization, ReduceKind, Reduction};
use trainc_ir::{DType, Graph, Op, ValueId};

/// PyTorch's default label of rows that do not count.
const IGNORE: i64 = -100;

pub(super) fn fuse(f: &mut Fuser, value: ValueId) -> Option<ValueId> {
    let (kind, terms, sign) = total(f.graph(), value)?;
    let Terms { logits, labels, ignore } = terms_of(f.graph(), terms, sign)?;
    let rows = f.ty(logits).shape[0];
    // Without the ignored rows a mean over all of them is another number.
    if kind == ReduceKind::Mean && ignore.is_some() {
        return None;
    }
    let labels = f.reshape(labels, vec![rows]);
    let op = Loss::CrossEntropy { ignore_index: ignore.unwrap_or(IGNORE) };
    let results = f.add(op, &[logits, labels]);
    let ty = f.ty(value).clone();
    if f.ty(results[0]).dtype != ty.dtype {
        return None;
    }
    let sum = if kind == ReduceKind::Mean {
        let count = f.one(Elementwise::Cast { to: ty.dtype }, &[results[1]]);
        f.one(Elementwise::Div, &[results[0], count])
    } else {
        results[0]
    };
    Some(f.reshape(sum, ty.shape))
}

/// A sum or mean over all elements, what it is of, and whether it is negated: `-sum(x)` is as good as `sum(-x)`.
fn total(graph: &Graph, value: ValueId) -> Option<(ReduceKind, ValueId, bool)> {
    if let Some(x) = view::elementwise(graph, value, &Elementwise::Neg) {
        return total(graph, x[0]).filter(|&(_, _, negated)| !negated).map(|(kind, x, _)| (kind, x, true));
    }
    let node = &graph.nodes[graph.producer(value)?];
    let Op::Reduction(Reduction::Reduce { kind, axes, keep: _ }) = &node.op else { return None };
    let all = axes.len() == graph.ty(node.inputs[0]).rank();
    (all && matches!(kind, ReduceKind::Sum | ReduceKind::Mean)).then_some((*kind, node.inputs[0], false))
}

/// The rows of a negative log-likelihood.
struct Terms {
    logits: ValueId,
    labels: ValueId,
    ignore: Option<i64>,
}

/// `-log_softmax(logits)[labels]`, where rows of one label may be 0.
fn terms_of(graph: &Graph, value: ValueId, negated: bool) -> Option<Terms> {
    let value = view::unshaped(graph, value);
    if let Some(x) = view::elementwise(graph, value, &Elementwise::Neg) {
        return if negated { None } else { terms_of(graph, x[0], true) };
    }
    if let Some(&[kept, x, zero]) = view::elementwise(graph, value, &Elementwise::Select) {
        let terms = terms_of(graph, x, negated).filter(|terms| terms.ignore.is_none())?;
        let (labels, ignore) = differs(graph, kept)?;
        let lookup = view::unshaped(graph, terms.labels);
        let &[chosen, inner, _] = view::elementwise(graph, lookup, &Elementwise::Select)? else { return None };
        let same = differs(graph, chosen)? == (labels, ignore) && view::unshaped(graph, inner) == labels;
        let is_zero = view::uniform(graph, zero) == Some(0.0);
        return (same && is_zero).then_some(Terms { logits: terms.logits, labels, ignore: Some(ignore) });
    }
    let node = &graph.nodes[graph.producer(value)?];
    let Op::Indexing(Indexing::GatherElements { axis: 1 }) = node.op else { return None };
    let (log, labels) = (node.inputs[0], node.inputs[1]);
    let softmax = &graph.nodes[graph.producer(log)?];
    let is_log = matches!(softmax.op, Op::Normalization(Normalization::LogSoftmax));
    let fits = graph.ty(log).rank() == 2 && graph.ty(labels).shape[1] == 1;
    (negated && is_log && fits).then_some(Terms { logits: softmax.inputs[0], labels, ignore: None })
}

/// `x` and `c` of `x != c` or `not (x = c)`, `x` seen through reshapes.
fn differs(graph: &Graph, value: ValueId) -> Option<(ValueId, i64)> {
    let value = view::unshaped(graph, value);
    let inverse = view::elementwise(graph, value, &Elementwise::Not).map(|x| view::unshaped(graph, x[0]));
    let operands = match inverse {
        Some(equal) => view::elementwise(graph, equal, &Elementwise::Eq)?,
        None => view::elementwise(graph, value, &Elementwise::Ne)?,
    };
    let integer = !graph.ty(operands[0]).dtype.is_float() && graph.ty(operands[0]).dtype != DType::Bool;
    let constant = view::uniform(graph, operands[1]).filter(|_| integer)?;
    Some((view::unshaped(graph, operands[0]), constant as i64))
}
