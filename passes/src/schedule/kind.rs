//! The kinds of schedules by name.

use super::{BreadthFirst, GPipe, Generator, Interleaved, OneFOneB, Schedule, ScheduleError, Shape, ZbH1, ZbV};
use std::fmt;
use std::str::FromStr;

/// A kind of schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScheduleKind {
    /// `gpipe`: all forwards, then all backwards.
    GPipe,
    /// `1f1b`: as soon as it can, a rank alternates forward and backward.
    OneFOneB,
    /// `interleaved`: 1F1B with several stages per rank, depth first.
    Interleaved,
    /// `breadth-first`, `breadth-first:N`: several stages per rank, each running many micro-batches in a row.
    BreadthFirst {
        /// Micro-batches that a stage runs in a row; without it all.
        contiguous: Option<u64>,
    },
    /// `zb-h1`: 1F1B whose weight gradients fill the gaps at the end, in the memory of 1F1B.
    ZbH1,
    /// `zb-v`: two stages per rank, placed in a V, with split backwards.
    ZbV,
}

impl ScheduleKind {
    /// All kinds, breadth-first with all micro-batches in a row.
    pub const ALL: [Self; 6] = [
        Self::GPipe,
        Self::OneFOneB,
        Self::Interleaved,
        Self::BreadthFirst { contiguous: None },
        Self::ZbH1,
        Self::ZbV,
    ];
}

impl Generator for ScheduleKind {
    fn generate(&self, shape: &Shape) -> Result<Schedule, ScheduleError> {
        match *self {
            Self::GPipe => GPipe.generate(shape),
            Self::OneFOneB => OneFOneB.generate(shape),
            Self::Interleaved => Interleaved.generate(shape),
            Self::BreadthFirst { contiguous } => BreadthFirst { contiguous }.generate(shape),
            Self::ZbH1 => ZbH1.generate(shape),
            Self::ZbV => ZbV.generate(shape),
        }
    }
}

impl fmt::Display for ScheduleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GPipe => "gpipe",
            Self::OneFOneB => "1f1b",
            Self::Interleaved => "interleaved",
            Self::BreadthFirst { contiguous: None } => "breadth-first",
            Self::BreadthFirst { contiguous: Some(number) } => return write!(f, "breadth-first:{number}"),
            Self::ZbH1 => "zb-h1",
            Self::ZbV => "zb-v",
        })
    }
}

impl FromStr for ScheduleKind {
    type Err = ScheduleError;

    fn from_str(name: &str) -> Result<Self, ScheduleError> {
        if let Some(kind) = Self::ALL.into_iter().find(|kind| kind.to_string() == name) {
            return Ok(kind);
        }
        let contiguous =
            name.strip_prefix("breadth-first:").and_then(|number| number.parse().ok()).filter(|&number| number > 0);
        match contiguous {
            Some(number) => Ok(Self::BreadthFirst { contiguous: Some(number) }),
            None => Err(ScheduleError::UnknownKind { name: name.to_owned() }),
        }
    }
}
