//! Layer norm and RMS norm over the last axis.
//!
//! The bare normalization becomes an operator with weight 1 and bias 0; a following product and sum with vectors of the
//! width of the row then take their places.

use super::Fuser;
use super::product::sums;
use super::softmax::row_reduction;
use crate::transform::view;
use trainc_ir::op::{Elementwise, Normalization, Real, ReduceKind};
use trainc_ir::{Graph, NodeId, Op, Type, ValueId};

pub(super) fn fuse(f: &mut Fuser, value: ValueId) -> Option<ValueId> {
    if let Some(Bare { x, eps, centered }) = bare(f.graph(), value) {
        let ty = f.ty(x).clone();
        let width = [*ty.shape.last()?];
        let one = f.splat(ty.dtype, &width, 1.0);
        let eps = Real::new(eps);
        if !centered {
            return Some(f.one(Normalization::RmsNorm { eps }, &[x, one]));
        }
        let zero = f.splat(ty.dtype, &width, 0.0);
        return Some(f.one(Normalization::LayerNorm { eps }, &[x, one, zero]));
    }
    scale(f, value).or_else(|| shift(f, value))
}

/// A normalization without weight and bias.
struct Bare {
    x: ValueId,
    eps: f64,
    centered: bool,
}

/// `d / sqrt(mean(d^2) + eps)`, spelled in any way, where `d` is `x - mean(x)` or `x` itself.
fn bare(graph: &Graph, value: ValueId) -> Option<Bare> {
    let (d, variance) = quotient(graph, value)?;
    let (mean, eps) = sums(graph, variance).into_iter().find_map(|(a, b)| Some((a, view::uniform(graph, b)?)))?;
    let square = row_reduction(graph, mean, ReduceKind::Mean)?;
    if squared(graph, square)? != d || graph.ty(d).rank() == 0 {
        return None;
    }
    let centered = || {
        let operands = view::elementwise(graph, d, &Elementwise::Sub)?;
        (row_reduction(graph, operands[1], ReduceKind::Mean)? == operands[0]).then_some(operands[0])
    };
    Some(match centered() {
        Some(x) => Bare { x, eps, centered: true },
        None => Bare { x: d, eps, centered: false },
    })
}

/// `(d, v)` of `d / sqrt(v)`, `d * rsqrt(v)` or `d * (1 / sqrt(v))`.
fn quotient(graph: &Graph, value: ValueId) -> Option<(ValueId, ValueId)> {
    use Elementwise as E;
    let root = |value: ValueId| view::elementwise(graph, value, &E::Sqrt).map(|x| x[0]);
    if let Some(operands) = view::elementwise(graph, value, &E::Div) {
        return Some((operands[0], root(operands[1])?));
    }
    let &[a, b] = view::elementwise(graph, value, &E::Mul)? else { return None };
    [(a, b), (b, a)].into_iter().find_map(|(d, factor)| {
        let inverse = || {
            if let Some(operands) = view::elementwise(graph, factor, &E::Div) {
                return (view::uniform(graph, operands[0]) == Some(1.0)).then(|| root(operands[1])).flatten();
            }
            root(view::elementwise(graph, factor, &E::Reciprocal)?[0])
        };
        let variance = view::elementwise(graph, factor, &E::Rsqrt).map(|x| x[0]).or_else(inverse)?;
        Some((d, variance))
    })
}

/// `d` of `d * d` or `d^2`.
fn squared(graph: &Graph, value: ValueId) -> Option<ValueId> {
    if let Some(operands) = view::elementwise(graph, value, &Elementwise::Mul) {
        return (operands[0] == operands[1]).then_some(operands[0]);
    }
    let operands = view::elementwise(graph, value, &Elementwise::Pow)?;
    (view::uniform(graph, operands[1]) == Some(2.0)).then_some(operands[0])
}

/// A vector times a normalization of weight 1.
fn scale(f: &mut Fuser, value: ValueId) -> Option<ValueId> {
    let &[a, b] = view::elementwise(f.graph(), value, &Elementwise::Mul)? else { return None };
    let (node, weight) = operand_pair(f.graph(), a, b)?;
    let Op::Normalization(op) = f.graph().nodes[node].op.clone() else { return None };
    let inputs = f.graph().nodes[node].inputs.clone();
    let plain = view::uniform(f.graph(), inputs[1]) == Some(1.0);
    match op {
        Normalization::LayerNorm { eps: _ } if plain && view::uniform(f.graph(), inputs[2]) == Some(0.0) => {
            Some(f.one(op, &[inputs[0], weight, inputs[2]]))
        }
        Normalization::RmsNorm { eps: _ } if plain => Some(f.one(op, &[inputs[0], weight])),
        _ => None,
    }
}

/// A vector added to a layer norm of bias 0.
fn shift(f: &mut Fuser, value: ValueId) -> Option<ValueId> {
    let &[a, b] = view::elementwise(f.graph(), value, &Elementwise::Add)? else { return None };
    let (node, bias) = operand_pair(f.graph(), a, b)?;
    let Op::Normalization(op @ Normalization::LayerNorm { eps: _ }) = f.graph().nodes[node].op.clone() else {
        return None;
    };
    let inputs = f.graph().nodes[node].inputs.clone();
    (view::uniform(f.graph(), inputs[2]) == Some(0.0)).then(|| f.one(op, &[inputs[0], inputs[1], bias]))
}

/// The node of a normalization and a vector as wide as its rows.
fn operand_pair(graph: &Graph, a: ValueId, b: ValueId) -> Option<(NodeId, ValueId)> {
    [(a, b), (b, a)].into_iter().find_map(|(x, vector)| {
        let node = graph.producer(x)?;
        let ty = graph.ty(x);
        let is_norm = matches!(graph.nodes[node].op, Op::Normalization(_)) && graph.nodes[node].outputs[0] == x;
        let fits = *graph.ty(vector) == Type::new(ty.dtype, [*ty.shape.last()?]);
        (is_norm && fits).then_some((node, vector))
    })
}
