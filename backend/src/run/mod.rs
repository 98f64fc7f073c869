//! Runs a plan on this machine: one thread and one arena per rank, streams and events as the plan says, transfers in process.

mod checks;
mod data;
mod error;
mod exchange;
mod job;
mod limits;
mod rank;
mod schedule;
mod train;
mod weights;

#[cfg(test)]
mod tests;

pub use data::{Corpora, TokenWidth};
pub use error::RunError;
pub use job::{Batches, Interleaving, Job, JobOptions, StepReport};
pub use train::{TrainOptions, train};
pub use weights::WeightLoader;
