//! Graph to plan: transforms, analyses and planning, all of them pure functions of graphs, clusters and options.
//!
//! Nothing here touches files, devices, clocks or the environment, and equal inputs give equal outputs on every machine.

pub mod analysis;
pub mod plan;
pub mod transform;
