//! Pooling.

use super::{Arg, Fault, Out, with_float};
use crate::host::kernels::Windows;
use crate::host::kernels::pooling::{average_pool, average_pool_grad, max_pool, max_pool_grad};
use trainc_ir::op::Pooling;

/// Runs a pooling, or a gradient of one.
pub(super) fn execute(op: &Pooling, inputs: &[Arg<'_>], output: &mut Out<'_>) -> Result<(), Fault> {
    use Pooling as P;
    let (x, y) = match op {
        P::MaxPool { .. } | P::AveragePool { .. } => (inputs[0].shape(), output.shape()),
        P::MaxPoolGrad { .. } => (inputs[0].shape(), inputs[1].shape()),
        P::AveragePoolGrad { .. } => (output.shape(), inputs[0].shape()),
    };
    let (P::MaxPool { kernel, strides, low, high, dilations, ceil: _ }
    | P::MaxPoolGrad { kernel, strides, low, high, dilations, ceil: _ }
    | P::AveragePool { kernel, strides, low, high, dilations, ceil: _, pads: _ }
    | P::AveragePoolGrad { shape: _, kernel, strides, low, high, dilations, ceil: _, pads: _ }) = op;
    let list = |dims: &[u64]| dims.iter().map(|&dim| dim as usize).collect();
    let windows = Windows {
        dims: x[2..].to_vec(),
        kernel: list(kernel),
        counts: y[2..].to_vec(),
        strides: list(strides),
        low: list(low),
        high: list(high),
        dilations: list(dilations),
    };
    with_float!(op, inputs[0].ty.dtype, T => {
        let a = inputs[0].get::<T>();
        match op {
            P::MaxPool { .. } => max_pool(&windows, a, output.get()),
            P::MaxPoolGrad { .. } => max_pool_grad(&windows, a, inputs[1].get(), output.get()),
            P::AveragePool { pads, .. } => average_pool(&windows, *pads, a, output.get()),
            P::AveragePoolGrad { pads, .. } => average_pool_grad(&windows, *pads, a, output.get()),
        }
    });
    Ok(())
}
