//! Layer norm and RMS norm over the last axis.
//!
//! The bare normalization becomes an operator with weight 1 and bias 0; a following product and sum with vectors of the
//! width of the row then take their places.

use super::Fuser;
use super::product::{factors, sums};
use super::softmax::row_reduction;
use crate::transform::view;
use trainc_ir::op::{Elementwise, Normalization, Real, ReduceKind, Reduction};
use trainc_ir::{DType, Graph, NodeId, Op, Type, ValueId};

pub(super) fn fuse(f: &mut Fuser, value: ValueId) -> Option<ValueId> {
    if let Some(bare) = bare(f.graph(), value) {
        let Bare { x, eps, centered, weight } = bare;
        let y = plain(f, x, eps, centered)?;
        return match weight {
            None => Some(y),
            Some(weight) => weighted(f, y, weight),
        };
    }
    folded(f, value).or_else(|| scale(f, value)).or_else(|| shift(f, value)).or_else(|| narrowed(f, value))
}

/// Why a value that looks like a normalization is not fused.
pub(super) fn almost(graph: &Graph, value: ValueId) -> Option<&'static str> {
    let Quotient { d, variance, weight: _ } = quotient(graph, value)?;
    let (mean, _) = with_eps(graph, variance);
    let node = &graph.nodes[graph.producer(mean)?];
    let Op::Reduction(Reduction::Reduce { kind: ReduceKind::Mean, axes: _, keep: _ }) = &node.op else { return None };
    (squared(graph, node.inputs[0])? == d).then_some("it goes over other axes than the last")
}

/// The normalization of weight 1 and bias 0.
fn plain(f: &mut Fuser, x: ValueId, eps: f64, centered: bool) -> Option<ValueId> {
    let ty = f.ty(x).clone();
    let width = [*ty.shape.last()?];
    let one = f.splat(ty.dtype, &width, 1.0);
    let eps = Real::new(eps);
    if !centered {
        return Some(f.one(Normalization::RmsNorm { eps }, &[x, one]));
    }
    let zero = f.splat(ty.dtype, &width, 0.0);
    Some(f.one(Normalization::LayerNorm { eps }, &[x, one, zero]))
}

/// A normalization without bias.
struct Bare {
    x: ValueId,
    eps: f64,
    centered: bool,
    /// A vector that the inverse of the root was multiplied with.
    weight: Option<ValueId>,
}

/// `d / sqrt(mean(d^2) + eps)`, spelled in any way, where `d` is `x - mean(x)` or `x` itself.
fn bare(graph: &Graph, value: ValueId) -> Option<Bare> {
    let Quotient { d, variance, weight } = quotient(graph, value)?;
    let (mean, eps) = with_eps(graph, variance);
    let square = row_reduction(graph, mean, ReduceKind::Mean)?;
    if squared(graph, square)? != d || graph.ty(d).rank() == 0 || graph.ty(value) != graph.ty(d) {
        return None;
    }
    Some(match centered(graph, d) {
        Some((x, _)) => Bare { x, eps, centered: true, weight },
        None => Bare { x: d, eps, centered: false, weight },
    })
}

/// `x` and `mean(x)` of `x - mean(x)`.
fn centered(graph: &Graph, d: ValueId) -> Option<(ValueId, ValueId)> {
    let operands = view::elementwise(graph, d, &Elementwise::Sub)?;
    (row_reduction(graph, operands[1], ReduceKind::Mean)? == operands[0]).then_some((operands[0], operands[1]))
}

/// `a` and `c` of `a + c` with a constant, else the value and 0.
fn with_eps(graph: &Graph, value: ValueId) -> (ValueId, f64) {
    let sum = sums(graph, value).into_iter().find_map(|(a, b)| Some((a, view::uniform(graph, b)?)));
    sum.unwrap_or((value, 0.0))
}

/// A value over the root of another one.
struct Quotient {
    d: ValueId,
    variance: ValueId,
    weight: Option<ValueId>,
}

/// `d / sqrt(v)`, `d * rsqrt(v)`, `d * (1 / sqrt(v))`, or `d * (w / sqrt(v))` with a vector `w`.
fn quotient(graph: &Graph, value: ValueId) -> Option<Quotient> {
    use Elementwise as E;
    if let Some(operands) = view::elementwise(graph, value, &E::Div) {
        let variance = view::elementwise(graph, operands[1], &E::Sqrt)?[0];
        return Some(Quotient { d: operands[0], variance, weight: None });
    }
    factors(graph, value).into_iter().find_map(|(d, factor)| {
        if let Some(variance) = inverse_root(graph, factor) {
            return Some(Quotient { d, variance, weight: None });
        }
        let (variance, weight) = weighted_root(graph, factor)?;
        Some(Quotient { d, variance, weight: Some(weight) })
    })
}

