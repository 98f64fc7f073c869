//! Graph to plan: transforms, analyses and planning, all of them pure functions of graphs, clusters and options.
//!
//! Nothing here touches files, devices, clocks or the environment, and equal inputs give equal outputs on every machine.

pub mod analysis;
mod pass;
mod pipeline;
pub mod plan;
mod registry;
pub mod schedule;
pub mod transform;
mod verifying;

pub use pass::{Changed, Driver, Pass, PassEvent, StopAfter};
pub use pipeline::{Lowering, TrainingOptions, lower_to_training, passes};
pub use registry::{PASSES, pass};
pub use verifying::BROKEN_PASS;
