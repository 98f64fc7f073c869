//! Closed forms of the literature for uniform stages, and small cases by hand.

mod crossover;
mod hand;
mod table;

use super::{Costs, Timing, simulate};
use crate::schedule::{Generator, ScheduleKind, Shape};

/// Equal stages: forward 1, backward 2.
fn uniform(kind: ScheduleKind, ranks: usize, loops: usize, micro_batches: u64) -> Timing {
    let shape = Shape { ranks, loops, micro_batches };
    let schedule = kind.generate(&shape).unwrap_or_else(|error| panic!("{kind} {shape:?}: {error}"));
    simulate(&schedule, &Costs::uniform(shape.n_stages())).unwrap_or_else(|error| panic!("{kind} {shape:?}: {error}"))
}
