//! Breadth-first: each of a rank's stages runs many micro-batches in a row.

use super::{Generator, Schedule, ScheduleError, Shape, interleaved, one_f_one_b, rounds, short_rounds};

/// Stage `j` on rank `j mod p`. With all micro-batches in a row a rank runs the forwards of its stages one stage after the
/// other, then the backwards from the last stage to the first: weights are gathered twice a step and gradients reduced once.
/// With fewer in a row it becomes depth-first; with as many as there are ranks it is interleaved 1F1B, with less than that
/// a rank keeps fewer micro-batches and waits more.
#[derive(Clone, Copy, Debug)]
pub struct BreadthFirst {
    /// Micro-batches that a stage runs in a row, at least: they are divided evenly. Without it all.
    pub contiguous: Option<u64>,
}

impl Generator for BreadthFirst {
    fn generate(&self, shape: &Shape) -> Result<Schedule, ScheduleError> {
        shape.check()?;
        let all = shape.micro_batches;
        if let Some(contiguous) = self.contiguous.filter(|&contiguous| contiguous < all) {
            let contiguous = contiguous.max(1);
            let rounds = rounds::even(all, contiguous);
            return Ok(match (shape.loops, contiguous >= shape.ranks as u64) {
                (1, _) => one_f_one_b::schedule(shape),
                (_, true) => interleaved::in_rounds(shape, &rounds),
                (_, false) => short_rounds::in_rounds(shape, &rounds),
            });
        }
        let whole = rounds::even(all, all);
        let order = |rank| {
            let mut order = rounds::forwards(shape, &whole, rank);
            order.extend(rounds::backwards(shape, &whole, rank));
            order
        };
        let ranks = (0..shape.ranks).map(order).collect();
        Ok(Schedule { micro_batches: all, rank_of: shape.looped(), ranks })
    }
}
