//! Passes by name.

use crate::pass::Pass;
use crate::pipeline::TrainingOptions;
use crate::transform::{Canonicalize, Fold, Fuse, Loss};

/// The names of all passes over one graph, as the command line and the folders of golden files spell them.
pub const PASSES: [&str; 4] = ["fold", "canonicalize", "fuse", "loss"];

/// The pass of this name.
pub fn pass(name: &str, options: &TrainingOptions) -> Option<Box<dyn Pass>> {
    Some(match name {
        "fold" => Box::new(Fold),
        "canonicalize" => Box::new(Canonicalize),
        "fuse" => Box::new(Fuse),
        "loss" => Box::new(Loss { spec: options.loss.clone() }),
        _ => return None,
    })
}
