//! Batch normalization in training mode, its gradients, and the running averages that it leaves behind.

use super::attr::{Real, family};
use super::normalization::stat_dtype;
use super::rule;
use crate::ty::Type;

family! {
    /// Channels (axis 1) brought to a standard scale by the statistics of a micro-batch: those over all other axes.
    /// Statistics are f32 (f64 for f64 input), of one element per channel.
    pub enum BatchNorm {
        /// `(x[N, C, ..], w[C], b[C]) -> (y, mean[C], var[C])`, `y = (x - mean) / sqrt(var + eps) w + b`. The variance is
        /// that of the elements (divided by their number, not by one less).
        BatchNorm = "batch_norm" {
            /// Added to the variance.
            eps: Real,
        },
        /// `(x, w, mean, var, dy) -> dx`.
        BatchNormInputGrad = "batch_norm_input_grad" {
            /// As in the forward.
            eps: Real,
        },
        /// `(x, mean, var, dy) -> (dw, db)`.
        BatchNormParamGrad = "batch_norm_param_grad" {
            /// As in the forward.
            eps: Real,
        },
        /// `(average, x) -> average momentum + x (1 - momentum)`, in place; `x` converts to the type of the average.
        RunningAverage = "running_average" {
            /// What stays of the average, as in ONNX (PyTorch's is one less this).
            momentum: Real,
        },
    }
}

impl BatchNorm {
    pub(crate) fn infer(&self, inputs: &[&Type]) -> Result<Vec<Type>, String> {
        let arity = match self {
            Self::BatchNorm { eps: _ } => 3,
            Self::BatchNormInputGrad { eps: _ } => 5,
            Self::BatchNormParamGrad { eps: _ } => 4,
            Self::RunningAverage { momentum: _ } => 2,
        };
        rule::arity(inputs, arity)?;
        let x = inputs[0];
        rule::float(x, 0)?;
        if matches!(self, Self::RunningAverage { momentum: _ }) {
            rule::float(inputs[1], 1)?;
            rule::is(inputs[1], 1, &x.with_dtype(inputs[1].dtype))?;
            return Ok(vec![x.clone()]);
        }
        rule::rank_at_least(x, 0, 2)?;
        let weight = Type::new(x.dtype, [x.shape[1]]);
        let stat = Type::new(stat_dtype(x.dtype), [x.shape[1]]);
        let check = |operands: &[(usize, &Type)]| -> Result<(), String> {
            operands.iter().try_for_each(|&(operand, expected)| rule::is(inputs[operand], operand, expected))
        };
        match self {
            Self::BatchNorm { eps: _ } => {
                check(&[(1, &weight), (2, &weight)])?;
                Ok(vec![x.clone(), stat.clone(), stat])
            }
            Self::BatchNormInputGrad { eps: _ } => {
                check(&[(1, &weight), (2, &stat), (3, &stat), (4, x)])?;
                Ok(vec![x.clone()])
            }
            Self::BatchNormParamGrad { eps: _ } => {
                check(&[(1, &stat), (2, &stat), (3, x)])?;
                Ok(vec![weight.clone(), weight])
            }
            Self::RunningAverage { momentum: _ } => unreachable!("its rule has returned"),
        }
    }

    /// For each result the operand whose bytes it may take over.
    pub(crate) fn in_place(&self) -> &'static [(usize, usize)] {
        match self {
            Self::RunningAverage { momentum: _ } => &[(0, 0)],
            Self::BatchNorm { eps: _ } | Self::BatchNormInputGrad { eps: _ } | Self::BatchNormParamGrad { eps: _ } => {
                &[]
            }
        }
    }
}
