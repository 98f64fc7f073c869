//! Packing very many blocks: each goes on top of whatever was placed before at any of its times, holes stay.

use std::cmp::Reverse;

use super::greedy::Placed;
use super::problem::{Block, Load, slot_range};

/// What an order goes by.
type OrderKey<'a> = &'a dyn Fn(usize) -> (Reverse<u64>, Reverse<u64>);

/// Places the blocks of a group at or above `base`, in the best of a few orders. Takes `n log n` time and linear space,
/// where first fit needs a matrix of all pairs.
pub(super) fn pack_skyline(blocks: &[&Block], base: u64, target: u64, steps: &mut u64) -> Placed {
    let times = Load::new(blocks.iter().copied()).times;
    let lives: Vec<u64> = blocks.iter().map(|block| block.life()).collect();
    let sorted = |key: OrderKey<'_>| {
        let mut order: Vec<usize> = (0..blocks.len()).collect();
        order.sort_by_cached_key(|&index| (blocks[index].fixed.is_none(), key(index)));
        order
    };
    let size = |index: usize| Reverse(blocks[index].size);
    let life = |index: usize| Reverse(lives[index]);
    let orders: [OrderKey<'_>; 2] = [&|index| (life(index), size(index)), &|index| (size(index), life(index))];
    let mut best: Option<Placed> = None;
    for key in orders {
        if best.as_ref().is_some_and(|best| best.height <= target || *steps == 0) {
            break;
        }
        let placed = place(blocks, base, &times, &sorted(key));
        *steps = steps.saturating_sub(64 * blocks.len() as u64);
        if best.as_ref().is_none_or(|best| placed.height < best.height) {
            best = Some(placed);
        }
    }
    best.expect("there is at least one order")
}

fn place(blocks: &[&Block], base: u64, times: &[u32], order: &[usize]) -> Placed {
    let mut skyline = Skyline::new(times.len().saturating_sub(1), base);
    let mut offsets = vec![0; blocks.len()];
    let mut height = 0u64;
    for &index in order {
        let block = blocks[index];
        let ranges = || block.lives.iter().map(|live| slot_range(times, live));
        let top = || ranges().map(|range| skyline.top(range)).max().unwrap_or(base);
        let offset = block.fixed.unwrap_or_else(|| block.raised(top()));
        let end = offset.saturating_add(block.size);
        ranges().for_each(|range| skyline.raise(range, end));
        offsets[index] = offset;
        height = height.max(end);
    }
    Placed { offsets, height }
}

/// A height for each slot, with the greatest of any range: a binary tree whose nodes hold what all slots below them are
/// raised to at least, and the greatest of them.
struct Skyline {
    n_leaves: usize,
    all: Vec<u64>,
    greatest: Vec<u64>,
}

impl Skyline {
    fn new(n_slots: usize, base: u64) -> Skyline {
        let n_leaves = n_slots.next_power_of_two();
        Skyline { n_leaves, all: vec![base; 2 * n_leaves], greatest: vec![base; 2 * n_leaves] }
    }

    /// The greatest height in a range that is not empty.
    fn top(&self, range: std::ops::Range<usize>) -> u64 {
        let (mut low, mut high) = (range.start + self.n_leaves, range.end - 1 + self.n_leaves);
        let mut top = self.greatest[low].max(self.greatest[high]);
        // What lies between the two paths to the root is covered whole; what lies on them counts with its floor.
        while low != high {
            let (above_low, above_high) = (low / 2, high / 2);
            if above_low != above_high {
                if low.is_multiple_of(2) {
                    top = top.max(self.greatest[low + 1]);
                }
                if !high.is_multiple_of(2) {
                    top = top.max(self.greatest[high - 1]);
                }
            }
            top = top.max(self.all[above_low]).max(self.all[above_high]);
            (low, high) = (above_low, above_high);
        }
        while low > 1 {
            low /= 2;
            top = top.max(self.all[low]);
        }
        top
    }

    /// Raises every slot of a range that is not empty to at least a height.
    fn raise(&mut self, range: std::ops::Range<usize>, to: u64) {
        let (first, last) = (range.start + self.n_leaves, range.end - 1 + self.n_leaves);
        let (mut low, mut high) = (first, last);
        self.cover(low, to);
        self.cover(high, to);
        while low / 2 != high / 2 {
            if low.is_multiple_of(2) {
                self.cover(low + 1, to);
            }
            if !high.is_multiple_of(2) {
                self.cover(high - 1, to);
            }
            (low, high) = (low / 2, high / 2);
        }
        for mut node in [first, last] {
            while node > 1 {
                node /= 2;
                self.greatest[node] = self.greatest[node].max(to);
            }
        }
    }

    fn cover(&mut self, node: usize, to: u64) {
        self.all[node] = self.all[node].max(to);
        self.greatest[node] = self.greatest[node].max(to);
    }
}

#[cfg(test)]
mod tests {
    use super::{Skyline, pack_skyline};
    use crate::plan::layout::pack::{Item, check_packing, problem::Block};

    fn pack(items: &[Item], base: u64) -> (Vec<u64>, u64) {
        let blocks: Vec<Block> = items.iter().map(Block::new).collect();
        let placed = pack_skyline(&blocks.iter().collect::<Vec<_>>(), base, 0, &mut 1_000_000);
        (placed.offsets, placed.height)
    }

    /// Compared with a plain list of heights.
    #[test]
    fn heights_are_those_of_a_list() {
        let mut skyline = Skyline::new(37, 5);
        let mut list = [5u64; 37];
        for step in 0u64..500 {
            let (a, b) = ((step * 29 % 37) as usize, (step * 53 % 37) as usize);
            let range = a.min(b)..a.max(b) + 1;
            let top = list[range.clone()].iter().copied().max().unwrap_or(0);
            assert_eq!(skyline.top(range.clone()), top, "{range:?}");
            if step % 3 != 2 {
                let to = step * 31 % 101;
                list[range.clone()].iter_mut().for_each(|height| *height = to.max(*height));
                skyline.raise(range, to);
            }
        }
    }

    /// Activations of a deep model: made in the forward, freed in the backward, the latest first.
    #[test]
    fn nested_lives_reach_the_bound() {
        let items: Vec<Item> = (0u32..1000).map(|i| Item::new(16 + u64::from(i % 7), 1, i..4000 - i)).collect();
        let total: u64 = items.iter().map(|item| item.bytes).sum();
        let (offsets, height) = pack(&items, 64);
        assert_eq!(height, 64 + total);
        assert!(offsets.iter().all(|&offset| offset >= 64));
        assert_eq!(check_packing(&items, &offsets), Ok(()));
    }

    #[test]
    fn blocks_with_several_lives_and_fixed_ones_never_overlap() {
        let item = |i: u32| {
            let lives = (0..i % 4 + 1).map(|life| {
                let start = (i * 37 + life * 211) % 900;
                start..start + 1 + (i * 13 + life) % 40
            });
            Item::with_lives(u64::from(i * 7 % 90), 1 << (i % 5), lives.collect())
        };
        let mut items: Vec<Item> = (0..600).map(item).collect();
        items[3] = items[3].clone().at(512);
        let (offsets, _) = pack(&items, 0);
        assert_eq!(offsets[3], 512);
        assert_eq!(check_packing(&items, &offsets), Ok(()));
    }
}
