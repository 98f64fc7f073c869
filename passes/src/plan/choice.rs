//! Which schedule a plan follows: a kind by name, or whatever is fastest.

use crate::schedule::{ScheduleError, ScheduleKind};
use std::fmt;
use std::str::FromStr;

/// The schedule that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScheduleChoice {
    /// This kind.
    Kind(ScheduleKind),
    /// `auto`: what has the least simulated step of the kinds that fit and an order that is searched for the stages found.
    Auto,
}

impl Default for ScheduleChoice {
    fn default() -> Self {
        Self::Kind(ScheduleKind::OneFOneB)
    }
}

impl fmt::Display for ScheduleChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => kind.fmt(f),
            Self::Auto => f.write_str("auto"),
        }
    }
}

impl FromStr for ScheduleChoice {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        if text == "auto" { Ok(Self::Auto) } else { text.parse().map(Self::Kind) }
    }
}

/// Stages of each rank where nobody says how many.
pub(crate) fn default_loops(kind: ScheduleKind) -> usize {
    match kind {
        ScheduleKind::GPipe | ScheduleKind::OneFOneB | ScheduleKind::ZbH1 => 1,
        ScheduleKind::Interleaved | ScheduleKind::BreadthFirst { contiguous: _ } | ScheduleKind::ZbV => 2,
    }
}
