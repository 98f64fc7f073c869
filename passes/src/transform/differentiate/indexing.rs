//! Gradient rules of lookups. The additions that are their gradients are linear, so their gradients are lookups again.

use super::backward::{Backward, Gradients, Site};
use trainc_ir::op::Indexing;

pub(super) fn gradient(op: &Indexing, at: &Site, b: &mut Backward) -> Gradients {
    let g = at.grad()?;
    let (first, second) = (at.node.inputs[0], at.node.inputs[1]);
    at.each(b, |b, _| {
        let len = |axis: u64| b.ty(first).shape[axis as usize];
        let (op, operands) = match *op {
            Indexing::Gather { axis } => (Indexing::GatherGrad { axis, len: len(axis) }, [second, g]),
            Indexing::GatherElements { axis } => (Indexing::GatherElementsGrad { axis, len: len(axis) }, [second, g]),
            Indexing::GatherGrad { axis, len: _ } => (Indexing::Gather { axis }, [g, first]),
            Indexing::GatherElementsGrad { axis, len: _ } => (Indexing::GatherElements { axis }, [g, first]),
        };
        Ok(Some(b.node(op, &operands)))
    })
}
