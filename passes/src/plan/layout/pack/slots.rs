//! The moments that matter to a search: sets of blocks alive together, without repetitions.

use std::collections::BTreeMap;

use super::bits;
use super::problem::{Block, Load, slot_range};

/// Which slots each block covers.
///
/// A slot whose blocks are all alive in the slot before or after it as well is left out, and of slots
/// with the same blocks (a pipeline repeats itself) only the first is kept.
pub(super) struct Slots {
    /// The slots that each block covers, in rows of `words` words.
    masks: Vec<u64>,
    pub(super) words: usize,
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
        let words = bits::words(n_kept);
        let mut masks = vec![0u64; words * blocks.len()];
        let mut load = vec![0u64; n_kept];
        for (index, block) in blocks.iter().enumerate() {
            let mask = &mut masks[index * words..][..words];
            let covered = block.lives.iter().flat_map(|live| slot_range(&times, live));
            for slot in covered.filter_map(|slot| kept[slot]) {
                bits::set(mask, slot);
            }
            for slot in bits::ones(mask) {
                load[slot] = load[slot].saturating_add(block.size);
            }
        }
        Slots { masks, words, load }
    }

    /// The slots that a block covers, as bits.
    pub(super) fn mask(&self, index: usize) -> &[u64] {
        &self.masks[index * self.words..][..self.words]
    }
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
        let lives = [&[0..10, 20..30][..], &[2..5, 22..25], &[4..7, 24..27], &[8..9, 9..9]];
        let block = |lives: &&[Range<u32>]| Block::new(&Item::with_lives(1, 1, lives.to_vec()));
        let blocks: Vec<Block> = lives.iter().map(block).collect();
        let slots = Slots::new(&blocks.iter().collect::<Vec<_>>());
        // {a, b, c} at 4 and at 24, and {a, d} at 8; {a}, {a, b} and {a, c} are contained in these.
        assert_eq!(slots.load, [3, 2]);
        let masks: Vec<&[u64]> = (0..4).map(|index| slots.mask(index)).collect();
        assert_eq!(masks, [[0b11], [0b01], [0b01], [0b10]]);
    }
}
