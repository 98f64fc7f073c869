//! Gradient rules of normalizations and softmax.

use super::backward::{Backward, Gradients, Site};
use trainc_ir::op::Normalization;

pub(super) fn gradient(op: &Normalization, at: &Site, b: &mut Backward) -> Gradients {
    use Normalization as N;
    let g = at.only_grad()?;
    let (inputs, outputs, wanted) = (&at.node.inputs, &at.node.outputs, &at.wanted);
    match op {
        N::LayerNorm { eps: _ } => {
            let (x, w, mean, rstd) = (inputs[0], inputs[1], outputs[1], outputs[2]);
            let mut out = vec![None; 3];
            if wanted[0] {
                b.enter(at, &[0]);
                out[0] = Some(b.node(N::LayerNormInputGrad, &[x, w, mean, rstd, g]));
            }
            if wanted[1] || wanted[2] {
                b.enter(at, &[1, 2]);
                let both = b.nodes(N::LayerNormParamGrad, &[x, mean, rstd, g]);
                out[1] = wanted[1].then_some(both[0]);
                out[2] = wanted[2].then_some(both[1]);
            }
            Ok(out)
        }
        N::RmsNorm { eps: _ } => {
            let (x, w, rstd) = (inputs[0], inputs[1], outputs[1]);
            at.each(b, |b, operand| {
                Ok(Some(match operand {
                    0 => b.node(N::RmsNormInputGrad, &[x, w, rstd, g]),
                    _ => b.node(N::RmsNormParamGrad, &[x, rstd, g]),
                }))
            })
        }
        N::Softmax => at.each(b, |b, _| Ok(Some(b.node(N::SoftmaxGrad, &[outputs[0], g])))),
        N::LogSoftmax => at.each(b, |b, _| Ok(Some(b.node(N::LogSoftmaxGrad, &[outputs[0], g])))),
        N::LayerNormInputGrad | N::LayerNormParamGrad | N::RmsNormInputGrad | N::RmsNormParamGrad => {
            Err(super::SECOND.to_owned())
        }
        N::SoftmaxGrad | N::LogSoftmaxGrad => Err(super::SECOND.to_owned()),
    }
}
