//! The training loop.

use super::error::RunError;
use super::job::{Batches, Interleaving, Job, StepReport};

/// How to train.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainOptions {
    /// Number of steps.
    pub steps: u32,
    /// Learning rate of every step.
    pub learning_rate: f64,
}

/// Runs the steps and reports each of them; the callback returns whether to go on. A loss that is not finite ends the run
/// after it was reported.
///
/// # Errors
/// The first step that fails ends the run.
pub fn train(
    job: &mut Job<'_>,
    batches: &mut dyn Batches,
    options: &TrainOptions,
    on_step: &mut dyn FnMut(&StepReport) -> bool,
) -> Result<(), RunError> {
    for _ in 0..options.steps {
        let report = job.step(batches, options.learning_rate, Interleaving::Threads)?;
        let go_on = on_step(&report);
        if !report.loss().is_finite() {
            return Err(RunError::Diverged { step: report.step });
        }
        if !go_on {
            break;
        }
    }
    Ok(())
}
