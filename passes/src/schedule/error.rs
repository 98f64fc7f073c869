//! Why there is no schedule, or why one cannot be executed.

use super::{Shape, Work};
use std::error::Error;
use std::fmt;

/// Why there is no schedule, or why one cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// No schedule has this name.
    UnknownKind {
        /// The name.
        name: String,
    },
    /// A number of the shape is zero.
    None {
        /// What there is none of.
        what: &'static str,
    },
    /// The shape is out of proportion.
    TooLarge {
        /// The shape.
        shape: Shape,
    },
    /// The kind wants another number of stages per rank.
    Loops {
        /// The kind of schedule.
        kind: &'static str,
        /// Stages per rank of the shape.
        loops: usize,
        /// Stages per rank that the kind has.
        expected: usize,
    },
    /// A stage is on a rank that has no order.
    NoSuchRank {
        /// The stage.
        stage: usize,
        /// Its rank.
        rank: usize,
        /// The number of ranks.
        ranks: usize,
    },
    /// A rank does work of a stage or micro-batch that does not exist.
    NoSuchWork {
        /// The rank.
        rank: usize,
        /// The work.
        work: Work,
        /// The number of stages.
        stages: usize,
        /// The number of micro-batches.
        micro_batches: u64,
    },
    /// A rank does the work of a stage of another rank.
    WrongRank {
        /// The rank that does it.
        rank: usize,
        /// The work.
        work: Work,
        /// The rank that should.
        expected: usize,
    },
    /// Work is done twice; a whole backward counts as both of its halves.
    Twice {
        /// The second time.
        work: Work,
    },
    /// Work is not done at all.
    Missing {
        /// The work.
        work: Work,
    },
    /// A stage adds a gradient after that of a later micro-batch.
    Descending {
        /// The work that comes too late.
        work: Work,
        /// The micro-batch that came before it.
        after: u64,
    },
    /// A cell of a table is no work.
    NoWork {
        /// The line, counted from 0.
        rank: usize,
        /// The cell.
        cell: String,
    },
    /// Costs are given for another number of things.
    Costs {
        /// What they are given for.
        what: &'static str,
        /// For how many.
        number: usize,
        /// How many there are.
        expected: usize,
    },
    /// No order of work fits the memory of a rank.
    NoRoom {
        /// The rank.
        rank: usize,
        /// Bytes of activations that it keeps under every order.
        needed: u64,
        /// Bytes that it has room for.
        room: u64,
    },
    /// The ranks wait for each other for ever.
    Deadlock {
        /// The first rank that waits.
        rank: usize,
        /// The work it cannot begin.
        work: Work,
        /// What that waits for.
        waits_for: Work,
    },
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKind { name } => write!(
                f,
                "no schedule is named `{name}`: expected gpipe, 1f1b, interleaved, breadth-first, breadth-first:N, zb-h1 \
                 or zb-v"
            ),
            Self::None { what } => write!(f, "a schedule with 0 {what}: at least 1 is needed"),
            Self::TooLarge { shape } => write!(
                f,
                "{} stages and {} micro-batches are too many: at most {} pairs of both can be scheduled",
                shape.ranks.saturating_mul(shape.loops),
                shape.micro_batches,
                Shape::MOST
            ),
            Self::Loops { kind, loops, expected } => {
                let s = if *expected == 1 { "" } else { "s" };
                write!(f, "expected {expected} stage{s} per rank for {kind}, found {loops}")
            }
            Self::NoSuchRank { stage, rank, ranks } => {
                write!(f, "stage {stage} is on rank {rank} of {ranks} ranks, counted from 0")
            }
            Self::NoSuchWork { rank, work, stages, micro_batches } => write!(
                f,
                "rank {rank} does {work} in a schedule of {stages} stages and {micro_batches} micro-batches, counted \
                 from 0"
            ),
            Self::WrongRank { rank, work, expected } => {
                write!(f, "rank {rank} does {work}, but stage {} is on rank {expected}", work.stage)
            }
            Self::Twice { work } => write!(f, "{work} is done twice"),
            Self::Missing { work } => write!(f, "{work} is not done"),
            Self::Descending { work, after } => write!(
                f,
                "{work} comes after micro-batch {after}: a stage must add up gradients in ascending order of micro-batches"
            ),
            Self::NoWork { rank, cell } => {
                write!(f, "line {} has `{cell}`: expected a stage, one of F, B, I and W, and a micro-batch", rank + 1)
            }
            Self::Costs { what, number, expected } => write!(f, "costs of {number} {what}: there are {expected}"),
            Self::NoRoom { rank, needed, room } => write!(
                f,
                "rank {rank} keeps at least {needed} bytes of activations under every schedule, and has room for {room}"
            ),
            Self::Deadlock { rank, work, waits_for } => {
                write!(f, "rank {rank} waits for ever: its {work} needs {waits_for}, which never comes")
            }
        }
    }
}

impl Error for ScheduleError {}
