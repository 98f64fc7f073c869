//! Rounds of micro-batches in which looped schedules run their stages.

use super::{Shape, Work};
use std::ops::Range;

/// The micro-batches in as many rounds of nearly equal size as there are full rounds of `least`; longer rounds first.
pub(super) fn even(micro_batches: u64, least: u64) -> Vec<Range<u64>> {
    let n_rounds = (micro_batches / least).max(1);
    let (size, longer) = (micro_batches / n_rounds, micro_batches % n_rounds);
    let begin = |round: u64| round * size + round.min(longer);
    (0..n_rounds).map(|round| begin(round)..begin(round + 1)).collect()
}

/// The forwards of a rank: round by round, within it stage by stage.
pub(super) fn forwards(shape: &Shape, rounds: &[Range<u64>], rank: usize) -> Vec<Work> {
    let mut order = Vec::with_capacity(shape.loops * shape.micro_batches as usize);
    for round in rounds {
        for stage in (rank..shape.n_stages()).step_by(shape.ranks) {
            order.extend(round.clone().map(|micro_batch| Work::forward(stage, micro_batch)));
        }
    }
    order
}

/// The backwards of a rank: round by round, within it from the last stage to the first.
pub(super) fn backwards(shape: &Shape, rounds: &[Range<u64>], rank: usize) -> Vec<Work> {
    let mut order = Vec::with_capacity(shape.loops * shape.micro_batches as usize);
    for round in rounds {
        for stage in (rank..shape.n_stages()).step_by(shape.ranks).rev() {
            order.extend(round.clone().map(|micro_batch| Work::backward(stage, micro_batch)));
        }
    }
    order
}
