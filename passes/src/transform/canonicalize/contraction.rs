//! Matrix products read transposed operands in place.

use super::Rewriter;
use crate::transform::view;
use trainc_ir::ValueId;
use trainc_ir::op::{Contraction, Movement};

pub(super) fn simplify(r: &mut Rewriter, op: &Contraction, inputs: &[ValueId]) -> Option<ValueId> {
    let Contraction::MatMul { transpose_a, transpose_b } = *op;
    let (a, b) = (inputs[0], inputs[1]);
    if let Some(b) = untransposed(r, b) {
        return Some(r.one(Contraction::MatMul { transpose_a, transpose_b: !transpose_b }, &[a, b]));
    }
    if r.ty(a).rank() == r.ty(b).rank()
        && let Some(a) = untransposed(r, a)
    {
        return Some(r.one(Contraction::MatMul { transpose_a: !transpose_a, transpose_b }, &[a, b]));
    }
    None
}

/// A value that differs in its last two axes only, where it needs no copy at all or keeps its rows in one piece.
fn untransposed(r: &mut Rewriter, value: ValueId) -> Option<ValueId> {
    let (Movement::Transpose { perm }, source) = view::movement(r.graph(), value)? else { return None };
    let mut perm = perm.clone();
    let rank = perm.len();
    let last = rank as u64 - 1;
    perm.swap(rank - 1, rank - 2);
    if perm.is_sorted() {
        return Some(source);
    }
    let worth_it = perm[rank - 1] == last;
    worth_it.then(|| r.one(Movement::Transpose { perm }, &[source]))
}
