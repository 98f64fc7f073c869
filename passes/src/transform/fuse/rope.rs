//! Rotary position embedding: `x cos + rotate_half(x) sin`.

use super::Fuser;
use super::product::sums;
use crate::transform::view;
use trainc_ir::op::{Attention, Elementwise, Movement};
use trainc_ir::{Def, Graph, Op, ValueId};

pub(super) fn fuse(f: &mut Fuser, value: ValueId) -> Option<ValueId> {
    let graph = f.graph();
    let factors = |v: ValueId| match view::elementwise(graph, v, &Elementwise::Mul) {
        Some(&[a, b]) => vec![(a, b), (b, a)],
        Some(_) | None => Vec::new(),
    };
    let (x, cos, sin) = sums(graph, value).into_iter().find_map(|(direct, turned)| {
        let (x, sin) = factors(turned).into_iter().find_map(|(half, sin)| Some((rotated(graph, half)?, sin)))?;
        let (_, cos) = factors(direct).into_iter().find(|&(found, _)| found == x)?;
        Some((x, cos, sin))
    })?;
    let ty = f.ty(x).clone();
    let table = ty.shape[ty.rank() - 2..].to_vec();
    let fits = |v: ValueId| {
        let found = f.ty(v);
        found.dtype == ty.dtype && found.shape.ends_with(&table) && found.elements() == table[0] * table[1]
    };
    // Tables get no gradient, so trained ones stay visible to differentiation.
    if f.ty(value) != &ty || !fits(cos) || !fits(sin) || f.has_parameter(cos) || f.has_parameter(sin) {
        return None;
    }
    let (cos, sin) = (f.reshape(cos, table.clone()), f.reshape(sin, table));
    Some(f.one(Attention::Rope, &[x, cos, sin]))
}

/// `x` of `[-b, a]`, where `a` and `b` are the halves of `x` along the last axis.
fn rotated(graph: &Graph, value: ValueId) -> Option<ValueId> {
    let node = &graph.nodes[graph.producer(value)?];
    let Op::Movement(Movement::Concat { axis }) = node.op else { return None };
    let &[minus, first] = &node.inputs[..] else { return None };
    let rank = graph.ty(value).rank();
    if rank < 2 || axis as usize != rank - 1 {
        return None;
    }
    let second = view::elementwise(graph, minus, &Elementwise::Neg)?[0];
    let (x, start) = half(graph, first)?;
    let (same, middle) = half(graph, second)?;
    (x == same && start == 0 && 2 * middle == *graph.ty(x).shape.last()?).then_some(x)
}

/// The value that this is half of along the last axis, and where the half starts.
fn half(graph: &Graph, value: ValueId) -> Option<(ValueId, u64)> {
    let (op, x) = view::movement(graph, value)?;
    let shape = &graph.ty(x).shape;
    let last = shape.len() - 1;
    let width = graph.ty(value).shape[last];
    if shape[last] != 2 * width {
        return None;
    }
    match op {
        Movement::Slice { starts, ends: _, steps } => {
            let others = graph.ty(value).shape[..last] == shape[..last];
            (others && steps.iter().all(|&s| s == 1)).then(|| (x, starts[last] as u64))
        }
        Movement::Split { axis, sizes: _ } if *axis as usize == last => match graph.values[value].def {
            Def::Result { node: _, index } => Some((x, index as u64 * width)),
            Def::Input(_) => None,
        },
        Movement::Split { axis: _, sizes: _ } | Movement::Reshape { shape: _ } | Movement::Broadcast { shape: _ } => {
            None
        }
        Movement::Transpose { perm: _ } | Movement::Concat { axis: _ } => None,
        Movement::SliceGrad { shape: _, starts: _, ends: _, steps: _ } => None,
        Movement::Pad { low: _, high: _, value: _ } => None,
    }
}
