//! Transforms: graph in, graph out, one file or folder per pass.

mod codes;
mod differentiate;
mod loss;
mod optimizer;

pub use codes::TRANSFORM_CODES;
pub use differentiate::{Step, Trainable, differentiate, has_gradient};
pub use loss::{Loss, LossSpec};
pub use optimizer::{OptimizerConfig, optimizer, sum_dtype};
