//! Pipeline schedules as pure data: which rank does which part of a step in which order.
//!
//! A model is cut into stages `0..n` in model order, and a step into micro-batches. A [`Schedule`] says on which rank each
//! stage lives and in which order every rank does its work; it says nothing about time. The generators, one a file, are
//! behind the trait [`Generator`]; [`ScheduleKind`] names them as the command line does. [`Schedule::check`] accepts
//! what can be executed and accumulates gradients in ascending micro-batch order.

mod breadth_first;
mod check;
mod error;
mod gpipe;
mod interleaved;
mod kind;
mod one_f_one_b;
mod ratio;
mod rounds;
mod search;
mod short_rounds;
mod timing;
mod torch;
mod zb_h1;
mod zb_v;

#[cfg(test)]
mod tests;

pub use breadth_first::BreadthFirst;
pub use error::ScheduleError;
pub use gpipe::GPipe;
pub use interleaved::Interleaved;
pub use kind::ScheduleKind;
pub use one_f_one_b::OneFOneB;
pub use ratio::Ratio;
pub use search::{Found, FoundBy, SearchOptions, Unequal, search};
pub use timing::{Boundary, Costs, RankTiming, Reduce, Resident, StageCost, StageTiming, Timing, Traffic, simulate};
pub use zb_h1::ZbH1;
pub use zb_v::ZbV;

pub(crate) use timing::spans;

use std::fmt;

/// What a piece of work computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkKind {
    /// The forward.
    Forward,
    /// Input and weight gradients together.
    Backward,
    /// The gradients of the stage's inputs: what the stage before waits for.
    InputGrad,
    /// The gradients of the stage's weights: nothing but the update waits for them.
    WeightGrad,
}

impl WorkKind {
    /// Whether a stage's work of this kind adds to its weights' gradients; it is then done with the micro-batch.
    pub(crate) fn adds_gradients(self) -> bool {
        matches!(self, Self::Backward | Self::WeightGrad)
    }
}

/// A piece of work: one stage on one micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work {
    /// What is computed.
    pub kind: WorkKind,
    /// The stage, counted in model order.
    pub stage: usize,
    /// The micro-batch.
    pub micro_batch: u64,
}

impl Work {
    /// The forward of a stage.
    pub fn forward(stage: usize, micro_batch: u64) -> Self {
        Self { kind: WorkKind::Forward, stage, micro_batch }
    }

    /// The whole backward of a stage.
    pub fn backward(stage: usize, micro_batch: u64) -> Self {
        Self { kind: WorkKind::Backward, stage, micro_batch }
    }

    /// The input gradients of a stage.
    pub fn input_grad(stage: usize, micro_batch: u64) -> Self {
        Self { kind: WorkKind::InputGrad, stage, micro_batch }
    }

    /// The weight gradients of a stage.
    pub fn weight_grad(stage: usize, micro_batch: u64) -> Self {
        Self { kind: WorkKind::WeightGrad, stage, micro_batch }
    }
}

/// As PyTorch spells it: `2F0` is the forward of stage 2 on micro-batch 0; `B`, `I` and `W` are the backwards.
impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.kind {
            WorkKind::Forward => 'F',
            WorkKind::Backward => 'B',
            WorkKind::InputGrad => 'I',
            WorkKind::WeightGrad => 'W',
        };
        write!(f, "{}{letter}{}", self.stage, self.micro_batch)
    }
}

/// Who does what in which order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Micro-batches of a step.
    pub micro_batches: u64,
    /// The rank of each stage.
    pub rank_of: Vec<usize>,
    /// The work of each rank, in its order.
    pub ranks: Vec<Vec<Work>>,
}

impl Schedule {
    /// The number of stages, over all ranks.
    pub fn n_stages(&self) -> usize {
        self.rank_of.len()
    }

    /// The stages of a rank, in model order.
    pub fn stages_of(&self, rank: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.n_stages()).filter(move |&stage| self.rank_of[stage] == rank)
    }
}

/// What a schedule is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Ranks of the pipeline.
    pub ranks: usize,
    /// Stages of each rank.
    pub loops: usize,
    /// Micro-batches of a step.
    pub micro_batches: u64,
}

impl Shape {
    /// The most pairs of a stage and a micro-batch: more would be a slip of the hand, and take gigabytes.
    pub const MOST: u64 = 1 << 24;

    /// Stages over all ranks.
    pub fn n_stages(&self) -> usize {
        self.ranks * self.loops
    }

    /// Each number is at least 1, and their product is not out of proportion.
    pub(crate) fn check(&self) -> Result<(), ScheduleError> {
        for (what, number) in [
            ("ranks", self.ranks as u64),
            ("stages per rank", self.loops as u64),
            ("micro-batches", self.micro_batches),
        ] {
            if number == 0 {
                return Err(ScheduleError::None { what });
            }
        }
        let stages = (self.ranks as u64).checked_mul(self.loops as u64);
        match stages.and_then(|stages| stages.checked_mul(self.micro_batches)) {
            Some(all) if all <= Self::MOST => Ok(()),
            _ => Err(ScheduleError::TooLarge { shape: *self }),
        }
    }

    /// Stage `j` on rank `j mod ranks`.
    pub(crate) fn looped(&self) -> Vec<usize> {
        (0..self.n_stages()).map(|stage| stage % self.ranks).collect()
    }
}

/// Makes schedules of one kind.
pub trait Generator {
    /// The schedule for a shape.
    ///
    /// # Errors
    /// If the kind has no schedule for the shape.
    fn generate(&self, shape: &Shape) -> Result<Schedule, ScheduleError>;
}
