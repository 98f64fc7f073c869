//! What can go wrong when a plan runs.

use crate::host::Fault;
use std::fmt;

/// Why a run stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The plan cannot be executed as it stands; `trainc verify` says more.
    Plan(String),
    /// The machine has not the memory of a rank's arena.
    Memory {
        /// The rank.
        rank: usize,
        /// Size of its arena.
        bytes: u64,
    },
    /// A weight is missing or does not fit.
    Weight(String),
    /// The data do not fit the plan.
    Data(String),
    /// A kernel failed.
    Kernel {
        /// The rank.
        rank: usize,
        /// The segment.
        segment: String,
        /// The operator.
        op: &'static str,
        /// Why it failed.
        fault: Fault,
    },
    /// The loss is no longer a finite number.
    Diverged {
        /// The step, from 1.
        step: u32,
    },
    /// Every rank waits for another.
    Deadlock(Vec<String>),
    /// The two sides of a transfer do not agree.
    Transfer(String),
    /// Another rank failed first.
    Aborted,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(message) => write!(f, "the plan cannot be executed: {message}"),
            Self::Memory { rank, bytes } => {
                write!(f, "the machine cannot hold the arena of rank {rank}, {bytes} bytes")
            }
            Self::Weight(message) | Self::Data(message) | Self::Transfer(message) => f.write_str(message),
            Self::Kernel { rank, segment, op, fault } => {
                write!(f, "rank {rank}, segment `{segment}`, operator `{op}`: {fault}")
            }
            Self::Diverged { step: 1 } => f.write_str(
                "the loss of step 1, before any training, is not a finite number: the model's weights or its inputs are at \
                 fault",
            ),
            Self::Diverged { step } => {
                write!(f, "the loss of step {step} is not a finite number: training has diverged")
            }
            Self::Deadlock(waits) => write!(f, "the ranks wait for each other: {}", waits.join("; ")),
            Self::Aborted => f.write_str("another rank failed"),
        }
    }
}

impl std::error::Error for RunError {}

#[cfg(test)]
mod tests {
    use super::RunError;

    #[test]
    fn a_loss_that_no_training_made_infinite_is_not_called_divergence() {
        let text = |step| RunError::Diverged { step }.to_string();
        assert!(text(1).contains("before any training") && !text(1).contains("diverged"));
        assert!(text(2).contains("step 2") && text(2).contains("diverged"));
    }
}
