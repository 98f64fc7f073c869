//! The static offset packer: it gives every buffer of one memory region an offset such that buffers
//! that are alive at the same time do not share bytes, and the region is as low as it can get.
//!
//! The packer is a pure function of its input: integers only, no clock, and all effort is counted in
//! steps ([`PackOptions::steps`]), so that equal input gives equal offsets on every machine.
//!
//! It works in stages and stops as soon as the height reaches the lower bound:
//!
//! 1. Buffers that are alive whenever any buffer of their group is alive are stacked at the bottom, and
//!    groups that never meet in time are packed one by one (`split`); both lose nothing.
//! 2. First-fit placement over several static orders, the best of which is improved by moving the
//!    buffers that stick out to the front (`greedy`).
//! 3. In groups of moderate size without fixed buffers: exact search for lower and lower heights
//!    (`search`), with several orders in turn and ever larger budgets. Each search puts first what the
//!    ones before it could not place (`group`).
//!
//! Groups of more than 32,768 blocks are placed by their lives alone (`skyline`), since the others need all pairs.
//!
//! What it reaches, on one core of a 2-core cloud machine (release build, processor time; a step is a
//! little less than a nanosecond). The seven instances are those of MiniMalloc, each known to fit in
//! 1,048,576 bytes; the bound is the load, which need not be reachable.
//!
//! | instance | buffers | bound | height, target 1,048,576 | time | height, no target, 1.5e9 steps | time |
//! | --- | --- | --- | --- | --- | --- | --- |
//! | A | 154 | 1048576 | 1048576 | 15 ms | 1048576 | 15 ms |
//! | C | 203 | 1039360 | 1048576 | 26 ms | 1039360 | 20 ms |
//! | D | 213 | 986112 | 1048576 | 46 ms | 1024000 | 1264 ms |
//! | F | 296 | 1048576 | 1048576 | 16 ms | 1048576 | 16 ms |
//! | G | 308 | 1048576 | 1048576 | 20 ms | 1048576 | 24 ms |
//! | I | 374 | 1048576 | 1048576 | 136 ms | 1048576 | 137 ms |
//! | J | 409 | 989184 | 1048576 | 64 ms | 1046528 | 1282 ms |
//!
//! Steps of training, from the generator in `tests/training.rs`, with the default options:
//!
//! | step | buffers | height / bound | time |
//! | --- | --- | --- | --- |
//! | 4 layers, 1 in flight, head | 70 | 1.0000 | 0 ms |
//! | 6 layers, 2 in flight, head | 154 | 1.0027 | 151 ms |
//! | 6 layers, 4 in flight | 268 | 1.0027 | 170 ms |
//! | 12 layers, 8 in flight | 1000 | 1.0007 | 195 ms |
//! | 24 layers, 1 in flight, head | 310 | 1.0000 | 0 ms |
//! | 48 layers, 4 in flight, head | 2038 | 1.0003 | 506 ms |
//! | 48 layers, 16 in flight | 7792 | 1.0001 | 560 ms |
//! | 96 layers, 24 in flight | 23248 | 1.0000 | 1145 ms |
//!
//! `cargo bench -p trainc-passes --bench pack` measures them again.
mod bits;
mod conflict;
mod greedy;
mod group;
mod problem;
mod search;
mod skyline;
mod slots;
mod split;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use problem::Block;

/// One buffer to place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Item {
    /// Size in bytes. It is rounded up to `align` (see [`Item::footprint`]).
    pub bytes: u64,
    /// Alignment of the offset: a power of two.
    pub align: u64,
    /// When the buffer is alive: half-open intervals on the time axis, in any order. Empty intervals
    /// are ignored and overlapping ones are joined. A buffer that is never alive shares with everything.
    pub lives: Vec<Range<u32>>,
    /// The offset, when it is given from outside. The caller vouches that given offsets agree with each
    /// other; [`check_packing`] tells when they do not.
    pub fixed: Option<u64>,
}

impl Item {
    /// A buffer with one life.
    pub fn new(bytes: u64, align: u64, live: Range<u32>) -> Item {
        Item::with_lives(bytes, align, vec![live])
    }

