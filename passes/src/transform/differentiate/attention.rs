//! Gradient rules of attention and rotary embedding.

use super::backward::{Backward, Gradients, Site};
use trainc_ir::op::Attention;

pub(super) fn gradient(op: &Attention, at: &Site, b: &mut Backward) -> Gradients {
    let g = at.only_grad()?;
    let inputs = &at.node.inputs;
    match op {
        Attention::Attention { scale, causal } => {
            at.no_grad_from(3, "the mask of attention")?;
            let mut operands = inputs.clone();
            operands.extend(&at.node.outputs);
            operands.push(g);
            b.enter(at, &[0, 1, 2]);
            let all = b.nodes(Attention::AttentionGrad { scale: *scale, causal: *causal }, &operands);
            let mut out: Vec<_> = (0..3).map(|i| at.wanted[i].then_some(all[i])).collect();
            out.resize(inputs.len(), None);
            Ok(out)
        }
        Attention::Rope => {
            at.no_grad_from(1, "the table of a rotary embedding")?;
            at.each(b, |b, _| Ok(Some(b.node(Attention::RopeGrad, &[g, inputs[1], inputs[2]]))))
        }
        Attention::AttentionGrad { scale: _, causal: _ } | Attention::RopeGrad => Err(super::SECOND.to_owned()),
    }
}
