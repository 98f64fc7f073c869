//! Attention and rotary embedding.

use super::{Arg, Fault, Out, with_float};
use crate::host::kernels::attention::{Attention as Call, Operands, Saved, backward, forward, mask_backward};
use crate::host::kernels::rope::{Pairs, Turn, rope};
use trainc_ir::op::Attention;

/// Runs attention, rotary embedding, or a gradient of one.
pub(super) fn execute(op: &Attention, inputs: &[Arg<'_>], outputs: &mut [Out<'_>]) -> Result<(), Fault> {
    match op {
        Attention::Attention { scale, causal } => {
            let call = call(inputs, scale.get(), *causal);
            let mask = inputs.get(3);
            let mask_shape = mask.map(Arg::shape);
            let [out, lse] = outputs else { unreachable!("attention has two results by its type rule") };
            with_float!(op, inputs[0].ty.dtype, T => {
                let mut workspace = vec![0.0; call.forward_workspace()];
                let x = operands::<T>(inputs, mask, mask_shape.as_deref());
                forward(&call, x, out.get(), lse.get(), &mut workspace);
            });
        }
        Attention::AttentionGrad { scale, causal } => {
            let call = call(inputs, scale.get(), *causal);
            let rest = inputs.len() - 3;
            let mask = if rest == 4 { inputs.get(3) } else { None };
            let mask_shape = mask.map(Arg::shape);
            let [dq, dk, dv] = outputs else { unreachable!("attention's gradient has three results by its type rule") };
            with_float!(op, inputs[0].ty.dtype, T => {
                let mut workspace = vec![0.0; call.backward_workspace()];
                let x = operands::<T>(inputs, mask, mask_shape.as_deref());
                let saved =
                    Saved { out: inputs[rest].get(), lse: inputs[rest + 1].get(), dout: inputs[rest + 2].get() };
                backward(&call, x, saved, (dq.get(), dk.get(), dv.get()), &mut workspace);
            });
        }
        Attention::AttentionMaskGrad { scale, causal } => {
            let call = call(inputs, scale.get(), *causal);
            let mask_shape = inputs[3].shape();
            with_float!(op, inputs[0].ty.dtype, T => {
                let mut workspace = vec![0.0; call.mask_backward_workspace(&mask_shape)];
                let x = operands::<T>(inputs, Some(&inputs[3]), Some(&mask_shape));
                let saved = Saved { out: inputs[4].get(), lse: inputs[5].get(), dout: inputs[6].get() };
                mask_backward(&call, x, saved, outputs[0].get(), &mut workspace);
            });
        }
        Attention::Rope { interleaved } | Attention::RopeGrad { interleaved } => {
            let forward = matches!(op, Attention::Rope { interleaved: _ });
            let turn = if forward { Turn::Forward } else { Turn::Backward };
            let pairs = if *interleaved { Pairs::Neighbours } else { Pairs::Halves };
            let table = inputs[1].shape();
            with_float!(op, inputs[0].ty.dtype, T => {
                let tables = (inputs[1].get::<T>(), inputs[2].get());
                rope(inputs[0].get(), tables, (table[0], table[1]), (turn, pairs), outputs[0].get());
            });
        }
    }
    Ok(())
}

fn operands<'a, T: super::Plain>(
    inputs: &[Arg<'a>],
    mask: Option<&Arg<'a>>,
    mask_shape: Option<&'a [usize]>,
) -> Operands<'a, T> {
    let mask = mask.map(Arg::get).zip(mask_shape);
    Operands { q: inputs[0].get(), k: inputs[1].get(), v: inputs[2].get(), mask }
}

fn call(inputs: &[Arg<'_>], scale: f64, causal: bool) -> Call {
    let (q, k, v) = (inputs[0].shape(), inputs[1].shape(), inputs[2].shape());
    let (queries, keys) = (q[2], k[2]);
    Call {
        batch: q[0],
        heads: q[1],
        kv_heads: k[1],
        queries,
        keys,
        width: q[3],
        value_width: v[3],
        scale,
        causal_offset: causal.then_some(keys as isize - queries as isize),
    }
}