    /// A buffer that is alive in each of `lives`.
    pub fn with_lives(bytes: u64, align: u64, lives: Vec<Range<u32>>) -> Item {
        Item { bytes, align, lives, fixed: None }
    }

    /// The same buffer at the given offset.
    pub fn at(self, offset: u64) -> Item {
        Item { fixed: Some(offset), ..self }
    }

    /// The bytes that the buffer occupies: `bytes` rounded up to `align`.
    pub fn footprint(&self) -> u64 {
        self.bytes.checked_next_multiple_of(self.align.max(1)).unwrap_or(u64::MAX)
    }
}

/// How hard [`pack`] tries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackOptions {
    /// The work that may be spent, in elementary steps. A thousand million take about a second. At
    /// least one placement is always made, whatever it takes.
    pub steps: u64,
    /// A height that is good enough, such as the capacity left: at or below it the packer stops.
    pub target: u64,
}

impl Default for PackOptions {
    fn default() -> PackOptions {
        PackOptions { steps: 200_000_000, target: 0 }
    }
}

/// The offsets found by [`pack`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    /// The offset of each item, in the order of the items.
    pub offsets: Vec<u64>,
    /// The end of the highest item: the bytes of the region.
    pub height: u64,
    /// The largest sum, over time, of the footprints alive, or the end of a fixed or single item where
    /// that is higher: no packing is lower.
    pub lower_bound: u64,
}

/// Two items that are alive at the same time and share bytes, or an offset that is not aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackingFault {
    /// The items with these indices meet in time and in space.
    Overlap(usize, usize),
    /// The offset of this item is not a multiple of its alignment.
    Misaligned(usize),
    /// There are this many offsets, but another number of items.
    Count(usize),
}

/// Gives every item an offset. See the module's documentation for how.
pub fn pack(items: &[Item], options: &PackOptions) -> Packing {
    let blocks: Vec<Block> = items.iter().map(Block::new).collect();
    let single = blocks.iter().map(Block::least_end).max().unwrap_or(0);
    let lower_bound = single.max(problem::peak_load(blocks.iter()));
    let offsets = split::pack_blocks(&blocks, lower_bound.max(options.target), options.steps);
    let ends = offsets.iter().zip(&blocks).map(|(&offset, block)| offset.saturating_add(block.size));
    let height = ends.max().unwrap_or(0);
    Packing { offsets, height, lower_bound }
}

/// Looks for two items that meet both in time and in space, by a sweep that shares no code with the
/// placement. Returns the first fault in the order of the sweep.
pub fn check_packing(items: &[Item], offsets: &[u64]) -> Result<(), PackingFault> {
    if items.len() != offsets.len() {
        return Err(PackingFault::Count(offsets.len()));
    }
    for (index, (item, offset)) in items.iter().zip(offsets).enumerate() {
        if offset % item.align.max(1) != 0 {
            return Err(PackingFault::Misaligned(index));
        }
    }
    // At each moment the items alive are held in the order of their offsets; an item that comes alive
    // must end before its upper neighbour and start after its lower one.
    let mut events: Vec<(u32, bool, usize)> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        if item.bytes > 0 {
            for live in problem::joined(&item.lives) {
                events.push((live.start, true, index));
                events.push((live.end, false, index));
            }
        }
    }
    events.sort_unstable();
    let mut alive: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for (_, starts, index) in events {
        let (offset, size) = (offsets[index], items[index].footprint());
        if !starts {
            alive.remove(&offset);
            continue;
        }
        let below = alive.range(..=offset).next_back();
        if let Some((&other, &(other_size, other_index))) = below
            && other.saturating_add(other_size) > offset
        {
            return Err(PackingFault::Overlap(other_index, index));
        }
        let above = alive.range(offset..).next();
        if let Some((&other, &(_, other_index))) = above
            && offset.saturating_add(size) > other
        {
            return Err(PackingFault::Overlap(index, other_index));
        }
        alive.insert(offset, (size, index));
    }
    Ok(())
}
