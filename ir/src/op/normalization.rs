//! Normalizations over the last axis, and softmax, with their gradients.

use super::attr::{Real, family};
use super::rule;
use crate::ty::{DType, Type};

family! {
    /// Rows (the last axis) brought to a standard scale. Statistics are f32 (f64 for f64 input) of shape `x[..-1]`.
    /// The gradient comes in two operators so that a schedule can run the weight part later.
    pub enum Normalization {
        /// `(x, w, b) -> (y, mean, rstd)`, `y = (x - mean) rstd w + b`.
        LayerNorm = "layer_norm" {
            /// Added to the variance.
            eps: Real,
        },
        /// `(x, w, mean, rstd, dy) -> dx`.
        LayerNormInputGrad = "layer_norm_input_grad",
        /// `(x, mean, rstd, dy) -> (dw, db)`.
        LayerNormParamGrad = "layer_norm_param_grad",
        /// `(x, w) -> (y, rstd)`, `y = x rstd w`, `rstd = 1/sqrt(mean(x^2) + eps)`.
        RmsNorm = "rms_norm" {
            /// Added to the mean square.
            eps: Real,
        },
        /// `(x, w, rstd, dy) -> dx`.
        RmsNormInputGrad = "rms_norm_input_grad",
        /// `(x, rstd, dy) -> dw`.
        RmsNormParamGrad = "rms_norm_param_grad",
        /// Softmax over the last axis. A row of -inf gives zeros.
        Softmax = "softmax",
        /// `(y, dy) -> dx`.
        SoftmaxGrad = "softmax_grad",
        /// Logarithm of the softmax over the last axis.
        LogSoftmax = "log_softmax",
        /// `(y, dy) -> dx`.
        LogSoftmaxGrad = "log_softmax_grad",
    }
}

/// The element type of row statistics.
pub(super) fn stat_dtype(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

impl Normalization {
    pub(crate) fn infer(&self, inputs: &[&Type]) -> Result<Vec<Type>, String> {
        use Normalization as N;
        let arity = match self {
            N::LayerNorm { eps: _ } => 3,
            N::LayerNormInputGrad => 5,
            N::LayerNormParamGrad | N::RmsNormInputGrad => 4,
            N::RmsNormParamGrad => 3,
            N::RmsNorm { eps: _ } | N::SoftmaxGrad | N::LogSoftmaxGrad => 2,
            N::Softmax | N::LogSoftmax => 1,
        };
        rule::arity(inputs, arity)?;
        let x = inputs[0];
        rule::float(x, 0)?;
        rule::rank_at_least(x, 0, 1)?;
        let (rows, width) = x.shape.split_at(x.rank() - 1);
        let weight = Type::new(x.dtype, width);
        let stat = Type::new(stat_dtype(x.dtype), rows);
        let check = |operand: usize, expected: &Type| rule::is(inputs[operand], operand, expected);
        match self {
            N::LayerNorm { eps: _ } => {
                check(1, &weight)?;
                check(2, &weight)?;
                Ok(vec![x.clone(), stat.clone(), stat])
            }
            N::LayerNormInputGrad => {
                check(1, &weight)?;
                check(2, &stat)?;
                check(3, &stat)?;
                check(4, x)?;
                Ok(vec![x.clone()])
            }
            N::LayerNormParamGrad => {
                check(1, &stat)?;
                check(2, &stat)?;
                check(3, x)?;
                Ok(vec![weight.clone(), weight])
            }
            N::RmsNorm { eps: _ } => {
                check(1, &weight)?;
                Ok(vec![x.clone(), stat])
            }
            N::RmsNormInputGrad => {
                check(1, &weight)?;
                check(2, &stat)?;
                check(3, x)?;
                Ok(vec![x.clone()])
            }
            N::RmsNormParamGrad => {
                check(1, &stat)?;
                check(2, x)?;
                Ok(vec![weight])
            }
            N::Softmax | N::LogSoftmax => Ok(vec![x.clone()]),
            N::SoftmaxGrad | N::LogSoftmaxGrad => {
                check(1, x)?;
                Ok(vec![x.clone()])
            }
        }
    }
}
