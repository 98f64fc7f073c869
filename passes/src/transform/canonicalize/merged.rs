//! Products of merged batches.
//!
//! Exporters multiply batches as `[.., s, d] -> [n, s, d] -> product -> [.., s, t]` (PyTorch's `bmm`, `baddbmm`). Where an
//! operand of the product was merged from the same parts, the product takes its operands apart instead of its result, and
//! so do the factors and sums behind it. The two reshapes of the operand are none then.

use super::Rewriter;
use crate::transform::view;
use trainc_ir::op::{Contraction, Elementwise, Movement};
use trainc_ir::{Op, ValueId};

/// Longer chains of factors and sums than any model has.
const MAX_DEPTH: usize = 4;

/// The value `[n, s, t]` taken apart to a shape `[.., s, t]`, where a product of merged batches is behind it.
pub(super) fn unmerge(r: &mut Rewriter, x: ValueId, shape: &[u64]) -> Option<ValueId> {
    let rank = shape.len();
    if rank < 4 || r.ty(x).rank() != 3 || r.ty(x).shape[1..] != shape[rank - 2..] {
        return None;
    }
    is_merged(r, x, &shape[..rank - 2], MAX_DEPTH).then(|| apart(r, x, &shape[..rank - 2], MAX_DEPTH))
}

/// Whether one product of merged batches is behind the value and nothing else reads what is between.
fn is_merged(r: &Rewriter, x: ValueId, lead: &[u64], depth: usize) -> bool {
    if !r.single[x] || r.ty(x).rank() != 3 || depth == 0 {
        return false;
    }
    let Some(node) = r.graph().producer(x).map(|node| &r.graph().nodes[node]) else { return false };
    match &node.op {
        Op::Contraction(Contraction::MatMul { transpose_a: _, transpose_b: _ }) => {
            let flat = node.inputs.iter().all(|&v| r.ty(v).rank() == 3);
            flat && node.inputs.iter().any(|&v| was_merged(r, v, lead))
        }
        Op::Elementwise(Elementwise::Add | Elementwise::Sub | Elementwise::Mul | Elementwise::Div) => {
            let n = r.ty(x).shape[0];
            let fits = |v: ValueId| r.ty(v).rank() == 0 || (r.ty(v).rank() == 3 && r.ty(v).shape[0] == n);
            node.inputs.iter().all(|&v| fits(v)) && node.inputs.iter().any(|&v| is_merged(r, v, lead, depth - 1))
        }
        _ => false,
    }
}

/// Whether the value `[n, ..]` is one `[.., ..]` whose leading axes were merged, its last two exchanged or not.
fn was_merged(r: &Rewriter, value: ValueId, lead: &[u64]) -> bool {
    let source = match view::movement(r.graph(), value) {
        Some((Movement::Transpose { perm }, source)) if perm[..] == [0, 2, 1] => source,
        _ => value,
    };
    let Some((Movement::Reshape { shape: _ }, whole)) = view::movement(r.graph(), source) else { return false };
    let (from, to) = (&r.ty(whole).shape, &r.ty(source).shape);
    from.len() == lead.len() + 2 && from[..lead.len()] == *lead && from[lead.len()..] == to[1..]
}

fn apart(r: &mut Rewriter, x: ValueId, lead: &[u64], depth: usize) -> ValueId {
    let node = r.graph().producer(x).map(|node| r.graph().nodes[node].clone());
    match node {
        Some(node) if is_merged(r, x, lead, depth) => {
            let operands: Vec<_> = node.inputs.iter().map(|&v| apart(r, v, lead, depth - 1)).collect();
            r.one(node.op, &operands)
        }
        Some(_) | None if r.ty(x).rank() == 3 => {
            let shape = lead.iter().chain(&r.ty(x).shape[1..]).copied().collect();
            r.one(Movement::Reshape { shape }, &[x])
        }
        Some(_) | None => x,
    }
}
