//! Gradient rules of data movement: each is the movement back.

use super::backward::{Backward, Gradients, Site};
use trainc_ir::op::Movement;
use trainc_ir::{Type, ValueId};

pub(super) fn gradient(op: &Movement, at: &Site, b: &mut Backward) -> Gradients {
    if let Movement::Split { axis, sizes: _ } = op {
        return at.each(b, |b, _| Ok(Some(split(*axis, at, b))));
    }
    let g = at.grad()?;
    if let Movement::Concat { axis } = op {
        return concat(*axis, at, g, b);
    }
    let shape = b.ty(at.node.inputs[0]).shape.clone();
    at.each(b, |b, _| {
        let back = match op {
            Movement::Reshape { shape: _ } => Movement::Reshape { shape: shape.clone() },
            Movement::Transpose { perm } => {
                let mut inverse = vec![0; perm.len()];
                for (i, &p) in perm.iter().enumerate() {
                    inverse[p as usize] = i as u64;
                }
                Movement::Transpose { perm: inverse }
            }
            // The caller sums over what was repeated.
            Movement::Broadcast { shape: _ } => return Ok(Some(g)),
            Movement::Slice { starts, ends, steps } => {
                let (starts, ends, steps) = (starts.clone(), ends.clone(), steps.clone());
                Movement::SliceGrad { shape: shape.clone(), starts, ends, steps }
            }
            Movement::SliceGrad { shape: _, starts, ends, steps } => {
                Movement::Slice { starts: starts.clone(), ends: ends.clone(), steps: steps.clone() }
            }
            Movement::Pad { low, high: _, value: _ } => {
                let starts: Vec<i64> = low.iter().map(|&l| l as i64).collect();
                let ends = starts.iter().zip(&shape).map(|(start, &dim)| start + dim as i64).collect();
                Movement::Slice { ends, steps: vec![1; starts.len()], starts }
            }
            Movement::Concat { axis: _ } | Movement::Split { axis: _, sizes: _ } => {
                unreachable!("handled before the single-operand rules")
            }
        };
        Ok(Some(b.node(back, &[g])))
    })
}

/// The parts' gradients one after the other, zeros where the loss does not depend on a part.
fn split(axis: u64, at: &Site, b: &mut Backward) -> ValueId {
    let parts: Vec<(Option<ValueId>, Type)> =
        at.grads.iter().zip(&at.node.outputs).map(|(&g, &part)| (g, b.ty(part).clone())).collect();
    let parts: Vec<ValueId> = parts.into_iter().map(|(g, ty)| g.unwrap_or_else(|| b.zeros(ty))).collect();
    b.node(Movement::Concat { axis }, &parts)
}

/// One split where every operand is wanted, else a slice for each that is.
fn concat(axis: u64, at: &Site, g: ValueId, b: &mut Backward) -> Gradients {
    let axis_index = axis as usize;
    let sizes: Vec<u64> = at.node.inputs.iter().map(|&v| b.ty(v).shape[axis_index]).collect();
    let same_side = at.weight_side.iter().all(|&side| side == at.weight_side[0]);
    if at.wanted.iter().all(|&wanted| wanted) && same_side && sizes.len() > 1 {
        b.enter(at, &[0]);
        let parts = b.nodes(Movement::Split { axis, sizes }, &[g]);
        return Ok(parts.into_iter().map(Some).collect());
    }
    at.each(b, |b, operand| {
        let mut ends: Vec<i64> = b.ty(g).shape.iter().map(|&d| d as i64).collect();
        let mut starts = vec![0; ends.len()];
        starts[axis_index] = sizes[..operand].iter().sum::<u64>() as i64;
        ends[axis_index] = starts[axis_index] + sizes[operand] as i64;
        let steps = vec![1; ends.len()];
        Ok(Some(b.node(Movement::Slice { starts, ends, steps }, &[g])))
    })
}
