//! The search against plain enumeration, and against the fixed schedules on random problems.

mod enumerate;
mod random;

use super::{SearchOptions, Unequal};
use crate::schedule::{Boundary, Costs, StageCost};

/// Numbers that look random and are the same everywhere (Knuth's multiplier).
struct Numbers(u64);

impl Numbers {
    /// A number in `from..=to`.
    fn next(&mut self, from: u64, to: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        from + (self.0 >> 33) % (to - from + 1)
    }
}

/// A problem with small random numbers; `spare` more of a rank's bytes fit than are needed for one micro-batch.
fn problem(numbers: &mut Numbers, rank_of: &[usize], micro_batches: u64, split: bool) -> Unequal {
    let stages: Vec<StageCost> = rank_of
        .iter()
        .map(|_| {
            let (input_grad_ps, weight_grad_ps) = (numbers.next(0, 6), numbers.next(0, 5));
            StageCost {
                forward_ps: numbers.next(0, 6),
                // Splitting may cost time, or save some.
                backward_ps: (input_grad_ps + weight_grad_ps + numbers.next(0, 2)).saturating_sub(1),
                input_grad_ps,
                weight_grad_ps,
                recompute_ps: if numbers.next(0, 2) == 0 { numbers.next(1, 4) } else { 0 },
                kept_bytes: numbers.next(1, 4),
                kept_for_weights_bytes: numbers.next(0, 4),
            }
        })
        .collect();
    let boundary = |_| Boundary { forward_ps: numbers.next(0, 4), backward_ps: numbers.next(0, 4) };
    let boundaries = (1..rank_of.len()).map(boundary).collect();
    let n_ranks = rank_of.iter().max().expect("there are stages") + 1;
    let room = |rank: usize| {
        let kept = |(of, cost): (&usize, &StageCost)| if *of == rank { cost.kept_bytes } else { 0 };
        let least: u64 = rank_of.iter().zip(&stages).map(kept).sum();
        least * numbers.next(1, micro_batches) + numbers.next(0, 2)
    };
    let room_bytes = (0..n_ranks).map(room).collect();
    let costs = Costs { stages, boundaries, traffic: None };
    Unequal { rank_of: rank_of.to_vec(), micro_batches, costs, room_bytes, split }
}

const LITTLE: SearchOptions = SearchOptions { steps: 60_000 };
const MUCH: SearchOptions = SearchOptions { steps: 5_000_000 };
