//! Pooling over sliding windows, with its gradients.

use super::attr::family;
use super::rule;
use super::window::Windows;
use crate::ty::Type;

family! {
    /// One number from every window of `x[N, C, axes..]`, channel by channel. The lists hold one number per spatial axis;
    /// `low` and `high` positions are added before and behind it. With `ceil`, a last window may reach beyond those, as long
    /// as it begins before the ones behind.
    pub enum Pooling {
        /// Largest element of the window; added positions count for nothing, and a window of nothing else gives
        /// minus infinity. A NaN wins.
        MaxPool = "max_pool" {
            /// Size of the window.
            kernel: Vec<u64>,
            /// Positions from one window to the next.
            strides: Vec<u64>,
            /// Positions before each axis.
            low: Vec<u64>,
            /// Positions behind each axis.
            high: Vec<u64>,
            /// Positions from one element of a window to the next.
            dilations: Vec<u64>,
            /// Whether a last window may reach beyond.
            ceil: bool,
        },
        /// `(x, dy) -> dx`. The first of equal elements in row-major order gets all of the gradient (of NaNs the last),
        /// as in PyTorch.
        MaxPoolGrad = "max_pool_grad" {
            /// As in the forward.
            kernel: Vec<u64>,
            /// As in the forward.
            strides: Vec<u64>,
            /// As in the forward.
            low: Vec<u64>,
            /// As in the forward.
            high: Vec<u64>,
            /// As in the forward.
            dilations: Vec<u64>,
            /// As in the forward.
            ceil: bool,
        },
        /// Mean of the window, zero for a window of nothing.
        AveragePool = "average_pool" {
            /// Size of the window.
            kernel: Vec<u64>,
            /// Positions from one window to the next.
            strides: Vec<u64>,
            /// Positions before each axis.
            low: Vec<u64>,
            /// Positions behind each axis.
            high: Vec<u64>,
            /// Positions from one element of a window to the next.
            dilations: Vec<u64>,
            /// Whether a last window may reach beyond.
            ceil: bool,
            /// Whether added positions count as zeros; what lies beyond them never counts.
            pads: bool,
        },
        /// `dy -> dx`.
        AveragePoolGrad = "average_pool_grad" {
            /// Shape of `x`.
            shape: Vec<u64>,
            /// As in the forward.
            kernel: Vec<u64>,
            /// As in the forward.
            strides: Vec<u64>,
            /// As in the forward.
            low: Vec<u64>,
            /// As in the forward.
            high: Vec<u64>,
            /// As in the forward.
            dilations: Vec<u64>,
            /// As in the forward.
            ceil: bool,
            /// As in the forward.
            pads: bool,
        },
    }
}

impl Pooling {
    pub(crate) fn infer(&self, inputs: &[&Type]) -> Result<Vec<Type>, String> {
        let is_max_grad = matches!(self, Self::MaxPoolGrad { .. });
        rule::arity(inputs, if is_max_grad { 2 } else { 1 })?;
        rule::float(inputs[0], 0)?;
        let (Self::MaxPool { kernel, strides, low, high, dilations, ceil }
        | Self::MaxPoolGrad { kernel, strides, low, high, dilations, ceil }
        | Self::AveragePool { kernel, strides, low, high, dilations, ceil, pads: _ }
        | Self::AveragePoolGrad { shape: _, kernel, strides, low, high, dilations, ceil, pads: _ }) = self;
        let windows = Windows { strides, low, high, dilations, ceil: *ceil };
        match self {
            Self::MaxPool { .. } | Self::AveragePool { .. } => Ok(vec![forward(inputs[0], kernel, &windows)?]),
            Self::MaxPoolGrad { .. } => {
                rule::is(inputs[1], 1, &forward(inputs[0], kernel, &windows)?)?;
                Ok(vec![inputs[0].clone()])
            }
            Self::AveragePoolGrad { shape, .. } => {
                let x = Type::new(inputs[0].dtype, shape.clone());
                rule::is(inputs[0], 0, &forward(&x, kernel, &windows)?)?;
                Ok(vec![x])
            }
        }
    }

    /// One per element of every window.
    pub(crate) fn flops(&self, inputs: &[&Type], outputs: &[&Type]) -> u64 {
        let (y, kernel) = match self {
            Self::MaxPool { kernel, .. } | Self::AveragePool { kernel, .. } => (outputs[0], kernel),
            Self::MaxPoolGrad { kernel, .. } => (inputs[1], kernel),
            Self::AveragePoolGrad { kernel, .. } => (inputs[0], kernel),
        };
        kernel.iter().fold(y.elements(), |flops, &size| flops.saturating_mul(size))
    }
}

fn forward(x: &Type, kernel: &[u64], windows: &Windows<'_>) -> Result<Type, String> {
    rule::rank_at_least(x, 0, 3)?;
    let mut shape = x.shape[..2].to_vec();
    shape.extend(windows.count(&x.shape[2..], kernel)?);
    Ok(Type::new(x.dtype, shape))
}
