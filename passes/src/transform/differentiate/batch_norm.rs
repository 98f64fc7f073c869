//! Gradient rules of batch normalization. Statistics are functions of the data; running averages get no gradient.

use super::backward::{Backward, Gradients, Site};
use trainc_ir::op::BatchNorm;

pub(super) fn gradient(op: &BatchNorm, at: &Site, b: &mut Backward) -> Gradients {
    match *op {
        BatchNorm::BatchNorm { eps } => {
            let g = at.only_grad()?;
            let (inputs, outputs, wanted) = (&at.node.inputs, &at.node.outputs, &at.wanted);
            let (x, w, mean, var) = (inputs[0], inputs[1], outputs[1], outputs[2]);
            let mut out = vec![None; 3];
            if wanted[0] {
                b.enter(at, &[0]);
                out[0] = Some(b.node(BatchNorm::BatchNormInputGrad { eps }, &[x, w, mean, var, g]));
            }
            if wanted[1] || wanted[2] {
                b.enter(at, &[1, 2]);
                let both = b.nodes(BatchNorm::BatchNormParamGrad { eps }, &[x, mean, var, g]);
                out[1] = wanted[1].then_some(both[0]);
                out[2] = wanted[2].then_some(both[1]);
            }
            Ok(out)
        }
        BatchNorm::RunningAverage { momentum: _ } => Err("the loss depends on a running average of it".to_owned()),
        BatchNorm::BatchNormInputGrad { eps: _ } | BatchNorm::BatchNormParamGrad { eps: _ } => {
            Err(super::SECOND.to_owned())
        }
    }
}