/// `v` of `1 / sqrt(v)`, spelled in any way.
fn inverse_root(graph: &Graph, value: ValueId) -> Option<ValueId> {
    use Elementwise as E;
    let root = |value: ValueId| view::elementwise(graph, value, &E::Sqrt).map(|x| x[0]);
    if let Some(x) = view::elementwise(graph, value, &E::Rsqrt) {
        return Some(x[0]);
    }
    if let Some(operands) = view::elementwise(graph, value, &E::Div) {
        return (view::uniform(graph, operands[0]) == Some(1.0)).then(|| root(operands[1])).flatten();
    }
    if let Some(operands) = view::elementwise(graph, value, &E::Pow) {
        return (view::uniform(graph, operands[1]) == Some(-0.5)).then_some(operands[0]);
    }
    root(view::elementwise(graph, value, &E::Reciprocal)?[0])
}

/// `v` and `w` of `w / sqrt(v)`, where `w` is a vector over the last axis.
fn weighted_root(graph: &Graph, value: ValueId) -> Option<(ValueId, ValueId)> {
    let width = *graph.ty(value).shape.last()?;
    factors(graph, value).into_iter().find_map(|(root, weight)| {
        let is_vector = graph.ty(weight).shape == [width];
        is_vector.then(|| Some((inverse_root(graph, root)?, weight))).flatten()
    })
}

/// A normalization of weight 1 with this weight.
fn weighted(f: &mut Fuser, y: ValueId, weight: ValueId) -> Option<ValueId> {
    let node = f.graph().nodes[f.graph().producer(y)?].clone();
    let mut operands = node.inputs;
    operands[1] = weight;
    Some(f.one(node.op, &operands))
}

/// `x r + (b - mean(x) r)` with `r = w / sqrt(mean((x - mean(x))^2) + eps)`, as Keras spells layer norm.
fn folded(f: &mut Fuser, value: ValueId) -> Option<ValueId> {
    let graph = f.graph();
    let (x, root, bias) = sums(graph, value).into_iter().find_map(|(scaled, rest)| {
        let &[bias, taken] = view::elementwise(graph, rest, &Elementwise::Sub)? else { return None };
        factors(graph, scaled).into_iter().find_map(|(x, root)| {
            let mean = factors(graph, taken).into_iter().find(|&(_, same)| same == root)?.0;
            (row_reduction(graph, mean, ReduceKind::Mean)? == x).then_some((x, root, bias))
        })
    })?;
    let (variance, weight) = match inverse_root(graph, root) {
        Some(variance) => (variance, None),
        None => weighted_root(graph, root).map(|(variance, weight)| (variance, Some(weight)))?,
    };
    let (mean, eps) = with_eps(graph, variance);
    let d = squared(graph, row_reduction(graph, mean, ReduceKind::Mean)?)?;
    let ty = graph.ty(x).clone();
    let vector = Type::new(ty.dtype, [*ty.shape.last()?]);
    if centered(graph, d)?.0 != x || *graph.ty(value) != ty || *graph.ty(bias) != vector {
        return None;
    }
    let weight = weight.unwrap_or_else(|| f.splat(ty.dtype, &vector.shape, 1.0));
    Some(f.one(Normalization::LayerNorm { eps: Real::new(eps) }, &[x, weight, bias]))
}

/// A normalization in single precision of a value in half precision, back in half precision: statistics of the operator
/// are in single precision anyway.
fn narrowed(f: &mut Fuser, value: ValueId) -> Option<ValueId> {
    let to = f.ty(value).dtype;
    if !matches!(to, DType::F16 | DType::BF16) {
        return None;
    }
    let y = view::elementwise(f.graph(), value, &Elementwise::Cast { to })?[0];
    let node = f.graph().nodes[f.graph().producer(y)?].clone();
    let is_norm =
        matches!(node.op, Op::Normalization(Normalization::LayerNorm { eps: _ } | Normalization::RmsNorm { eps: _ }));
    if !is_norm || node.outputs[0] != y || f.ty(y).dtype != DType::F32 {
        return None;
    }
    let wide = Elementwise::Cast { to: DType::F32 };
    let mut operands = Vec::new();
    for &operand in &node.inputs {
        let narrow = view::elementwise(f.graph(), operand, &wide).map(|x| x[0]).filter(|&x| f.ty(x).dtype == to);
        let uniform = view::uniform(f.graph(), operand).filter(|_| !operands.is_empty());
        let shape = f.ty(operand).shape.clone();
        operands.push(match (narrow, uniform) {
            (Some(narrow), _) => narrow,
            (None, Some(number @ (0.0 | 1.0))) => f.splat(to, &shape, number),
            (None, _) => return None,
        });
    }
    Some(f.one(node.op, &operands))
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
