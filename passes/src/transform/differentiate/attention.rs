//! Gradient rules of attention and rotary embedding.

use super::backward::{Backward, Gradients, Site};
use trainc_ir::op::Attention;

pub(super) fn gradient(op: &Attention, at: &Site, b: &mut Backward) -> Gradients {
    let g = at.only_grad()?;
    let inputs = &at.node.inputs;
    match op {
        Attention::Attention { scale, causal } => {
            let mut operands = inputs.clone();
            operands.extend(&at.node.outputs);
            operands.push(g);
            let mut out = vec![None; inputs.len()];
            if at.wanted[..3].contains(&true) {
                b.enter(at, &[0, 1, 2]);
                let all = b.nodes(Attention::AttentionGrad { scale: *scale, causal: *causal }, &operands);
                (0..3).filter(|&i| at.wanted[i]).for_each(|i| out[i] = Some(all[i]));
            }
            if at.wanted.get(3) == Some(&true) {
                b.enter(at, &[3]);
                out[3] = Some(b.node(Attention::AttentionMaskGrad { scale: *scale, causal: *causal }, &operands));
            }
            Ok(out)
        }
        Attention::Rope { interleaved } => {
            let op = Attention::RopeGrad { interleaved: *interleaved };
            at.no_grad_from(1, "the table of a rotary embedding")?;
            at.each(b, |b, _| Ok(Some(b.node(op.clone(), &[g, inputs[1], inputs[2]]))))
        }
        Attention::AttentionGrad { scale: _, causal: _ }
        | Attention::AttentionMaskGrad { scale: _, causal: _ }
        | Attention::RopeGrad { interleaved: _ } => Err(super::SECOND.to_owned()),
    }
}
