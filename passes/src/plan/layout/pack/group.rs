//! Packing one group of blocks: greedy placement first, then searches for ever lower heights.

use std::cmp::Reverse;

use super::bits;
use super::conflict::Conflicts;
use super::greedy::{Placed, pack_greedily};
use super::problem::{Block, peak_load};
use super::search::{Outcome, Searcher};
use super::skyline::pack_skyline;

/// Larger groups are left to the greedy placement.
pub(super) const MAX_SEARCHED: usize = 1024;

/// In larger groups blocks are not compared with each other: the matrix of this many takes 128 MiB.
const MAX_COMPARED: usize = 1 << 15;

/// The number of searches with the static orders alone before blocks that failed often are put to the front.
const N_PLAIN: u64 = 3;

/// The blocks of one group with what is known about them.
pub(super) struct Group<'a> {
    pub(super) blocks: &'a [&'a Block],
    pub(super) conflicts: Conflicts,
    pub(super) base: u64,
}

/// Places the blocks of one group at or above `base`, stopping at a height of `target` or below.
pub(super) fn pack_group(blocks: &[&Block], base: u64, target: u64, steps: &mut u64) -> Placed {
    if blocks.len() > MAX_COMPARED {
        return pack_skyline(blocks, base, target, steps);
    }
    let group = Group { blocks, conflicts: Conflicts::new(blocks), base };
    let is_searched = blocks.len() <= MAX_SEARCHED && blocks.iter().all(|block| block.fixed.is_none());
    let mut greedy_steps = if is_searched { *steps / 16 } else { *steps };
    *steps -= greedy_steps;
    let mut best = pack_greedily(&group, target, &mut greedy_steps);
    *steps += greedy_steps;
    // Sums of sizes cannot overflow then.
    let total = blocks.iter().try_fold(base, |sum, block| sum.checked_add(block.size)?.checked_add(block.align));
    if best.height > target && is_searched && total.is_some() {
        descend(&group, target, &mut best, steps);
    }
    best
}

/// Searches for placements below the best one, in rounds with ever larger budgets. Each round asks for
/// the least height possible; every other one goes on with higher ones, half of the way to the best
/// known at a time, until one is found.
fn descend(group: &Group<'_>, target: u64, best: &mut Placed, steps: &mut u64) {
    // Every height at which a block can end is a multiple of the unit.
    let unit = group.blocks.iter().fold(group.base, |unit, block| gcd(gcd(unit, block.size), block.align)).max(1);
    let mut least = (group.base + peak_load(group.blocks.iter().copied())).max(target).next_multiple_of(unit);
    let mut attempts = Attempts::new(group);
    let mut budget = attempts.searcher.descent().saturating_mul(4);
    let mut looks_higher = false;
    while best.height > least && *steps > 0 {
        let mut height = least;
        while height < best.height && *steps > 0 {
            match attempts.run(height, budget, steps) {
                Outcome::Found(offsets) => {
                    let ends = offsets.iter().zip(group.blocks).map(|(offset, block)| offset + block.size);
                    best.height = ends.max().unwrap_or(0);
                    best.offsets = offsets;
                    // What is lower was tried in this round.
                    break;
                }
                Outcome::Impossible => {
                    least = height + unit;
                    height = least;
                }
                Outcome::Unknown => {
                    if !looks_higher {
                        break;
                    }
                    let middle = height + (best.height - height).div_ceil(2);
                    height = middle.next_multiple_of(unit).max(height + unit);
                }
            }
        }
        looks_higher = !looks_higher;
        budget = budget.saturating_add(budget / 2);
    }
}

/// Searches with several orders in turn, each learning from those before.
struct Attempts<'a> {
    searcher: Searcher<'a>,
    /// Static orders of all blocks, the most promising first.
    orders: Vec<Vec<usize>>,
    /// For each block how often it was among those that did not fit; older failures count less.
    blame: Vec<u64>,
    n_searches: u64,
}

impl<'a> Attempts<'a> {
    fn new(group: &'a Group<'a>) -> Attempts<'a> {
        let searcher = Searcher::new(group.blocks, &group.conflicts, group.base);
        let n_blocks = group.blocks.len();
        let slots = &searcher.slots;
        let covered = |index: usize| bits::ones(slots.mask(index));
        let peaks: Vec<u64> =
            (0..n_blocks).map(|index| covered(index).map(|slot| slots.load[slot]).max().unwrap_or(0)).collect();
        let peak = |index: usize| u128::from(peaks[index]);
        let life = |index: usize| u128::from(group.blocks[index].life());
        let area = |index: usize| life(index) * u128::from(group.blocks[index].size);
        let n_slots = |index: usize| covered(index).count() as u128;
        let degree = |index: usize| u128::from(group.conflicts.degree(index));
        let sorted = |key: &dyn Fn(usize) -> (u128, u128, u128)| {
            let mut order: Vec<usize> = (0..n_blocks).collect();
            order.sort_by_cached_key(|&index| Reverse(key(index)));
            order
        };
        let orders = vec![
            sorted(&|index| (peak(index), life(index), area(index))),
            sorted(&|index| (peak(index), area(index), life(index))),
            sorted(&|index| (life(index), area(index), peak(index))),
            sorted(&|index| (n_slots(index), peak(index), area(index))),
            sorted(&|index| (degree(index), peak(index), area(index))),
        ];
        Attempts { searcher, orders, blame: vec![0; n_blocks], n_searches: 0 }
    }

    /// Searches at one height with each order, with the given budget for each.
    fn run(&mut self, height: u64, budget: u64, steps: &mut u64) -> Outcome {
        for order in &self.orders {
            let mut order = order.clone();
            if self.n_searches >= N_PLAIN {
                order.sort_by_key(|&index| Reverse(self.blame[index]));
            }
            self.n_searches += 1;
            for blame in &mut self.blame {
                *blame = *blame / 8 * 7;
            }
            let given = budget.min(*steps);
            let mut left = given;
            let outcome = self.searcher.search(&order, height, &mut self.blame, &mut left);
            *steps -= given - left;
            match outcome {
                Outcome::Found(_) | Outcome::Impossible => return outcome,
                Outcome::Unknown => {}
            }
        }
        Outcome::Unknown
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
