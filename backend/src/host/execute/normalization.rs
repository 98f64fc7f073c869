//! Normalizations and softmax.

use super::{Arg, Fault, Out, with_float};
use crate::host::kernels::norm::{
    RowStats, bias_grad, layer_norm, layer_norm_input_grad, layer_norm_weight_grad, rms_norm, rms_norm_input_grad,
    rms_norm_weight_grad,
};
use crate::host::kernels::scan::AxisView;
use crate::host::kernels::softmax::{log_softmax, log_softmax_grad, softmax, softmax_grad};
use trainc_ir::op::Normalization;

/// Runs a normalization, or a gradient of one.
pub(super) fn execute(op: &Normalization, inputs: &[Arg<'_>], outputs: &mut [Out<'_>]) -> Result<(), Fault> {
    use Normalization as N;
    let shape = inputs[0].shape();
    let axis = shape.len() - 1;
    let width = shape[axis];
    let view = AxisView::new(&shape, axis);
    with_float!(op, inputs[0].ty.dtype, T => {
        let x = |i: usize| inputs[i].get::<T>();
        match op {
            N::LayerNorm { eps } => {
                let [y, mean, rstd] = outputs else { unreachable!("layer norm has three results by its type rule") };
                let stats = (mean.get(), rstd.get());
                layer_norm(x(0), (Some(x(1)), Some(x(2))), eps.get(), y.get(), stats, width);
            }
            N::LayerNormInputGrad => {
                let stats = RowStats { mean: x(2), rstd: x(3) };
                layer_norm_input_grad(x(0), Some(x(1)), &stats, x(4), outputs[0].get(), width);
            }
            N::LayerNormParamGrad => {
                let stats = RowStats { mean: x(1), rstd: x(2) };
                layer_norm_weight_grad(x(0), &stats, x(3), outputs[0].get());
                bias_grad(x(3), outputs[1].get());
            }
            N::RmsNorm { eps } => {
                let [y, rstd] = outputs else { unreachable!("rms norm has two results by its type rule") };
                rms_norm(x(0), Some(x(1)), eps.get(), y.get(), rstd.get(), width);
            }
            N::RmsNormInputGrad => {
                rms_norm_input_grad(x(0), Some(x(1)), x(2), x(3), outputs[0].get(), width);
            }
            N::RmsNormParamGrad => rms_norm_weight_grad(x(0), x(1), x(2), outputs[0].get()),
            N::Softmax => softmax(x(0), view, outputs[0].get()),
            N::SoftmaxGrad => softmax_grad(x(0), x(1), view, outputs[0].get()),
            N::LogSoftmax => log_softmax(x(0), view, outputs[0].get()),
            N::LogSoftmaxGrad => log_softmax_grad(x(0), x(1), view, outputs[0].get()),
        }
    });
    Ok(())
}
