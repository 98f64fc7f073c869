//! Convolutions over any number of spatial axes, with their gradients.

use super::attr::family;
use super::rule;
use super::window::Windows;
use crate::ty::Type;

family! {
    /// Sums of products over sliding windows, as neural networks mean them: the window is not turned around. Data is
    /// `[samples, channels, axes..]`. Each of `groups` equal runs of channels is convolved by itself. The lists hold one
    /// number per spatial axis: `low` and `high` zeros are added before and behind it.
    pub enum Convolution {
        /// `(x[N, C, ..], w[M, C / groups, window..]) -> y[N, M, ..]`.
        Conv = "conv" {
            /// Positions from one window to the next.
            strides: Vec<u64>,
            /// Zeros before each axis.
            low: Vec<u64>,
            /// Zeros behind each axis.
            high: Vec<u64>,
            /// Positions from one element of a window to the next.
            dilations: Vec<u64>,
            /// Runs of channels.
            groups: u64,
        },
        /// `(w, dy) -> dx`; also a transposed convolution of `dy`.
        ConvInputGrad = "conv_input_grad" {
            /// Shape of `x`.
            shape: Vec<u64>,
            /// As in the forward.
            strides: Vec<u64>,
            /// As in the forward.
            low: Vec<u64>,
            /// As in the forward.
            high: Vec<u64>,
            /// As in the forward.
            dilations: Vec<u64>,
            /// As in the forward.
            groups: u64,
        },
        /// `(x, dy) -> dw`.
        ConvWeightGrad = "conv_weight_grad" {
            /// The window.
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
            groups: u64,
        },
    }
}

impl Convolution {
    pub(crate) fn infer(&self, inputs: &[&Type]) -> Result<Vec<Type>, String> {
        rule::arity(inputs, 2)?;
        rule::float(inputs[0], 0)?;
        rule::same_dtype(inputs[0], inputs[1])?;
        let (Self::Conv { strides, low, high, dilations, groups }
        | Self::ConvInputGrad { shape: _, strides, low, high, dilations, groups }
        | Self::ConvWeightGrad { kernel: _, strides, low, high, dilations, groups }) = self;
        let windows = Windows { strides, low, high, dilations, ceil: false };
        match self {
            Self::Conv { .. } => Ok(vec![forward(inputs[0], inputs[1], &windows, *groups)?]),
            Self::ConvInputGrad { shape, .. } => {
                let x = Type::new(inputs[0].dtype, shape.clone());
                rule::is(inputs[1], 1, &forward(&x, inputs[0], &windows, *groups)?)?;
                Ok(vec![x])
            }
            Self::ConvWeightGrad { kernel, .. } => {
                let (x, dy) = (inputs[0], inputs[1]);
                rule::rank_at_least(x, 0, 3)?;
                rule::rank_at_least(dy, 1, 3)?;
                let mut shape = vec![dy.shape[1], x.shape[1] / (*groups).max(1)];
                shape.extend(kernel);
                let w = Type::new(x.dtype, shape);
                rule::is(dy, 1, &forward(x, &w, &windows, *groups)?)?;
                Ok(vec![w])
            }
        }
    }

    /// Multiplications and additions, those with added zeros included.
    pub(crate) fn flops(&self, inputs: &[&Type], outputs: &[&Type]) -> u64 {
        let (y, w) = match self {
            Self::Conv { .. } => (outputs[0], inputs[1]),
            Self::ConvInputGrad { .. } => (inputs[1], inputs[0]),
            Self::ConvWeightGrad { .. } => (inputs[1], outputs[0]),
        };
        w.shape[1..].iter().fold(y.elements().saturating_mul(2), |flops, &dim| flops.saturating_mul(dim))
    }
}

fn forward(x: &Type, w: &Type, windows: &Windows<'_>, groups: u64) -> Result<Type, String> {
    rule::rank_at_least(x, 0, 3)?;
    if w.rank() != x.rank() {
        return Err(format!("data {x} and weights {w} must have the same rank"));
    }
    let (channels, filters) = (x.shape[1], w.shape[0]);
    if groups == 0 || channels % groups != 0 || filters % groups != 0 {
        return Err(format!("{groups} groups do not divide {channels} channels of {x} and {filters} of {w}"));
    }
    if channels / groups != w.shape[1] {
        return Err(format!("expected {} channels in the weights, found {w}", channels / groups));
    }
    let mut shape = vec![x.shape[0], filters];
    shape.extend(windows.count(&x.shape[2..], &w.shape[2..])?);
    Ok(Type::new(x.dtype, shape))
}
