//! Branch and bound over all orders that can be better than the best known.
//!
//! At each node the work that could be done first, over all ranks, decides: on its rank only works that begin before it would
//! be done can come next, for another one would leave it the time to come first (Giffler and Thompson). Where coming first
//! could cost memory that is needed later, or where it has another form, none of them coming next is a branch too: the rank
//! then waits for something else. Two orders that have done the same works are compared by all times that matter for the rest.

use super::bound::Tails;
use super::flow::{Done, Flow, Next};
use super::{Best, FoundBy, Unequal};
use crate::schedule::WorkKind;
use std::collections::BTreeMap;

/// Works in an order that is searched at most; the search is as deep.
const MOST_WORKS: u64 = 1000;
/// States that are remembered at most.
const MOST_STATES: usize = 100_000;

/// Improves the best order. The answer is whether there is nothing better: the search came to its end.
pub(super) fn improve(problem: &Unequal, best: &mut Best, steps: &mut u64) -> bool {
    if problem.costs.traffic.is_some() || problem.n_works() > MOST_WORKS {
        return false;
    }
    // Half of the steps are left for exchanges.
    let reserve = *steps / 2;
    let mut search =
        Exact { tails: Tails::new(problem), best, steps: *steps - reserve, seen: BTreeMap::new(), n_seen: 0 };
    let mut flow = Flow::new(problem);
    let complete = search.node(&mut flow);
    *steps = reserve + search.steps;
    complete
}

struct Exact<'a> {
    tails: Tails,
    best: &'a mut Best,
    steps: u64,
    /// By what is done, the times of orders that were searched.
    seen: BTreeMap<Vec<Done>, Vec<Vec<u64>>>,
    n_seen: usize,
}

impl Exact<'_> {
    /// Searches all orders that begin like this one; false if the steps were not enough.
    fn node(&mut self, flow: &mut Flow) -> bool {
        if flow.is_done() {
            let makespan = flow.free.iter().copied().max().unwrap_or(0);
            if makespan < self.best.makespan_ps {
                self.best.take(flow.schedule(), makespan, FoundBy::Exact);
            }
            return true;
        }
        if self.is_dominated(flow) {
            return true;
        }
        let ranks = 0..flow.free.len();
        let all = ranks.flat_map(|rank| flow.next(rank).map(move |next| (next.end, rank, next)));
        let Some((_, rank, first)) = all.min_by_key(|&(end, rank, _)| (end, rank)) else {
            // The ranks wait for each other: memory, or this branch's own demands, let nothing come next.
            return true;
        };
        let rivals = |next: &Next| next.start < first.end || next.work == first.work;
        let rivals: Vec<Next> = flow.next(rank).filter(rivals).collect();
        let mut children = Vec::with_capacity(rivals.len());
        for &next in &rivals {
            // Looking at it, comparing it and going on from it.
            let cost = 4 * flow.done.len() as u64;
            if self.steps < cost {
                return false;
            }
            self.steps -= cost;
            let undo = flow.push(next);
            let bound = self.tails.bound(flow);
            flow.pop(undo);
            children.push((bound, next));
        }
        children.sort_by_key(|&(bound, next)| (bound, next.end, next.work));
        for (bound, next) in children {
            if bound >= self.best.makespan_ps {
                break;
            }
            let undo = flow.push(next);
            let complete = self.node(flow);
            flow.pop(undo);
            if !complete {
                return false;
            }
        }
        if !Self::may_wait(flow, rank, first) {
            return true;
        }
        let waits = flow.waits[rank].len();
        flow.waits[rank].extend(rivals.iter().map(|next| (next.work.kind, next.work.stage)));
        let complete = self.steps > 0 && self.node(flow);
        self.steps = self.steps.saturating_sub(1);
        flow.waits[rank].truncate(waits);
        complete
    }

    /// Whether the work that could be done first may be put off for something that begins later.
    fn may_wait(flow: &Flow, rank: usize, first: Next) -> bool {
        let halves = matches!(first.work.kind, WorkKind::Backward | WorkKind::InputGrad);
        let other_form = halves && flow.problem.split && flow.may_be_whole(first.work.stage);
        other_form || (flow.grows(first.work) && !has_room_for_all(flow, rank))
    }

    /// Whether an order with the same works done was searched, and was nowhere later.
    fn is_dominated(&mut self, flow: &Flow) -> bool {
        if flow.waits.iter().any(|waits| !waits.is_empty()) {
            return false;
        }
        let times = flow.times();
        let same = self.seen.entry(flow.done.clone()).or_default();
        if same.iter().any(|seen| seen.iter().zip(&times).all(|(seen, time)| seen <= time)) {
            return true;
        }
        if self.n_seen < MOST_STATES {
            self.n_seen += 1;
            same.push(times);
        }
        false
    }
}

/// Whether the rank has room for everything at once.
fn has_room_for_all(flow: &Flow, rank: usize) -> bool {
    let most = |&stage: &usize| {
        let cost = flow.cost(stage);
        cost.kept_bytes.max(cost.kept_for_weights_bytes).saturating_mul(flow.problem.micro_batches)
    };
    flow.stages_of[rank].iter().map(most).fold(0, u64::saturating_add) <= flow.room[rank]
}
