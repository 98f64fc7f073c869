//! Greedy rules: the work that can be done first, or one of those that compete with it, comes next.

use super::fixed::least_bytes;
use super::flow::{Flow, Next};
use super::{Best, FoundBy, Unequal};
use crate::schedule::timing;
use crate::schedule::{Work, WorkKind};
use std::cmp::Reverse;

/// Which of the competing works comes next.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// A backward, a forward of a late stage, weight gradients last.
    Backward,
    /// A backward, weight gradients, a forward.
    Free,
    /// A forward of an early stage, a backward, weight gradients last.
    Forward,
    /// What can be done first.
    First,
}

/// Tries all rules, with all of the memory and with room for fewer micro-batches.
pub(super) fn improve(problem: &Unequal, best: &mut Best, steps: &mut u64, lower_bound_ps: u64) {
    let n_ranks = problem.room_bytes.len();
    let most = (4 * n_ranks as u64).min(problem.micro_batches);
    // At each of the works all stages are looked at.
    let each = problem.n_works().saturating_mul(problem.rank_of.len() as u64);
    let budget = *steps / 2;
    let mut left = budget;
    let rooms = std::iter::once(None).chain((1..=most).map(Some));
    for room in rooms {
        for extra in [0, 1, 2] {
            if room.is_none() && extra > 0 {
                continue;
            }
            for rule in [Rule::Backward, Rule::Free, Rule::Forward, Rule::First] {
                if left < each {
                    *steps -= budget - left;
                    return;
                }
                left -= each;
                let mut flow = Flow::new(problem);
                if let Some(room) = room {
                    for rank in 0..n_ranks {
                        let ahead = room + extra * (n_ranks - 1 - rank) as u64;
                        let bytes = least_bytes(problem, rank).saturating_mul(ahead);
                        flow.room[rank] = flow.room[rank].min(bytes);
                    }
                }
                if !build(&mut flow, rule) {
                    continue;
                }
                let schedule = flow.schedule();
                if let Some(makespan) = timing::makespan(&schedule, &problem.costs) {
                    best.take(schedule, makespan, FoundBy::List);
                }
                if best.makespan_ps == lower_bound_ps {
                    *steps -= budget - left;
                    return;
                }
            }
        }
    }
    *steps -= budget - left;
}

/// Builds an order; false if memory lets none of the ranks go on.
fn build(flow: &mut Flow, rule: Rule) -> bool {
    while !flow.is_done() {
        let Some(next) = competing(flow).into_iter().min_by_key(|next| priority(rule, next)) else {
            return false;
        };
        flow.push(next);
    }
    true
}

/// The work that could be done first, and those that compete with it on its rank; nothing if memory lets none of the ranks
/// go on.
pub(super) fn competing(flow: &Flow) -> Vec<Next> {
    let works = (0..flow.free.len()).flat_map(|rank| {
        flow.next(rank).filter(move |next| leaves_room(flow, rank, next.work)).map(move |next| (next.end, rank, next))
    });
    let Some((end, rank, first)) = works.min_by_key(|&(end, rank, _)| (end, rank)) else {
        return Vec::new();
    };
    let rivals = flow
        .next(rank)
        .filter(|next| next.work == first.work || (next.start < end && leaves_room(flow, rank, next.work)));
    rivals.collect()
}

/// The least comes next.
fn priority(rule: Rule, next: &Next) -> (u64, u64, Reverse<usize>, u64) {
    let kind = match (rule, next.work.kind) {
        (Rule::Backward | Rule::Free, WorkKind::Backward | WorkKind::InputGrad) => 0,
        (Rule::Free, WorkKind::WeightGrad) | (Rule::Backward, WorkKind::Forward) => 1,
        (Rule::Free, WorkKind::Forward) | (Rule::Backward, WorkKind::WeightGrad) => 2,
        (Rule::Forward, WorkKind::Forward) => 0,
        (Rule::Forward, WorkKind::Backward | WorkKind::InputGrad) => 1,
        (Rule::Forward, WorkKind::WeightGrad) => 2,
        (Rule::First, _) => next.end,
    };
    let stage = match rule {
        Rule::Forward => Reverse(usize::MAX - next.work.stage),
        Rule::Backward | Rule::Free | Rule::First => Reverse(next.work.stage),
    };
    // Where a whole backward and half of one compete, the half sends its gradient earlier.
    (kind, if matches!(rule, Rule::First) { 0 } else { next.start }, stage, next.end)
}

/// Whether the oldest micro-batch of the rank can still come to its end after the work, whatever else is kept.
fn leaves_room(flow: &Flow, rank: usize, work: Work) -> bool {
    if !flow.grows(work) {
        return true;
    }
    let stages = &flow.stages_of[rank];
    let oldest = stages.iter().map(|&stage| flow.done[stage].weights).min().unwrap_or(0);
    let (more, less) = flow.cost(work.stage).changes(work.kind);
    let mut bytes = flow.bytes[rank].saturating_add(more) - less;
    for &stage in stages {
        let (cost, done) = (flow.cost(stage), flow.done[stage]);
        let this = work.stage == stage && work.micro_batch == oldest;
        let most = cost.kept_bytes.max(cost.kept_for_weights_bytes);
        let forward = done.forwards > oldest || (this && work.kind == WorkKind::Forward);
        let backward = done.backwards > oldest || (this && work.kind == WorkKind::InputGrad);
        bytes = bytes.saturating_add(match (forward, backward) {
            (_, true) => 0,
            (true, false) => most - cost.kept_bytes,
            (false, false) => most,
        });
    }
    bytes <= flow.room[rank]
}
