//! Losses, as sums with the number of terms, so that micro-batches add up to the whole batch's mean.

use super::attr::family;
use super::normalization::stat_dtype;
use super::rule;
use crate::ty::{DType, Type};

family! {
    /// Loss functions. Sums are f32 (f64 for f64 input), counts i64.
    pub enum Loss {
        /// `(logits[N, V], labels[N]) -> (sum[], count[], lse[N])`: negative log-likelihood summed over the rows
        /// whose label is not `ignore_index`, and how many those are.
        CrossEntropy = "cross_entropy" {
            /// Rows of this label do not count.
            ignore_index: i64,
        },
        /// `(logits, labels, lse, dsum[]) -> dlogits`.
        CrossEntropyGrad = "cross_entropy_grad" {
            /// As in the forward.
            ignore_index: i64,
        },
    }
}

impl Loss {
    pub(crate) fn infer(&self, inputs: &[&Type]) -> Result<Vec<Type>, String> {
        let arity = match self {
            Self::CrossEntropy { ignore_index: _ } => 2,
            Self::CrossEntropyGrad { ignore_index: _ } => 4,
        };
        rule::arity(inputs, arity)?;
        let (logits, labels) = (inputs[0], inputs[1]);
        rule::float(logits, 0)?;
        rule::integer(labels, 1)?;
        let stat = stat_dtype(logits.dtype);
        if logits.rank() != 2 || labels.shape != logits.shape[..1] {
            return Err(format!("expected logits [N, V] and labels [N], found {logits} and {labels}"));
        }
        let lse = Type::new(stat, labels.shape.clone());
        match self {
            Self::CrossEntropy { ignore_index: _ } => Ok(vec![Type::scalar(stat), Type::scalar(DType::I64), lse]),
            Self::CrossEntropyGrad { ignore_index: _ } => {
                rule::is(inputs[2], 2, &lse)?;
                rule::is(inputs[3], 3, &Type::scalar(stat))?;
                Ok(vec![logits.clone()])
            }
        }
    }
}
