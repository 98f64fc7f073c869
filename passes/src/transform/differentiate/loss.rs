//! Gradient rules of losses.

use super::backward::{Backward, Gradients, Site};
use trainc_ir::op::Loss;

pub(super) fn gradient(op: &Loss, at: &Site, b: &mut Backward) -> Gradients {
    let g = at.only_grad()?;
    let (logits, labels) = (at.node.inputs[0], at.node.inputs[1]);
    match *op {
        Loss::CrossEntropy { ignore_index } => {
            let lse = at.node.outputs[2];
            at.each(b, |b, _| Ok(Some(b.node(Loss::CrossEntropyGrad { ignore_index }, &[logits, labels, lse, g]))))
        }
        Loss::CrossEntropyGrad { ignore_index: _ } => Err(super::SECOND.to_owned()),
    }
}
