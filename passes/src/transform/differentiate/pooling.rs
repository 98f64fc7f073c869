//! Gradient rules of pooling.
//!
//! Of equal elements the first gets all of the gradient of a maximum, as in PyTorch's pooling (unlike its `amax`).

use super::backward::{Backward, Gradients, Site};
use trainc_ir::op::Pooling;

pub(super) fn gradient(op: &Pooling, at: &Site, b: &mut Backward) -> Gradients {
    use Pooling as P;
    let g = at.grad()?;
    let x = at.node.inputs[0];
    match op.clone() {
        P::MaxPool { kernel, strides, low, high, dilations, ceil } => {
            let op = P::MaxPoolGrad { kernel, strides, low, high, dilations, ceil };
            at.each(b, |b, _| Ok(Some(b.node(op.clone(), &[x, g]))))
        }
        P::AveragePool { kernel, strides, low, high, dilations, ceil, pads } => {
            let shape = b.ty(x).shape.clone();
            let op = P::AveragePoolGrad { shape, kernel, strides, low, high, dilations, ceil, pads };
            at.each(b, |b, _| Ok(Some(b.node(op.clone(), &[g]))))
        }
        P::AveragePoolGrad { shape: _, kernel, strides, low, high, dilations, ceil, pads } => {
            let op = P::AveragePool { kernel, strides, low, high, dilations, ceil, pads };
            at.each(b, |b, _| Ok(Some(b.node(op.clone(), &[g]))))
        }
        P::MaxPoolGrad { .. } => Err(super::SECOND.to_owned()),
    }
}
