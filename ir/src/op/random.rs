//! Random operators: masks come from a counter-based generator, so that recomputation sees the same numbers.

use super::attr::{Real, family};
use super::rule;
use crate::ty::Type;

family! {
    /// Dropout, keyed by (seed, step, site, global sample, element index): the mask is never stored.
    pub enum Random {
        /// `x -> y`: each element is zeroed with probability `p`, the others scaled by `1/(1-p)`.
        Dropout = "dropout" {
            /// Probability of zeroing, in `[0, 1)`.
            p: Real,
            /// Names this dropout among those of one segment.
            site: u64,
        },
        /// `dy -> dx` with the mask of the dropout of the same site.
        DropoutGrad = "dropout_grad" {
            /// As in the forward.
            p: Real,
            /// As in the forward.
            site: u64,
        },
    }
}

impl Random {
    pub(crate) fn infer(&self, inputs: &[&Type]) -> Result<Vec<Type>, String> {
        let (Self::Dropout { p, site: _ } | Self::DropoutGrad { p, site: _ }) = self;
        rule::arity(inputs, 1)?;
        rule::float(inputs[0], 0)?;
        if !(0.0..1.0).contains(&p.get()) {
            return Err(format!("the probability must be in [0, 1), found {p:?}"));
        }
        Ok(vec![inputs[0].clone()])
    }
}
