//! The bytes of a rank: which value lies where, and who touched what last.

use super::clock::{Clock, Epoch};
use crate::plan::BufferId;
use std::collections::BTreeMap;

/// Bytes of an arena from `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Interval {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Interval {
    pub(super) fn new(start: u64, bytes: u64) -> Self {
        Self { start, end: start + bytes }
    }

    pub(super) fn is_empty(self) -> bool {
        self.start == self.end
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end && !self.is_empty() && !other.is_empty()
    }
}

/// A slot of a buffer: the name under which bytes are written and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Slot {
    pub(super) buffer: BufferId,
    pub(super) number: u32,
}

/// Joins intervals that overlap or touch; leaves out empty ones.
pub(super) fn merged(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.retain(|interval| !interval.is_empty());
    intervals.sort_unstable();
    let mut merged: Vec<Interval> = Vec::new();
    for interval in intervals {
        match merged.last_mut() {
            Some(last) if last.end >= interval.start => last.end = last.end.max(interval.end),
            Some(_) | None => merged.push(interval),
        }
    }
    merged
}

/// Why a read finds no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// Nothing that is still there was written to these bytes.
    Undefined,
    /// The bytes hold other values, or parts of them; this is one.
    Other(Interval),
}

/// Values by the bytes they lie in. A write ends the life of every value that it touches.
#[derive(Clone, Debug)]
pub(super) struct Contents<T> {
    cells: BTreeMap<u64, (u64, T)>,
}

impl<T: Copy> Contents<T> {
    pub(super) fn new() -> Self {
        Self { cells: BTreeMap::new() }
    }

    /// The value that lies in exactly these bytes.
    pub(super) fn read(&self, interval: Interval) -> Result<T, Missing> {
        if let Some(&(end, value)) = self.cells.get(&interval.start)
            && end == interval.end
        {
            return Ok(value);
        }
        let found = self.last_before(interval.end).filter(|found| found.end > interval.start);
        Err(found.map_or(Missing::Undefined, Missing::Other))
    }

    pub(super) fn write(&mut self, interval: Interval, value: T) {
        match self.cells.get_mut(&interval.start) {
            Some(cell) if cell.0 == interval.end => cell.1 = value,
            Some(_) | None => {
                self.erase(interval);
                self.cells.insert(interval.start, (interval.end, value));
            }
        }
    }

    pub(super) fn erase(&mut self, interval: Interval) {
        while let Some(found) = self.last_before(interval.end).filter(|found| found.end > interval.start) {
            self.cells.remove(&found.start);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Interval, T)> + '_ {
        self.cells.iter().map(|(&start, &(end, value))| (Interval { start, end }, value))
    }

    fn last_before(&self, end: u64) -> Option<Interval> {
        self.cells.range(..end).next_back().map(|(&start, &(end, _))| Interval { start, end })
    }
}

/// The last accesses of each byte of an arena. What an instruction does among its own bytes is not judged here.
#[derive(Debug, Default)]
pub(super) struct Accesses {
    cells: BTreeMap<u64, Cell>,
}

#[derive(Clone, Debug)]
struct Cell {
    end: u64,
    write: Option<Epoch>,
    /// Since the last write; the last one of each stream.
    reads: Vec<Epoch>,
}

/// Whether an access noted earlier comes before one of the instruction `epoch`: kernels of one stream, and of one
/// instruction, run in order.
fn precedes(access: Epoch, epoch: Epoch, after: &Clock) -> bool {
    access.stream == epoch.stream || after.covers(access)
}

impl Accesses {
    /// Notes a read, and gives a write that is not ordered before it.
    pub(super) fn read(&mut self, interval: Interval, epoch: Epoch, after: &Clock) -> Option<Epoch> {
        if interval.is_empty() {
            return None;
        }
        self.split(interval);
        let mut race = None;
        let mut from = interval.start;
        for (&start, cell) in self.cells.range_mut(interval.start..interval.end) {
            if let Some(write) = cell.write.filter(|&write| !precedes(write, epoch, after)) {
                race = race.or(Some(write));
            }
            match cell.reads.iter_mut().find(|read| read.stream == epoch.stream) {
                Some(read) => *read = epoch,
                None => cell.reads.push(epoch),
            }
            debug_assert_eq!(from, start, "the interval was filled");
            from = cell.end;
        }
        race
    }

    /// Notes a write, and gives an access that is not ordered before it.
    pub(super) fn write(&mut self, interval: Interval, epoch: Epoch, after: &Clock) -> Option<Epoch> {
        if interval.is_empty() {
            return None;
        }
        self.split(interval);
        let mut race = None;
        let mut starts = Vec::new();
        for (&start, cell) in self.cells.range(interval.start..interval.end) {
            let before = cell.write.iter().chain(&cell.reads).find(|&&access| !precedes(access, epoch, after));
            race = race.or(before.copied());
            starts.push(start);
        }
        for start in starts {
            self.cells.remove(&start);
        }
        self.cells.insert(interval.start, Cell { end: interval.end, write: Some(epoch), reads: Vec::new() });
        race
    }

    /// Makes cells begin and end where the interval does, and fills its gaps with cells that nothing touched.
    fn split(&mut self, interval: Interval) {
        for at in [interval.start, interval.end] {
            let Some((_, cell)) = self.cells.range_mut(..at).next_back() else { continue };
            if cell.end > at {
                let tail = cell.clone();
                cell.end = at;
                self.cells.insert(at, tail);
            }
        }
        let mut gaps = Vec::new();
        let mut from = interval.start;
        for (&start, cell) in self.cells.range(interval.start..interval.end) {
            if from < start {
                gaps.push((from, start));
            }
            from = cell.end;
        }
        if from < interval.end {
            gaps.push((from, interval.end));
        }
        for (start, end) in gaps {
            self.cells.insert(start, Cell { end, write: None, reads: Vec::new() });
        }
    }
}
