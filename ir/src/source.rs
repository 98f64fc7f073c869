//! What passes know of a frontend: a model that can be lowered at any micro-batch size.

use crate::diag::{Diagnostic, Diagnostics};
use crate::graph::Graph;

/// A model that a frontend has read.
pub trait ModelSource {
    /// Name of the model for people: the file's without folder and ending.
    fn name(&self) -> &str;

    /// Hexadecimal digest of everything in the source but the values of its weights.
    fn digest(&self) -> &str;

    /// The forward graph with every dimension bound, and the warnings and notes that came up. `micro_batch` replaces
    /// the bound batch size where it is given.
    ///
    /// # Errors
    /// What in the model or the bindings stands in the way, all of it.
    fn lower(&self, micro_batch: Option<u64>) -> Result<Lowered, Diagnostics>;
}

/// A lowered model.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The forward graph.
    pub graph: Graph,
    /// Warnings and notes.
    pub diagnostics: Vec<Diagnostic>,
}
