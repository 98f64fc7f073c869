//! Gradient rules of matrix products.

use super::backward::{Backward, Gradients, Site};
use trainc_ir::ValueId;
use trainc_ir::op::Contraction;

pub(super) fn gradient(op: &Contraction, at: &Site, b: &mut Backward) -> Gradients {
    let Contraction::MatMul { transpose_a: ta, transpose_b: tb } = *op;
    let g = at.grad()?;
    let (x, w) = (at.node.inputs[0], at.node.inputs[1]);
    at.each(b, |b, operand| {
        Ok(Some(match (operand, ta) {
            (0, false) => product(b, g, w, false, !tb),
            (0, true) => product(b, w, g, tb, true),
            _ => {
                // A matrix that serves every leading position sums its gradient over them: one product of long rows.
                let shared = b.ty(w).rank() == 2;
                let (x, g) = if shared { (rows(b, x), rows(b, g)) } else { (x, g) };
                if tb { product(b, g, x, true, ta) } else { product(b, x, g, !ta, false) }
            }
        }))
    })
}

fn product(b: &mut Backward, x: ValueId, y: ValueId, transpose_a: bool, transpose_b: bool) -> ValueId {
    b.node(Contraction::MatMul { transpose_a, transpose_b }, &[x, y])
}

/// All leading dimensions as one.
fn rows(b: &mut Backward, value: ValueId) -> ValueId {
    let shape = b.ty(value).shape.clone();
    if shape.len() == 2 {
        return value;
    }
    let (width, lead) = shape.split_last().expect("operands of products have rank 2 or more");
    b.reshape(value, &[lead.iter().product(), *width])
}
