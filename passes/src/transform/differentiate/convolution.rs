//! Gradient rules of convolutions. All three operators are linear in either operand, and each is the gradient of the
//! others.

use super::backward::{Backward, Gradients, Site};
use trainc_ir::op::Convolution;

pub(super) fn gradient(op: &Convolution, at: &Site, b: &mut Backward) -> Gradients {
    use Convolution as C;
    let g = at.grad()?;
    let (first, second) = (at.node.inputs[0], at.node.inputs[1]);
    // What both operators of the gradient need besides the geometry.
    let (shape, kernel) = match op {
        C::Conv { .. } => (b.ty(first).shape.clone(), b.ty(second).shape[2..].to_vec()),
        C::ConvInputGrad { shape, .. } => (shape.clone(), b.ty(first).shape[2..].to_vec()),
        C::ConvWeightGrad { kernel, .. } => (b.ty(first).shape.clone(), kernel.clone()),
    };
    let (C::Conv { strides, low, high, dilations, groups }
    | C::ConvInputGrad { shape: _, strides, low, high, dilations, groups }
    | C::ConvWeightGrad { kernel: _, strides, low, high, dilations, groups }) = op.clone();
    let forward = C::Conv {
        strides: strides.clone(),
        low: low.clone(),
        high: high.clone(),
        dilations: dilations.clone(),
        groups,
    };
    let of_weight = C::ConvWeightGrad {
        kernel,
        strides: strides.clone(),
        low: low.clone(),
        high: high.clone(),
        dilations: dilations.clone(),
        groups,
    };
    let of_input = C::ConvInputGrad { shape, strides, low, high, dilations, groups };
    at.each(b, |b, operand| {
        Ok(Some(match (op, operand) {
            // y = conv(x, w)
            (C::Conv { .. }, 0) => b.node(of_input.clone(), &[second, g]),
            (C::Conv { .. }, _) => b.node(of_weight.clone(), &[first, g]),
            // x = conv_input_grad(w, y)
            (C::ConvInputGrad { .. }, 0) => b.node(of_weight.clone(), &[g, second]),
            (C::ConvInputGrad { .. }, _) => b.node(forward.clone(), &[g, first]),
            // w = conv_weight_grad(x, y)
            (C::ConvWeightGrad { .. }, 0) => b.node(of_input.clone(), &[g, second]),
            (C::ConvWeightGrad { .. }, _) => b.node(forward.clone(), &[first, g]),
        }))
    })
}
