//! Heads: factors of the scores, and key-value heads that are repeated for several query heads.

use super::Fuser;
use crate::transform::view;
use trainc_ir::op::{Elementwise, Indexing, Movement};
use trainc_ir::{Graph, Op, ValueId};

/// More factors than any model has one behind the other.
const MAX_FACTORS: usize = 16;

/// Strips products with and quotients by constants: the value inside and the factor.
pub(super) fn unscaled(graph: &Graph, mut value: ValueId) -> (ValueId, f64) {
    let mut factor = 1.0;
    for _ in 0..MAX_FACTORS {
        let step = |op: &Elementwise| {
            let &[a, b] = view::elementwise(graph, value, op)? else { return None };
            let constant = view::uniform(graph, b).filter(|c| c.is_finite() && *c != 0.0)?;
            (graph.ty(a) == graph.ty(value)).then_some((a, constant))
        };
        if let Some((inner, constant)) = step(&Elementwise::Mul) {
            (value, factor) = (inner, factor * constant);
        } else if let Some((inner, constant)) = step(&Elementwise::Div) {
            (value, factor) = (inner, factor / constant);
        } else {
            break;
        }
    }
    (value, factor)
}

/// Keys and values `[b, g, t, d]` that `[b, g r, t, d]` repeat, where both repeat as many.
pub(super) fn shared(f: &mut Fuser, k: ValueId, v: ValueId) -> Option<(ValueId, ValueId)> {
    let (single_k, single_v) = (unrepeated(f, k)?, unrepeated(f, v)?);
    (f.ty(single_k).shape[..3] == f.ty(single_v).shape[..3]).then_some((single_k, single_v))
}

/// The heads `[b, g, t, d]` of a value `[b, g r, t, d]` that repeats each of them `r` times in a row.
fn unrepeated(f: &mut Fuser, value: ValueId) -> Option<ValueId> {
    if let Some(heads) = along(f.graph(), value, 1).or_else(|| looked_up(f, value)) {
        return Some(heads);
    }
    // Repeated before positions and heads were exchanged.
    let (Movement::Transpose { perm }, turned) = view::movement(f.graph(), value)? else { return None };
    if perm[..] != [0, 2, 1, 3] {
        return None;
    }
    let heads = along(f.graph(), turned, 2)?;
    Some(f.one(Movement::Transpose { perm: vec![0, 2, 1, 3] }, &[heads]))
}

/// What a value of rank 4 repeats along an axis, each entry several times in a row: spread over an axis of its own
/// which is then merged, or one entry spread over the whole axis.
fn along(graph: &Graph, value: ValueId, axis: usize) -> Option<ValueId> {
    let full = &graph.ty(value).shape;
    if full.len() != 4 {
        return None;
    }
    let (op, repeated) = view::movement(graph, value)?;
    if let Movement::Broadcast { shape: _ } = op {
        let mut one = full.clone();
        one[axis] = 1;
        return (graph.ty(repeated).shape == one).then_some(repeated);
    }
    let Movement::Reshape { shape: _ } = op else { return None };
    let (Movement::Broadcast { shape }, single) = view::movement(graph, repeated)? else { return None };
    if shape.len() != 5 || shape[axis] * shape[axis + 1] != full[axis] {
        return None;
    }
    let mut heads = full.clone();
    heads[axis] = shape[axis];
    let (mut apart, mut alone) = (heads.clone(), heads.clone());
    apart.insert(axis + 1, shape[axis + 1]);
    alone.insert(axis + 1, 1);
    if *shape != apart || graph.ty(single).shape != alone {
        return None;
    }
    let (Movement::Reshape { shape: _ }, source) = view::movement(graph, single)? else { return None };
    (graph.ty(source).shape == heads).then_some(source)
}

/// What a lookup of `0, 0, 1, 1, ..` along axis 1 repeats.
fn looked_up(f: &mut Fuser, value: ValueId) -> Option<ValueId> {
    let node = &f.graph().nodes[f.graph().producer(value)?];
    let Op::Indexing(Indexing::Gather { axis: 1 }) = node.op else { return None };
    let (source, indices) = (node.inputs[0], node.inputs[1]);
    let (heads, all) = (f.ty(source).shape[1], f.ty(value).shape[1]);
    if f.ty(value).rank() != 4 || f.ty(indices).rank() != 1 || heads == 0 || all % heads != 0 {
        return None;
    }
    let found = f.evaluator.value(f.builder.graph(), indices)?;
    let repeat = all / heads;
    let in_a_row = found.to_f64s().iter().enumerate().all(|(i, &index)| index == (i as u64 / repeat) as f64);
    in_a_row.then_some(source)
}
