//! Interleaved 1F1B: several stages per rank, depth first.

use super::one_f_one_b::{self, alternate};
use super::{Generator, Schedule, ScheduleError, Shape, rounds};
use std::ops::Range;

/// Stage `j` on rank `j mod p`; rounds of about `p` micro-batches go through all stages of a rank.
///
/// If the micro-batches are no multiple of the ranks, there are as many rounds as would be full, of nearly equal size (PyTorch
/// wants them equal). With one stage per rank it is 1F1B.
#[derive(Clone, Copy, Debug)]
pub struct Interleaved;

impl Generator for Interleaved {
    fn generate(&self, shape: &Shape) -> Result<Schedule, ScheduleError> {
        shape.check()?;
        if shape.loops == 1 {
            return Ok(one_f_one_b::schedule(shape));
        }
        Ok(in_rounds(shape, &rounds::even(shape.micro_batches, shape.ranks as u64)))
    }
}

/// The schedule with these rounds. A rank is so far ahead that the last rank alternates from its last stage's first forward on.
pub(super) fn in_rounds(shape: &Shape, rounds: &[Range<u64>]) -> Schedule {
    let first = rounds.first().map_or(0, |round| round.end - round.start);
    let order = |rank| {
        let ahead = (shape.loops as u64 - 1) * first + 2 * (shape.ranks - 1 - rank) as u64;
        let forwards = rounds::forwards(shape, rounds, rank);
        alternate(forwards.into_iter(), rounds::backwards(shape, rounds, rank).into_iter(), ahead)
    };
    let ranks = (0..shape.ranks).map(order).collect();
    Schedule { micro_batches: shape.micro_batches, rank_of: shape.looped(), ranks }
}
