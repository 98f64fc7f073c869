//! What happens once per step: accumulation and parameter updates.

use super::attr::{Real, family};
use super::rule;
use crate::ty::{DType, Type};

family! {
    /// Update operators. The first operand of each may share its bytes with the first result (an update in place), and
    /// so may every optimizer state with its successor.
    pub enum Optimizer {
        /// `(sum, x) -> sum + x`; `x` converts to the type of the sum.
        Accumulate = "accumulate",
        /// `(w, g, m, v, lr[], step[], count[]) -> (w, m, v)`: AdamW with decoupled weight decay (Loshchilov and
        /// Hutter, 2019), the gradient being `g / count`. `lr` is f32, `step` (from 1) and `count` are i64.
        AdamW = "adamw" {
            /// Decay of the first moment.
            beta1: Real,
            /// Decay of the second moment.
            beta2: Real,
            /// Added to the root of the second moment.
            eps: Real,
            /// Decoupled weight decay.
            weight_decay: Real,
        },
        /// `(w, g, m, lr[], count[]) -> (w, m)`: `m = momentum m + g/count`, `w = w - lr m`.
        SgdMomentum = "sgd_momentum" {
            /// Decay of the velocity.
            momentum: Real,
        },
        /// `(w, g, lr[], count[]) -> w`: `w = w - lr g/count`.
        Sgd = "sgd",
    }
}

impl Optimizer {
    pub(crate) fn infer(&self, inputs: &[&Type]) -> Result<Vec<Type>, String> {
        let states = match self {
            Self::Accumulate => {
                rule::arity(inputs, 2)?;
                rule::numeric(inputs[0], 0)?;
                let integers = !inputs[0].dtype.is_float() && !inputs[1].dtype.is_float();
                if inputs[0].shape != inputs[1].shape || !(integers || inputs[1].dtype.is_float()) {
                    return Err(format!("cannot add {} to {}", inputs[1], inputs[0]));
                }
                return Ok(vec![inputs[0].clone()]);
            }
            Self::AdamW { beta1: _, beta2: _, eps: _, weight_decay: _ } => 2,
            Self::SgdMomentum { momentum: _ } => 1,
            Self::Sgd => 0,
        };
        let scalars = if states == 2 { 3 } else { 2 };
        rule::arity(inputs, 2 + states + scalars)?;
        let w = inputs[0];
        rule::float(w, 0)?;
        let state = w.with_dtype(super::normalization::stat_dtype(w.dtype));
        for (i, ty) in inputs.iter().enumerate().take(2 + states).skip(1) {
            rule::is(ty, i, &state)?;
        }
        rule::is(inputs[2 + states], 2 + states, &Type::scalar(DType::F32))?;
        for (i, ty) in inputs.iter().enumerate().skip(3 + states) {
            rule::is(ty, i, &Type::scalar(DType::I64))?;
        }
        let mut outputs = vec![w.clone()];
        outputs.extend(std::iter::repeat_n(state, states));
        Ok(outputs)
    }

    /// For each result the operand whose bytes it may take over.
    pub(crate) fn in_place(&self) -> &'static [(usize, usize)] {
        match self {
            Self::Accumulate | Self::Sgd => &[(0, 0)],
            Self::AdamW { beta1: _, beta2: _, eps: _, weight_decay: _ } => &[(0, 0), (1, 2), (2, 3)],
            Self::SgdMomentum { momentum: _ } => &[(0, 0), (1, 2)],
        }
    }
}
