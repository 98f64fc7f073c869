//! Convolutions.

use super::{Arg, Fault, Out, with_float};
use crate::host::kernels::Windows;
use crate::host::kernels::convolution::{Convolution as Sizes, convolve, input_grad, weight_grad};
use trainc_ir::op::Convolution;

/// Runs a convolution, or a gradient of one.
pub(super) fn execute(op: &Convolution, inputs: &[Arg<'_>], output: &mut Out<'_>) -> Result<(), Fault> {
    use Convolution as C;
    let (first, second, result) = (inputs[0].shape(), inputs[1].shape(), output.shape());
    // Shapes of the data, the weights and the result of the forward.
    let (x, w, y) = match op {
        C::Conv { .. } => (&first, &second, &result),
        C::ConvInputGrad { .. } => (&result, &first, &second),
        C::ConvWeightGrad { .. } => (&first, &result, &second),
    };
    let (C::Conv { strides, low, high, dilations, groups }
    | C::ConvInputGrad { shape: _, strides, low, high, dilations, groups }
    | C::ConvWeightGrad { kernel: _, strides, low, high, dilations, groups }) = op;
    let list = |dims: &[u64]| dims.iter().map(|&dim| dim as usize).collect();
    let windows = Windows {
        dims: x[2..].to_vec(),
        kernel: w[2..].to_vec(),
        counts: y[2..].to_vec(),
        strides: list(strides),
        low: list(low),
        high: list(high),
        dilations: list(dilations),
    };
    let sizes = Sizes { samples: x[0], channels: x[1], filters: w[0], groups: *groups as usize, windows };
    with_float!(op, inputs[0].ty.dtype, T => {
        let (a, b) = (inputs[0].get::<T>(), inputs[1].get::<T>());
        match op {
            C::Conv { .. } => convolve(&sizes, a, b, output.get()),
            C::ConvInputGrad { .. } => input_grad(&sizes, a, b, output.get()),
            C::ConvWeightGrad { .. } => weight_grad(&sizes, a, b, output.get()),
        }
    });
    Ok(())
}
