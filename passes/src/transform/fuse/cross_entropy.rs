//! Cross-entropy from a log-softmax and a lookup of the labels, as exporters take PyTorch's loss apart.

use super::Fuser;
use crate::transform::view;
use trainc_ir::op::{Elementwise, Indexing, Loss, Normalization, ReduceKind, Reduction};
use trainc_ir::{DType, Graph, Op, ValueId};

/// PyTorch's default label of rows that do not count.
const IGNORE: i64 = -100;

pub(super) fn fuse(f: &mut Fuser, value: ValueId) -> Option<ValueId> {
    if let Some(mean) = counted(f, value) {
        return Some(mean);
    }
    let (kind, terms, sign) = total(f.graph(), value)?;
    let summed = if kind == ReduceKind::Sum && sign { one_hot(f, terms) } else { None };
    let Terms { logits, labels, ignore } = match summed {
        Some(terms) => terms,
        None => terms_of(f, terms, sign, true)?,
    };
    // Without the ignored rows a mean over all of them is another number.
    if kind == ReduceKind::Mean && ignore.is_some() {
        return None;
    }
    let classes = *f.ty(logits).shape.last()?;
    let rows = f.ty(logits).elements() / classes.max(1);
    let (logits, labels) = (f.reshape(logits, vec![rows, classes]), f.reshape(labels, vec![rows]));
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

/// A sum over the rows that count, divided by their number, where the number is counted anew: it is a result of the sum.
fn counted(f: &mut Fuser, value: ValueId) -> Option<ValueId> {
    let graph = f.graph();
    let &[sum, count] = view::elementwise(graph, value, &Elementwise::Div)? else { return None };
    let node = &graph.nodes[graph.producer(view::unshaped(graph, sum))?];
    let Op::Loss(Loss::CrossEntropy { ignore_index }) = node.op else { return None };
    let (labels, own) = (view::unshaped(graph, node.inputs[1]), node.outputs[1]);
    let is_sum = view::unshaped(graph, sum) == node.outputs[0];
    let mut terms = total(graph, uncast(graph, view::unshaped(graph, count))).filter(|t| t.0 == ReduceKind::Sum)?.1;
    terms = uncast(graph, view::unshaped(graph, terms));
    if !is_sum || differs(graph, terms)? != (labels, ignore_index) || f.ty(count).elements() != 1 {
        return None;
    }
    let ty = f.ty(count).clone();
    let count = f.one(Elementwise::Cast { to: ty.dtype }, &[own]);
    let count = f.reshape(count, ty.shape);
    Some(f.one(Elementwise::Div, &[sum, count]))
}

/// The value behind casts.
fn uncast(graph: &Graph, mut value: ValueId) -> ValueId {
    while let Some(Op::Elementwise(Elementwise::Cast { to: _ })) = graph.producer_op(value) {
        value = graph.nodes[graph.producer(value).expect("it has an operator")].inputs[0];
    }
    value
}

/// `log_softmax(logits)` times ones at the labels and zeros elsewhere. Labels are taken modulo the number of classes, as
/// ONNX's OneHot takes them: others would have no class.
fn one_hot(f: &mut Fuser, value: ValueId) -> Option<Terms> {
    let graph = f.graph();
    let &[a, b] = view::elementwise(graph, value, &Elementwise::Mul)? else { return None };
    let (logits, hot) = [(a, b), (b, a)].into_iter().find_map(|(log, hot)| Some((log_softmax(graph, log)?, hot)))?;
    let &[hit, one, zero] = view::elementwise(graph, hot, &Elementwise::Select)? else { return None };
    let &[a, b] = view::elementwise(graph, hit, &Elementwise::Eq)? else { return None };
    let numbers = view::uniform(graph, one) == Some(1.0) && view::uniform(graph, zero) == Some(0.0);
    let shape = graph.ty(logits).shape.clone();
    let (&classes, rows) = shape.split_last()?;
    let is_labels =
        |v: ValueId| graph.ty(v).elements() == rows.iter().product::<u64>() && graph.ty(v).shape.ends_with(&[1]);
    let (labels, counter) = [(a, b), (b, a)].into_iter().find(|&(labels, _)| is_labels(labels))?;
    let divisor = view::elementwise(graph, labels, &Elementwise::Mod)?[1];
    let wraps = view::uniform(graph, divisor) == Some(classes as f64);
    if !numbers || !wraps || graph.ty(hot).shape != shape || !graph.ty(counter).shape.ends_with(&[classes]) {
        return None;
    }
    let found = f.evaluator.value(f.builder.graph(), counter)?.to_f64s();
    let counts = found.len() as u64 == classes && found.iter().enumerate().all(|(i, &v)| v == i as f64);
    counts.then_some(Terms { logits, labels, ignore: None })
}

/// `x` of `log_softmax(x)`.
fn log_softmax(graph: &Graph, value: ValueId) -> Option<ValueId> {
    let node = &graph.nodes[graph.producer(value)?];
    matches!(node.op, Op::Normalization(Normalization::LogSoftmax)).then(|| node.inputs[0])
}

/// A sum or mean over all elements, what it is of, and whether it is negated: `-sum(x)` is as good as `sum(-x)`.
fn total(graph: &Graph, value: ValueId) -> Option<(ReduceKind, ValueId, bool)> {
    let negated = view::elementwise(graph, value, &Elementwise::Neg).map(|x| x[0]);
    let value = negated.unwrap_or(value);
    let node = &graph.nodes[graph.producer(value)?];
    let Op::Reduction(Reduction::Reduce { kind, axes, keep: _ }) = &node.op else { return None };
    let all = axes.len() == graph.ty(node.inputs[0]).rank();
    (all && matches!(kind, ReduceKind::Sum | ReduceKind::Mean)).then_some((*kind, node.inputs[0], negated.is_some()))
}

/// The rows of a negative log-likelihood.
struct Terms {
    logits: ValueId,
    labels: ValueId,
    ignore: Option<i64>,
}

/// `-log_softmax(logits)[labels]`, where rows of one label may be 0.
fn terms_of(f: &mut Fuser, value: ValueId, negated: bool, may_ignore: bool) -> Option<Terms> {
    let value = view::unshaped(f.graph(), value);
    if let Some(x) = view::elementwise(f.graph(), value, &Elementwise::Neg) {
        let x = x[0];
        return if negated { None } else { terms_of(f, x, true, may_ignore) };
    }
    if let Some(&[kept, x, zero]) = view::elementwise(f.graph(), value, &Elementwise::Select) {
        if !may_ignore {
            return None;
        }
        let terms = terms_of(f, x, negated, false)?;
        let graph = f.graph();
        let (labels, ignore) = differs(graph, kept)?;
        let lookup = view::unshaped(graph, terms.labels);
        let &[chosen, inner, _] = view::elementwise(graph, lookup, &Elementwise::Select)? else { return None };
        let same = differs(graph, chosen)? == (labels, ignore) && view::unshaped(graph, inner) == labels;
        let is_zero = view::uniform(graph, zero) == Some(0.0);
        return (same && is_zero).then_some(Terms { logits: terms.logits, labels, ignore: Some(ignore) });
    }
    let graph = f.graph();
    let node = &graph.nodes[graph.producer(value)?];
    let last = graph.ty(node.inputs[0]).rank() as u64 - 1;
    if let Op::Reduction(Reduction::Reduce { kind: ReduceKind::Sum, axes, keep: _ }) = &node.op {
        let (rows, terms) = (axes[..] == [last], node.inputs[0]);
        return if rows && negated { one_hot(f, terms) } else { None };
    }
    let Op::Indexing(Indexing::GatherElements { axis }) = node.op else { return None };
    let (log, labels) = (node.inputs[0], node.inputs[1]);
    let logits = log_softmax(graph, log)?;
    let (from, at) = (&graph.ty(log).shape, &graph.ty(labels).shape);
    let fits = axis == last && from[..last as usize] == at[..last as usize] && at[last as usize] == 1;
    (negated && fits).then_some(Terms { logits, labels, ignore: None })
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
