//! Accumulation and updates, in place on the results.

use super::{Arg, Fault, Out, with_element, with_float, with_number};
use crate::host::kernels::cast::cast;
use crate::host::kernels::optimizer::{AdamW, Step, accumulate, adamw, sgd, sgd_momentum};
use trainc_ir::op::Optimizer;

/// Runs an update; the results already hold the operands that they replace.
pub(super) fn execute(op: &Optimizer, inputs: &[Arg<'_>], outputs: &mut [Out<'_>]) -> Result<(), Fault> {
    match op {
        Optimizer::Accumulate => {
            let (x, dtype) = (inputs[1], outputs[0].ty.dtype);
            with_number!(op, dtype, T => {
                if x.ty.dtype == dtype {
                    accumulate::<T>(outputs[0].get(), x.get());
                } else {
                    let mut converted = vec![T::default(); x.ty.elements() as usize];
                    with_element!(x.ty.dtype, A => cast::<A, T>(x.get(), &mut converted));
                    accumulate(outputs[0].get(), &converted);
                }
            });
        }
        Optimizer::AdamW { beta1, beta2, eps, weight_decay } => {
            let [w, m, v] = outputs else { unreachable!("adamw has three results by its type rule") };
            let config =
                AdamW { beta1: beta1.get(), beta2: beta2.get(), epsilon: eps.get(), weight_decay: weight_decay.get() };
            let number = inputs[5].get::<i64>()[0] as f64;
            let step = Step { number, ..step(&inputs[4], &inputs[6]) };
            with_float!(op, w.ty.dtype, T => {
                adamw::<T>(&config, step, w.get(), inputs[1].get(), (m.get(), v.get()));
            });
        }
        Optimizer::SgdMomentum { momentum } => {
            let [w, m] = outputs else { unreachable!("momentum has two results by its type rule") };
            let step = step(&inputs[3], &inputs[4]);
            with_float!(op, w.ty.dtype, T => sgd_momentum::<T>(momentum.get(), step, w.get(), inputs[1].get(), m.get()));
        }
        Optimizer::Sgd => {
            let step = step(&inputs[2], &inputs[3]);
            with_float!(op, outputs[0].ty.dtype, T => sgd::<T>(step, outputs[0].get(), inputs[1].get()));
        }
    }
    Ok(())
}

/// The scalars of a step; a batch without any loss term has gradients of zero, which any divisor leaves alone.
fn step(rate: &Arg<'_>, count: &Arg<'_>) -> Step {
    Step { number: 1.0, rate: f64::from(rate.get::<f32>()[0]), count: count.get::<i64>()[0].max(1) as f64 }
}
