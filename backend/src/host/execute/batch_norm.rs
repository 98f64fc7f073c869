//! Batch normalization and its running averages.

use super::{Arg, Fault, Out, with_element, with_float};
use crate::host::kernels::batch_norm::{Channels, Stats, batch_norm, input_grad, param_grad, running_average};
use crate::host::kernels::cast::cast;
use trainc_ir::op::BatchNorm;

/// Runs a batch normalization, a gradient of one, or the update of an average, which already lies in the result.
pub(super) fn execute(op: &BatchNorm, inputs: &[Arg<'_>], outputs: &mut [Out<'_>]) -> Result<(), Fault> {
    if let BatchNorm::RunningAverage { momentum } = op {
        let x = inputs[1];
        with_float!(op, outputs[0].ty.dtype, T => {
            let mut converted = vec![T::default(); x.ty.elements() as usize];
            with_element!(x.ty.dtype, A => cast::<A, T>(x.get(), &mut converted));
            running_average::<T>(momentum.get(), outputs[0].get(), &converted);
        });
        return Ok(());
    }
    let shape = inputs[0].shape();
    let sizes = Channels { samples: shape[0], channels: shape[1], places: shape[2..].iter().product() };
    with_float!(op, inputs[0].ty.dtype, T => {
        let x = |i: usize| inputs[i].get::<T>();
        match op {
            BatchNorm::BatchNorm { eps } => {
                let [y, mean, var] = outputs else { unreachable!("batch norm has three results by its type rule") };
                batch_norm(sizes, x(0), (x(1), x(2)), eps.get(), y.get(), (mean.get(), var.get()));
            }
            BatchNorm::BatchNormInputGrad { eps } => {
                let stats = Stats { mean: x(2), var: x(3), epsilon: eps.get() };
                input_grad(sizes, x(0), x(1), &stats, x(4), outputs[0].get());
            }
            BatchNorm::BatchNormParamGrad { eps } => {
                let [dw, db] = outputs else { unreachable!("the gradient has two results by its type rule") };
                let stats = Stats { mean: x(1), var: x(2), epsilon: eps.get() };
                param_grad(sizes, x(0), &stats, x(3), (dw.get(), db.get()));
            }
            BatchNorm::RunningAverage { momentum: _ } => unreachable!("it has run"),
        }
    });
    Ok(())
}
