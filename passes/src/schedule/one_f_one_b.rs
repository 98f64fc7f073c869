//! 1F1B: a rank alternates forward and backward as soon as the first backward can reach it.

use super::{Generator, Schedule, ScheduleError, Shape, Work};

/// One stage per rank; rank `r` of `p` begins with `p - 1 - r` forwards, so that at most `p - r` micro-batches are in flight.
#[derive(Clone, Copy, Debug)]
pub struct OneFOneB;

impl Generator for OneFOneB {
    fn generate(&self, shape: &Shape) -> Result<Schedule, ScheduleError> {
        shape.check()?;
        if shape.loops != 1 {
            return Err(ScheduleError::Loops { kind: "1f1b", loops: shape.loops, expected: 1 });
        }
        Ok(schedule(shape))
    }
}

/// The schedule for one stage per rank.
pub(super) fn schedule(shape: &Shape) -> Schedule {
    let order = |rank| {
        let ahead = shape.micro_batches.min((shape.ranks - 1 - rank) as u64);
        let forwards = (0..shape.micro_batches).map(|micro_batch| Work::forward(rank, micro_batch));
        let backwards = (0..shape.micro_batches).map(|micro_batch| Work::backward(rank, micro_batch));
        alternate(forwards, backwards, ahead)
    };
    let ranks = (0..shape.ranks).map(order).collect();
    Schedule { micro_batches: shape.micro_batches, rank_of: shape.looped(), ranks }
}

/// So many forwards ahead, then a forward and a backward in turns, then the backwards that are left.
pub(super) fn alternate(
    mut forwards: impl Iterator<Item = Work>,
    mut backwards: impl Iterator<Item = Work>,
    ahead: u64,
) -> Vec<Work> {
    let mut order: Vec<Work> = Vec::with_capacity(2 * forwards.size_hint().0);
    order.extend((0..ahead).map_while(|_| forwards.next()));
    for forward in forwards {
        order.push(forward);
        order.extend(backwards.next());
    }
    order.extend(backwards);
    order
}
