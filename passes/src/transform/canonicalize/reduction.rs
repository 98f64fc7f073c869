//! Reductions of nothing.

use super::Rewriter;
use trainc_ir::ValueId;
use trainc_ir::op::{Movement, Reduction};

pub(super) fn simplify(r: &mut Rewriter, op: &Reduction, inputs: &[ValueId]) -> Option<ValueId> {
    match op {
        Reduction::Reduce { kind: _, axes, keep } => {
            let shape = &r.ty(inputs[0]).shape;
            if axes.iter().any(|&axis| shape[axis as usize] != 1) {
                return None;
            }
            let kept = |i: &usize| *keep || !axes.contains(&(*i as u64));
            let shape: Vec<u64> = (0..shape.len()).filter(kept).map(|i| shape[i]).collect();
            if shape == r.ty(inputs[0]).shape {
                return Some(inputs[0]);
            }
            Some(r.one(Movement::Reshape { shape }, &[inputs[0]]))
        }
        Reduction::ArgMax { axis: _ } | Reduction::CumSum { axis: _, exclusive: _, reverse: _ } => None,
        Reduction::TopK { k: _ } => None,
    }
}
