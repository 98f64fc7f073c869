//! ZB-H1: 1F1B with split backwards, whose weight gradients fill the gaps at the end.

use super::{Generator, Schedule, ScheduleError, Shape, Work, WorkKind, rounds};

/// Rank `r` of `p` begins with `p - 1 - r` forwards and puts off its weight gradients by `r` micro-batches, so that every
/// rank keeps at most `p` micro-batches and the last rank's input gradients come without delay.
///
/// With several stages per rank it is interleaved, as PyTorch's `ScheduleInterleavedZeroBubble`.
#[derive(Clone, Copy, Debug)]
pub struct ZbH1;

impl Generator for ZbH1 {
    fn generate(&self, shape: &Shape) -> Result<Schedule, ScheduleError> {
        shape.check()?;
        let rounds = rounds::even(shape.micro_batches, shape.ranks as u64);
        let first = rounds[0].end - rounds[0].start;
        let order = |rank| {
            let forwards = rounds::forwards(shape, &rounds, rank);
            let backwards = rounds::backwards(shape, &rounds, rank);
            let ahead = (shape.loops as u64 - 1) * first + (shape.ranks - 1 - rank) as u64;
            put_off(forwards, &backwards, ahead, rank)
        };
        let ranks = (0..shape.ranks).map(order).collect();
        Ok(Schedule { micro_batches: shape.micro_batches, rank_of: shape.looped(), ranks })
    }
}

/// So many forwards ahead, then a forward and input gradients in turns; the weight gradients follow `delay` later.
fn put_off(forwards: Vec<Work>, backwards: &[Work], ahead: u64, delay: usize) -> Vec<Work> {
    let mut order: Vec<Work> = Vec::with_capacity(3 * forwards.len());
    let mut forwards = forwards.into_iter();
    order.extend((0..ahead).map_while(|_| forwards.next()));
    for (i, &backward) in backwards.iter().enumerate() {
        order.extend(forwards.next());
        order.push(Work { kind: WorkKind::InputGrad, ..backward });
        if let Some(due) = i.checked_sub(delay) {
            order.push(Work { kind: WorkKind::WeightGrad, ..backwards[due] });
        }
    }
    let late = &backwards[backwards.len() - delay.min(backwards.len())..];
    order.extend(late.iter().map(|&backward| Work { kind: WorkKind::WeightGrad, ..backward }));
    order
}
