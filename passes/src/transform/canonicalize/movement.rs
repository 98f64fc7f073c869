//! Chains of movements.

use super::{Rewriter, merged};
use crate::transform::view;
use trainc_ir::ValueId;
use trainc_ir::op::Movement;

pub(super) fn simplify(r: &mut Rewriter, op: &Movement, inputs: &[ValueId]) -> Option<ValueId> {
    let x = inputs[0];
    let from = r.ty(x).shape.clone();
    match op {
        Movement::Reshape { shape } => reshape(r, x, shape),
        Movement::Transpose { perm } => transpose(r, x, perm),
        Movement::Broadcast { shape } => {
            if *shape == from {
                return Some(x);
            }
            let lead = shape.len() - from.len();
            if shape[lead..] == from[..] && shape[..lead].iter().all(|&d| d == 1) {
                return Some(r.one(Movement::Reshape { shape: shape.clone() }, &[x]));
            }
            match view::movement(r.graph(), x)? {
                (Movement::Broadcast { shape: _ }, source) => {
                    Some(r.one(Movement::Broadcast { shape: shape.clone() }, &[source]))
                }
                _ => None,
            }
        }
        Movement::Slice { starts, ends, steps } => {
            let whole = (0..from.len()).all(|i| starts[i] == 0 && ends[i] as u64 == from[i] && steps[i] == 1);
            whole.then_some(x)
        }
        Movement::Concat { axis: _ } | Movement::Split { axis: _, sizes: _ } => {
            let parts = if let Movement::Split { axis: _, sizes } = op { sizes.len() } else { inputs.len() };
            (parts == 1).then_some(x)
        }
        Movement::Pad { low, high, value: _ } => low.iter().chain(high).all(|&d| d == 0).then_some(x),
        Movement::SliceGrad { shape, starts: _, ends: _, steps: _ } => {
            let forward = matches!(op, Movement::SliceGrad { shape: _, starts: _, ends: _, steps }
                if steps.iter().all(|&s| s == 1));
            (forward && *shape == from).then_some(x)
        }
    }
}

fn reshape(r: &mut Rewriter, x: ValueId, shape: &[u64]) -> Option<ValueId> {
    if r.ty(x).shape == shape {
        return Some(x);
    }
    if let Some(source) = unmerged_transpose(r, x, shape).or_else(|| merged::unmerge(r, x, shape)) {
        return Some(source);
    }
    match view::movement(r.graph(), x)? {
        (Movement::Reshape { shape: _ }, source) if r.ty(source).shape == shape => Some(source),
        (Movement::Reshape { shape: _ }, source) => Some(r.one(Movement::Reshape { shape: shape.to_vec() }, &[source])),
        _ => None,
    }
}

/// Exporters swap the last two axes as `[.., s, d] -> [n, s, d] -> [n, d, s] -> [.., d, s]`: a reshape that only takes
/// the leading axis apart moves in front of the swap.
fn unmerged_transpose(r: &mut Rewriter, x: ValueId, shape: &[u64]) -> Option<ValueId> {
    let rank = shape.len();
    let (Movement::Transpose { perm }, merged) = view::movement(r.graph(), x)? else { return None };
    if perm[..] != [0, 2, 1] || rank < 3 || r.ty(x).shape[1..] != shape[rank - 2..] {
        return None;
    }
    let mut swapped = shape.to_vec();
    swapped.swap(rank - 1, rank - 2);
    let parts = r.one(Movement::Reshape { shape: swapped }, &[merged]);
    let mut perm: Vec<u64> = (0..rank as u64).collect();
    perm.swap(rank - 1, rank - 2);
    Some(r.one(Movement::Transpose { perm }, &[parts]))
}

fn transpose(r: &mut Rewriter, x: ValueId, perm: &[u64]) -> Option<ValueId> {
    let from = r.ty(x).shape.clone();
    let solid: Vec<u64> = perm.iter().copied().filter(|&p| from[p as usize] != 1).collect();
    if perm.is_sorted() {
        return Some(x);
    }
    if solid.is_sorted() {
        let shape = perm.iter().map(|&p| from[p as usize]).collect();
        return Some(r.one(Movement::Reshape { shape }, &[x]));
    }
    let (Movement::Transpose { perm: first }, source) = view::movement(r.graph(), x)? else { return None };
    let both: Vec<u64> = perm.iter().map(|&p| first[p as usize]).collect();
    if both.is_sorted() {
        return Some(source);
    }
    Some(r.one(Movement::Transpose { perm: both }, &[source]))
}
