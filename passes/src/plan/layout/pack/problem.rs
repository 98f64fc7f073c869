//! Items in the form that the packer works on: joined lives, rounded sizes, and the load over time.

use std::ops::Range;

use super::Item;

/// An item with its size rounded up and its lives sorted and joined.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) size: u64,
    pub(super) align: u64,
    pub(super) lives: Vec<Range<u32>>,
    pub(super) fixed: Option<u64>,
}

impl Block {
    pub(super) fn new(item: &Item) -> Block {
        Block { size: item.footprint(), align: item.align.max(1), lives: joined(&item.lives), fixed: item.fixed }
    }

    /// The lowest place at or above an offset.
    pub(super) fn raised(&self, offset: u64) -> u64 {
        offset.checked_next_multiple_of(self.align).unwrap_or(u64::MAX)
    }

    /// Where the block ends at the lowest.
    pub(super) fn least_end(&self) -> u64 {
        self.fixed.unwrap_or(0).saturating_add(self.size)
    }

    /// How long the block is alive in all.
    pub(super) fn life(&self) -> u64 {
        self.lives.iter().map(|live| u64::from(live.end - live.start)).sum()
    }
}

/// The intervals sorted, without empty ones, and joined where they touch or overlap.
pub(super) fn joined(lives: &[Range<u32>]) -> Vec<Range<u32>> {
    let mut sorted: Vec<Range<u32>> = lives.iter().filter(|live| live.start < live.end).cloned().collect();
    sorted.sort_unstable_by_key(|live| (live.start, live.end));
    let mut joined: Vec<Range<u32>> = Vec::with_capacity(sorted.len());
    for live in sorted {
        match joined.last_mut() {
            Some(last) if live.start <= last.end => last.end = last.end.max(live.end),
            Some(_) | None => joined.push(live),
        }
    }
    joined
}

/// The largest sum of sizes alive at one time.
pub(super) fn peak_load<'a>(blocks: impl Iterator<Item = &'a Block> + Clone) -> u64 {
    Load::new(blocks).slots.into_iter().max().unwrap_or(0)
}

/// The sum of the sizes alive, for each slot between two neighbouring ends of lives.
pub(super) struct Load {
    /// The ends of lives, sorted; slot `i` lies between `times[i]` and `times[i + 1]`.
    pub(super) times: Vec<u32>,
    pub(super) slots: Vec<u64>,
}

impl Load {
    pub(super) fn new<'a>(blocks: impl Iterator<Item = &'a Block> + Clone) -> Load {
        let lives = blocks.clone().flat_map(|block| &block.lives);
        let mut times: Vec<u32> = lives.flat_map(|live| [live.start, live.end]).collect();
        times.sort_unstable();
        times.dedup();
        let mut steps = vec![(0u64, 0u64); times.len()];
        for block in blocks {
            for slots in block.lives.iter().map(|live| slot_range(&times, live)) {
                steps[slots.start].0 = steps[slots.start].0.saturating_add(block.size);
                steps[slots.end].1 = steps[slots.end].1.saturating_add(block.size);
            }
        }
        let mut load = 0u64;
        let mut slots = Vec::with_capacity(times.len().saturating_sub(1));
        for &(starting, ending) in steps.iter().take(times.len().saturating_sub(1)) {
            load = load.saturating_sub(ending).saturating_add(starting);
            slots.push(load);
        }
        Load { times, slots }
    }
}

/// The slots that a life covers. Both its ends must be among the sorted `times`.
pub(super) fn slot_range(times: &[u32], live: &Range<u32>) -> Range<usize> {
    times.partition_point(|&time| time < live.start)..times.partition_point(|&time| time < live.end)
}

/// The greatest value in any range of a list.
pub(super) struct Maxima {
    /// In row `k` the greatest of the `2^k` values from each place on.
    rows: Vec<Vec<u64>>,
}

impl Maxima {
    pub(super) fn new(values: Vec<u64>) -> Maxima {
        let mut rows = vec![values];
        let mut half = 1;
        while let Some(last) = rows.last().filter(|last| last.len() > half) {
            let pairs = last.iter().zip(&last[half..]);
            rows.push(pairs.map(|(one, other)| *one.max(other)).collect());
            half *= 2;
        }
        Maxima { rows }
    }

    /// The greatest value in a range, and zero in an empty one.
    pub(super) fn of(&self, range: Range<usize>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let row = range.len().ilog2();
        let values = &self.rows[row as usize];
        values[range.start].max(values[range.end - (1 << row)])
    }
}

#[cfg(test)]
mod tests {
    use super::{Maxima, joined};

    #[test]
    fn maxima_are_those_of_a_scan() {
        let values: Vec<u64> = (0..37).map(|place: u64| place * 29 % 41).collect();
        let maxima = Maxima::new(values.clone());
        for start in 0..values.len() {
            for end in start..=values.len() {
                let scanned = values[start..end].iter().copied().max().unwrap_or(0);
                assert_eq!(maxima.of(start..end), scanned, "{start}..{end}");
            }
        }
    }

    #[test]
    fn lives_are_sorted_and_joined() {
        assert_eq!(joined(&[7..9, 1..3, 4..4, 3..5, 8..12]), [1..5, 7..12]);
    }
}
