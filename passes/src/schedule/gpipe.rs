//! GPipe: all forwards, then all backwards.

use super::{Generator, Schedule, ScheduleError, Shape, Work};

/// All forwards, then all backwards, one stage per rank. It keeps the activations of all micro-batches.
#[derive(Clone, Copy, Debug)]
pub struct GPipe;

impl Generator for GPipe {
    fn generate(&self, shape: &Shape) -> Result<Schedule, ScheduleError> {
        shape.check()?;
        if shape.loops != 1 {
            return Err(ScheduleError::Loops { kind: "gpipe", loops: shape.loops, expected: 1 });
        }
        let all = 0..shape.micro_batches;
        let order = |rank| {
            let forwards = all.clone().map(|micro_batch| Work::forward(rank, micro_batch));
            forwards.chain(all.clone().map(|micro_batch| Work::backward(rank, micro_batch))).collect()
        };
        let ranks = (0..shape.ranks).map(order).collect();
        Ok(Schedule { micro_batches: shape.micro_batches, rank_of: shape.looped(), ranks })
    }
}
