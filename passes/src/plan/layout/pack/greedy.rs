//! First-fit placement over static orders, improved by promoting the blocks that stick out.

use std::cmp::Reverse;

use super::bits;
use super::group::Group;
use super::problem::{Block, Load, Maxima, slot_range};

/// Offsets of the blocks of one group and the end of the highest.
#[derive(Clone)]
pub(super) struct Placed {
    pub(super) offsets: Vec<u64>,
    pub(super) height: u64,
}

/// The best of several orders, improved as long as `steps` last. Stops at a height of `target` or below.
pub(super) fn pack_greedily(group: &Group<'_>, target: u64, steps: &mut u64) -> Placed {
    let facts = Facts::new(group);
    let mut order = facts.order(0);
    let mut best = group.first_fit(&order, steps);
    for number in 1..N_ORDERS {
        if best.height <= target || *steps == 0 {
            break;
        }
        let other = facts.order(number);
        let placed = group.first_fit(&other, steps);
        if placed.height < best.height {
            (best, order) = (placed, other);
        }
    }
    promote(group, &mut best, &mut order, target, steps);
    best
}

impl Group<'_> {
    /// Places the blocks one after the other, each as low as the ones before it allow.
    fn first_fit(&self, order: &[usize], steps: &mut u64) -> Placed {
        let mut offsets = vec![0u64; self.blocks.len()];
        // The placed blocks, sorted by offset.
        let mut stack: Vec<u32> = Vec::with_capacity(self.blocks.len());
        let mut height = 0u64;
        for &index in order {
            let block = self.blocks[index];
            let row = self.conflicts.row(index);
            let mut scanned = 0;
            let offset = block.fixed.unwrap_or_else(|| {
                let aligned = |offset: u64| offset.checked_next_multiple_of(block.align).unwrap_or(u64::MAX);
                let mut offset = aligned(self.base);
                for &other in &stack {
                    scanned += 1;
                    let other = other as usize;
                    if bits::has(row, other) {
                        if offsets[other] >= offset.saturating_add(block.size) {
                            break;
                        }
                        offset = offset.max(aligned(offsets[other].saturating_add(self.blocks[other].size)));
                    }
                }
                offset
            });
            *steps = steps.saturating_sub(scanned + 1);
            offsets[index] = offset;
            height = height.max(offset.saturating_add(block.size));
            let place = stack.partition_point(|&other| offsets[other as usize] <= offset);
            stack.insert(place, u32::try_from(index).expect("a group has fewer than 2^32 blocks"));
        }
        Placed { offsets, height }
    }
}

/// How many orders there are.
const N_ORDERS: u32 = 8;

/// What the orders go by.
struct Facts<'a> {
    blocks: &'a [&'a Block],
    /// How long each block is alive.
    lives: Vec<u64>,
    /// How many blocks it meets.
    degrees: Vec<u64>,
    /// The greatest load during its life.
    peaks: Vec<u64>,
}

impl<'a> Facts<'a> {
    fn new(group: &Group<'a>) -> Facts<'a> {
        let blocks = group.blocks;
        let load = Load::new(blocks.iter().copied());
        let maxima = Maxima::new(load.slots);
        let peak = |block: &&Block| {
            let ranges = block.lives.iter().map(|live| slot_range(&load.times, live));
            ranges.map(|range| maxima.of(range)).max().unwrap_or(0)
        };
        Facts {
            blocks,
            lives: blocks.iter().map(|block| block.life()).collect(),
            degrees: (0..blocks.len()).map(|index| group.conflicts.degree(index)).collect(),
            peaks: blocks.iter().map(peak).collect(),
        }
    }

    /// One of the orders of all blocks; fixed blocks come first in each.
    fn order(&self, number: u32) -> Vec<usize> {
        let Facts { blocks, lives, degrees, peaks } = self;
        let size = |index: usize| blocks[index].size;
        let area = |index: usize| u128::from(size(index)) * u128::from(lives[index]);
        let start = |index: usize| blocks[index].lives.first().map_or(0, |live| live.start);
        match number {
            0 => self.sorted(|index| (Reverse(size(index)), Reverse(lives[index]))),
            1 => self.sorted(|index| (Reverse(lives[index]), Reverse(size(index)))),
            2 => self.sorted(|index| Reverse(area(index))),
            3 => self.sorted(|index| (Reverse(peaks[index]), Reverse(size(index)), Reverse(lives[index]))),
            4 => self.sorted(|index| (Reverse(peaks[index]), Reverse(lives[index]), Reverse(size(index)))),
            5 => self.sorted(|index| Reverse(u128::from(size(index)) * u128::from(degrees[index]))),
            6 => self.sorted(|index| (start(index), Reverse(lives[index]), Reverse(size(index)))),
            _ => self.sorted(|index| (Reverse(size(index)), start(index))),
        }
    }

    fn sorted<Key: Ord>(&self, key: impl Fn(usize) -> Key) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.blocks.len()).collect();
        order.sort_by_cached_key(|&index| (self.blocks[index].fixed.is_none(), key(index)));
        order
    }
}

/// Moves the blocks that end above the best height reached so far, less one, to the front of the
/// order, and places again; goes on from orders that are no better, too, since a later move may pay.
fn promote(group: &Group<'_>, best: &mut Placed, order: &mut [usize], target: u64, steps: &mut u64) {
    const PATIENCE: u32 = 200;
    let mut current = best.clone();
    let mut failures = 0;
    while best.height > target && *steps > 0 && failures < PATIENCE {
        let ends = |index: usize| current.offsets[index].saturating_add(group.blocks[index].size);
        // A stable partition: fixed blocks stay first, then the blocks that stick out.
        let limit = best.height.min(current.height);
        order.sort_by_key(|&index| match group.blocks[index].fixed {
            Some(_) => 0,
            None if ends(index) >= limit => 1,
            None => 2,
        });
        current = group.first_fit(order, steps);
        failures += 1;
        if current.height < best.height {
            *best = current.clone();
            failures = 0;
        }
    }
}
