//! The moments that matter to a search: sets of blocks alive together, without repetitions.

use std::collections::BTreeMap;
use std::ops::Range;

use super::problem::{Block, Load, slot_range};

/// Which slots each block covers.
///
/// A slot whose blocks are all alive in the slot before or after it as well is left out, and of slots
/// with the same blocks (a pipeline repeats itself) only the first is kept.
pub(super) struct Slots {
    /// For each block the slots it covers, as ranges of slot numbers.
    pub(super) of_block: Vec<Vec<Range<usize>>>,
    /// The sum of sizes of the blocks alive, for each slot.
    pub(super) load: Vec<u64>,
}

impl Slots {
    pub(super) fn new(blocks: &[&Block]) -> Slots {
        let Load { times, slots } = Load::new(blocks.iter().copied());
        let n_slots = slots.len();
        let mut starts = vec![false; n_slots + 1];
        let mut ends = vec![false; n_slots + 1];
        // The blocks alive in a slot, as a sum of their keys; equal sums are taken for equal sets. After
        // a coincidence (once in 2^64) the search would see a fuller slot than there is and miss
        // placements, but never return a wrong one.
        let mut keys = vec![0u64; n_slots + 1];
        for (index, block) in (1u64..).zip(blocks) {
            let key = mixed(index);
            for range in block.lives.iter().map(|live| slot_range(&times, live)) {
                starts[range.start] = true;
                ends[range.end] = true;
                keys[range.start] = keys[range.start].wrapping_add(key);
                keys[range.end] = keys[range.end].wrapping_sub(key);
            }
        }
        let mut numbers = BTreeMap::new();
        // The new number of each kept slot.
        let mut kept: Vec<Option<usize>> = vec![None; n_slots];
        let mut n_kept = 0;
        let mut grows = false;
        let mut alive = 0u64;
        for slot in 0..n_slots {
            alive = alive.wrapping_add(keys[slot]);
            grows |= starts[slot];
            if grows && ends[slot + 1] {
                grows = false;
                let number = *numbers.entry(alive).or_insert(n_kept);
                kept[slot] = Some(number);
                n_kept = n_kept.max(number + 1);
            }
        }
        let of_block = blocks.iter().map(|block| {
            let slots = block.lives.iter().flat_map(|live| slot_range(&times, live));
            let mut covered: Vec<usize> = slots.filter_map(|slot| kept[slot]).collect();
            covered.sort_unstable();
            covered.dedup();
            ranges(&covered)
        });
        let of_block: Vec<Vec<Range<usize>>> = of_block.collect();
        let mut load = vec![0u64; n_kept];
        for (block, ranges) in blocks.iter().zip(&of_block) {
            for slot in ranges.iter().flat_map(Clone::clone) {
                load[slot] = load[slot].saturating_add(block.size);
            }
        }
        Slots { of_block, load }
    }
}

/// Sorted numbers as ranges.
fn ranges(numbers: &[usize]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some(last) if last.end == number => last.end += 1,
            Some(_) | None => ranges.push(number..number + 1),
        }
    }
    ranges
}

/// Spreads small numbers over 64 bits (the finalizer of SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::Slots;
    use crate::plan::layout::pack::{Item, problem::Block};

    #[test]
    fn only_distinct_fullest_slots_are_kept() {
        let lives = [&[0..10, 20..30][..], &[2..5, 22..25], &[4..7, 24..27], &[8..9]];
        let block = |lives: &&[Range<u32>]| Block::new(&Item::with_lives(1, 1, lives.to_vec()));
        let blocks: Vec<Block> = lives.iter().map(block).collect();
        let slots = Slots::new(&blocks.iter().collect::<Vec<_>>());
        // {a, b, c} at 4 and at 24, and {a, d} at 8; {a}, {a, b} and {a, c} are contained in these.
        assert_eq!(slots.load, [3, 2]);
        let covered = slots.of_block.iter().map(|ranges| ranges.iter().flat_map(Clone::clone).collect());
        assert_eq!(covered.collect::<Vec<Vec<usize>>>(), [vec![0, 1], vec![0], vec![0], vec![1]]);
    }
}
