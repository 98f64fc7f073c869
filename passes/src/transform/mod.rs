//! Transforms: graph in, graph out, one file or folder per pass.

mod canonicalize;
mod codes;
mod dead;
mod differentiate;
mod fold;
mod fuse;
mod loss;
mod optimizer;
mod view;

pub use canonicalize::Canonicalize;
pub use codes::TRANSFORM_CODES;
pub use differentiate::{Step, Trainable, differentiate, has_gradient};
pub use fold::Fold;
pub use fuse::{Apart, Form, Fuse, Fusions, fusions};
pub use loss::{Loss, LossSpec};
pub use optimizer::{OptimizerConfig, optimizer, sum_dtype};
