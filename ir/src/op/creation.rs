//! Values that come from nothing: constants and ranges.

use super::attr::family;
use super::literal::Literal;
use super::rule;
use crate::ty::Type;

family! {
    /// Operators without operands.
    pub enum Creation {
        /// Constant data.
        Constant = "constant" {
            /// The data.
            value: Literal,
        },
    }
}

impl Creation {
    pub(crate) fn infer(&self, inputs: &[&Type]) -> Result<Vec<Type>, String> {
        rule::arity(inputs, 0)?;
        let Self::Constant { value } = self;
        Ok(vec![value.ty.clone()])
    }
}
