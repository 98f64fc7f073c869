//! Operators that no rule knows: their types come from the source model, and they can be estimated but never executed.

use super::attr::family;
use crate::ty::Type;

family! {
    /// Unknown operators.
    pub enum Opaque {
        /// An operator of the source model.
        Opaque = "opaque" {
            /// Its name there.
            name: String,
            /// The types of its results, as the model declares them.
            types: Vec<Type>,
        },
    }
}

impl Opaque {
    pub(crate) fn infer(&self, _inputs: &[&Type]) -> Result<Vec<Type>, String> {
        let Self::Opaque { name: _, types } = self;
        Ok(types.clone())
    }
}
