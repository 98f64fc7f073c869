//! Losses.

use super::{Arg, Fault, Out, indices, with_float};
use crate::host::kernels::loss::{cross_entropy, cross_entropy_grad};
use trainc_ir::op::Loss;

/// Runs a loss or its gradient.
pub(super) fn execute(op: &Loss, inputs: &[Arg<'_>], outputs: &mut [Out<'_>]) -> Result<(), Fault> {
    let (logits, labels) = (inputs[0], indices(&inputs[1]));
    let classes = logits.shape()[1];
    match op {
        Loss::CrossEntropy { ignore_index } => {
            let [sum, count, lse] = outputs else { unreachable!("cross entropy has three results by its type rule") };
            with_float!(op, logits.ty.dtype, T => {
                let (total, n) = cross_entropy::<T>(logits.get(), classes, &labels, *ignore_index, lse.get())?;
                sum.get::<T>()[0] = total as T;
                count.get::<i64>()[0] = n as i64;
            });
        }
        Loss::CrossEntropyGrad { ignore_index } => {
            with_float!(op, logits.ty.dtype, T => {
                let (lse, dloss) = (inputs[2].get(), inputs[3].get::<T>()[0]);
                let labels = (&labels[..], *ignore_index);
                cross_entropy_grad((logits.get(), classes), labels, lse, dloss, outputs[0].get())?;
            });
        }
    }
    Ok(())
}
