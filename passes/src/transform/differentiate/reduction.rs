//! Gradient rules of reductions and scans.
//!
//! Equal extrema share the gradient evenly, as in PyTorch's `amax` and `amin`.

use super::backward::{Backward, Blocked, Gradients, Site};
use trainc_ir::ValueId;
use trainc_ir::op::{Elementwise, Indexing, ReduceKind, Reduction};

pub(super) fn gradient(op: &Reduction, at: &Site, b: &mut Backward) -> Gradients {
    let x = at.node.inputs[0];
    match op {
        Reduction::Reduce { kind, axes, keep: _ } => {
            let g = at.grad()?;
            at.each(b, |b, _| reduce(*kind, axes, at, g, b).map(Some))
        }
        Reduction::CumSum { axis, exclusive, reverse } => {
            let g = at.grad()?;
            let op = Reduction::CumSum { axis: *axis, exclusive: *exclusive, reverse: !reverse };
            at.each(b, |b, _| Ok(Some(b.node(op.clone(), &[g]))))
        }
        Reduction::TopK { k: _ } => {
            let g = at.grad()?;
            at.each(b, |b, _| {
                let shape = &b.ty(x).shape;
                let axis = shape.len() - 1;
                let op = Indexing::GatherElementsGrad { axis: axis as u64, len: shape[axis] };
                Ok(Some(b.node(op, &[at.node.outputs[1], g])))
            })
        }
        Reduction::ArgMax { axis: _ } => at.nothing(),
    }
}

fn reduce(kind: ReduceKind, axes: &[u64], at: &Site, g: ValueId, b: &mut Backward) -> Result<ValueId, Blocked> {
    let (x, y) = (at.node.inputs[0], at.node.outputs[0]);
    let shape = b.ty(x).shape.clone();
    let mut kept = shape.clone();
    for &axis in axes {
        kept[axis as usize] = 1;
    }
    let g = b.reshape(g, &kept);
    Ok(match kind {
        ReduceKind::Sum => b.broadcast(g, &shape),
        ReduceKind::Mean => {
            let n: u64 = axes.iter().map(|&axis| shape[axis as usize]).product();
            let scaled = b.scale(g, 1.0 / n as f64);
            b.broadcast(scaled, &shape)
        }
        ReduceKind::Max | ReduceKind::Min => {
            let y = b.reshape(y, &kept);
            let extreme = b.node(Elementwise::Eq, &[x, y]);
            let ones = b.cast(extreme, b.ty(x).dtype);
            let count = b.reduce(ReduceKind::Sum, ones, axes, true);
            let share = b.div(g, count);
            b.mul(share, ones)
        }
        ReduceKind::Prod => {
            // The product of the others: y/x without zeros; with one zero only that element has one that is not 0.
            let (zero, one) = (b.scalar(x, 0.0), b.scalar(x, 1.0));
            let is_zero = b.node(Elementwise::Eq, &[x, zero]);
            let flags = b.cast(is_zero, b.ty(x).dtype);
            let zeros = b.reduce(ReduceKind::Sum, flags, axes, true);
            let safe = b.select(is_zero, one, x);
            let product = b.reduce(ReduceKind::Prod, safe, axes, true);
            let none = b.node(Elementwise::Eq, &[zeros, zero]);
            let single = b.node(Elementwise::Eq, &[zeros, one]);
            let quotient = b.div(product, safe);
            let others = b.select(none, quotient, zero);
            let at_zero = b.select(single, product, zero);
            let slope = b.select(is_zero, at_zero, others);
            b.mul(g, slope)
        }
    })
}
