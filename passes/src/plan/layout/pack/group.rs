//! Packing one group of blocks: greedy placement first, then searches for ever lower heights.

use std::cmp::Reverse;

use super::conflict::Conflicts;
use super::greedy::{Placed, pack_greedily};
use super::problem::{Block, peak_load};
use super::search::{Outcome, Rule, Searcher};

/// Larger groups are left to the greedy placement.
const MAX_SEARCHED: usize = 1024;

/// The blocks of one group with what is known about them.
pub(super) struct Group<'a> {
    pub(super) blocks: &'a [&'a Block],
    pub(super) conflicts: Conflicts,
    pub(super) base: u64,
}

/// Places the blocks of one group at or above `base`, stopping at a height of `target` or below.
pub(super) fn pack_group(blocks: &[&Block], base: u64, target: u64, steps: &mut u64) -> Placed {
    let group = Group { blocks, conflicts: Conflicts::new(blocks), base };
    let mut greedy_steps = *steps / 4;
    *steps -= greedy_steps;
    let mut best = pack_greedily(&group, target, &mut greedy_steps);
    *steps += greedy_steps;
    let total = blocks.iter().try_fold(base, |sum, block| sum.checked_add(block.size)?.checked_add(block.align));
    let is_fixed = blocks.iter().any(|block| block.fixed.is_some());
    if best.height > target && blocks.len() <= MAX_SEARCHED && total.is_some() && !is_fixed {
        descend(&group, target, &mut best, steps);
    }
    best
}

/// The orders and rules to search with, the most promising first.
struct Attempts<'a> {
    searcher: Searcher<'a>,
    orders: Vec<Vec<usize>>,
    /// Failures at each slot, kept for the next search.
    blame: Vec<u64>,
}

/// Searches for placements below the best one, in rounds with ever larger budgets. In each round the
/// heights asked for go up from the least one possible, half of the way to the best known at a time.
fn descend(group: &Group<'_>, target: u64, best: &mut Placed, steps: &mut u64) {
    let blocks: Vec<Block> = group.blocks.iter().map(|&block| block.clone()).collect();
    let unit = group.blocks.iter().fold(group.base, |unit, block| gcd(gcd(unit, block.size), block.align));
    let unit = unit.max(1);
    // Every height at which a block can end is a multiple of the unit.
    let mut least = (group.base + peak_load(&blocks)).max(target).next_multiple_of(unit);
    let mut attempts = Attempts::new(group);
    let mut budget = attempts.searcher.descent().saturating_mul(4);
    while best.height > least && *steps > 0 {
        let mut height = least;
        while height < best.height && *steps > 0 {
            match attempts.run(height, budget, steps) {
                Outcome::Found(offsets) => {
                    best.height =
                        offsets.iter().zip(&blocks).map(|(offset, block)| offset + block.size).max().unwrap_or(0);
                    best.offsets = offsets;
                    // Lower heights than this failed in this round.
                    break;
                }
                Outcome::Impossible => {
                    least = height + unit;
                    height = least;
                }
                Outcome::Unknown => {
                    let middle = height + (best.height - height).div_ceil(2);
                    height = middle.next_multiple_of(unit).max(height + unit);
                }
            }
        }
        budget = budget.saturating_mul(2);
    }
}

impl<'a> Attempts<'a> {
    fn new(group: &'a Group<'a>) -> Attempts<'a> {
        let searcher = Searcher::new(group.blocks, &group.conflicts, group.base);
        let slots = &searcher.slots;
        let peaks: Vec<u64> = slots
            .of_block
            .iter()
            .map(|ranges| ranges.iter().flat_map(|range| &slots.load[range.clone()]).copied().max().unwrap_or(0))
            .collect();
        let n_slots: Vec<usize> =
            slots.of_block.iter().map(|ranges| ranges.iter().map(ExactSizeIterator::len).sum()).collect();
        let lives: Vec<u64> = group.blocks.iter().map(|block| block.life()).collect();
        let area = |index: usize| u128::from(group.blocks[index].size) * u128::from(lives[index]);
        let degree = |index: usize| group.conflicts.degree(index);
        let sorted = |key: &dyn Fn(usize) -> (u128, u128, u128)| {
            let mut order: Vec<usize> = (0..group.blocks.len()).collect();
            order.sort_by_cached_key(|&index| Reverse(key(index)));
            order
        };
        let (peak, life, covers) = (
            |index: usize| u128::from(peaks[index]),
            |index: usize| u128::from(lives[index]),
            |index: usize| n_slots[index] as u128,
        );
        let orders = vec![
            sorted(&|index| (peak(index), life(index), area(index))),
            sorted(&|index| (peak(index), area(index), life(index))),
            sorted(&|index| (life(index), area(index), peak(index))),
            sorted(&|index| (covers(index), peak(index), area(index))),
            sorted(&|index| (u128::from(degree(index)), peak(index), area(index))),
        ];
        let blame = vec![0; searcher.slots.load.len()];
        Attempts { searcher, orders, blame }
    }

    /// Tries all orders and rules at one height, each with the given budget.
    fn run(&mut self, height: u64, budget: u64, steps: &mut u64) -> Outcome {
        for order in &self.orders {
            for rule in [Rule::Lowest, Rule::Tightest, Rule::Fullest] {
                let given = budget.min(*steps);
                let mut left = given;
                let outcome = self.searcher.search(order, rule, height, &mut self.blame, &mut left);
                *steps -= given - left;
                match outcome {
                    Outcome::Found(_) | Outcome::Impossible => return outcome,
                    Outcome::Unknown => {}
                }
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
