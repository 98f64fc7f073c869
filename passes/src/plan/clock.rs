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
    /// Per execution, a row of `n_lanes`: one past the last execution of each lane that is done when it is done.
    after: Vec<usize>,
    /// Per execution: its lane.
    lane_of: Vec<usize>,
    /// Per lane: the same for its last execution.
    current: Vec<Vec<usize>>,
    /// One past the last execution of each lane that is known to be done when the last noted one starts.
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
        Self { lanes, compute, n_lanes, after: Vec::new(), lane_of: Vec::new(), current, done: vec![0; n_lanes] }
    }

    /// The lane of an instruction.
    pub(crate) fn lane(&self, draft: usize) -> usize {
        self.lanes[draft]
    }

    /// Takes note of the next execution, number `n` in program order, with what it depends on, ascending; gives the
    /// dependencies that no other one implies.
    pub(crate) fn step(&mut self, n: usize, lane: usize, deps: &[usize]) -> Vec<usize> {
        self.done.copy_from_slice(&self.current[lane]);
        let mut waits = Vec::new();
        for &dep in deps.iter().rev() {
            if self.lane_of[dep] != lane && self.done[self.lane_of[dep]] <= dep {
                waits.push(dep);
                let after = &self.after[dep * self.n_lanes..][..self.n_lanes];
                for (mine, theirs) in self.done.iter_mut().zip(after) {
                    *mine = (*mine).max(*theirs);
                }
            }
        }
        waits.reverse();
        self.lane_of.push(lane);
        self.current[lane].copy_from_slice(&self.done);
        self.current[lane][lane] = n + 1;
        self.after.extend_from_slice(&self.current[lane]);
        waits
    }
}
