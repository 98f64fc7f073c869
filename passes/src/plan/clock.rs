//! Vector clocks over the streams of one rank: what is known to be done when an execution starts.

use super::program::Ordered;
use super::stage::Lane;
use std::collections::{BTreeMap, BTreeSet};

/// The clocks of executions, taken note of in program order.
pub(crate) struct Clocks {
    /// Per instruction: its lane.
    lanes: Vec<usize>,
    /// The lane of the compute stream.
    pub(crate) compute: usize,
    /// How many lanes there are.
    pub(crate) n_lanes: usize,
    /// Per execution: one past the last execution of each lane that is done when it is done.
    after: Vec<Vec<usize>>,
    /// Per execution: its lane.
    lane_of: Vec<usize>,
    current: Vec<Vec<usize>>,
}

/// What an execution waits for, and what is done when it starts.
pub(crate) struct Start {
    /// The dependencies that no other one implies.
    pub(crate) waits: Vec<usize>,
    /// One past the last execution of each lane that is known to be done.
    pub(crate) done: Vec<usize>,
}

impl Clocks {
    pub(crate) fn new(ordered: &Ordered<'_>) -> Self {
        let names: BTreeSet<&Lane> = ordered.drafts.iter().map(|d| &d.lane).collect();
        let index: BTreeMap<&Lane, usize> = names.iter().enumerate().map(|(i, &lane)| (lane, i)).collect();
        let lanes = ordered.drafts.iter().map(|d| index[&d.lane]).collect();
        let n_lanes = names.len();
        let compute = index.get(&Lane::Compute).copied().unwrap_or(n_lanes);
        let current = vec![vec![0; n_lanes]; n_lanes];
        Self { lanes, compute, n_lanes, after: Vec::new(), lane_of: Vec::new(), current }
    }

    /// The lane of an instruction.
    pub(crate) fn lane(&self, draft: usize) -> usize {
        self.lanes[draft]
    }

    /// Takes note of the next execution, number `n` in program order, with what it depends on.
    pub(crate) fn step(&mut self, n: usize, lane: usize, deps: &BTreeSet<usize>) -> Start {
        let mut done = self.current[lane].clone();
        let mut waits = Vec::new();
        for &dep in deps.iter().rev() {
            if self.lane_of[dep] != lane && done[self.lane_of[dep]] <= dep {
                waits.push(dep);
                for (mine, theirs) in done.iter_mut().zip(&self.after[dep]) {
                    *mine = (*mine).max(*theirs);
                }
            }
        }
        waits.reverse();
        let mut after = done.clone();
        after[lane] = n + 1;
        self.lane_of.push(lane);
        self.after.push(after.clone());
        self.current[lane] = after;
        Start { waits, done }
    }
}
