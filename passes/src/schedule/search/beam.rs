//! Builds many orders side by side, work by work, and keeps those with the least bounds.

use super::bound::Tails;
use super::flow::{Flow, Next};
use super::list::competing;
use super::{Best, FoundBy, Unequal};

/// Orders that are kept at most.
const WIDEST: u64 = 256;
/// Fewer are not worth it.
const NARROWEST: u64 = 4;

/// Improves the best order, with a third of the steps that are left at most.
pub(super) fn improve(problem: &Unequal, best: &mut Best, steps: &mut u64) {
    if problem.costs.traffic.is_some() {
        return;
    }
    let n_works = problem.n_works() * if problem.split { 3 } else { 2 } / 2;
    let n_stages = problem.rank_of.len() as u64;
    // Each order is looked at from all sides, continued in a few ways, and copied.
    let each = 4 * n_stages + n_works / 4;
    let width = (*steps / 3 / n_works.saturating_mul(each).max(1)).min(WIDEST);
    if width < NARROWEST {
        return;
    }
    *steps -= width * n_works * each;
    let tails = Tails::new(problem);
    let mut beam = vec![Flow::new(problem)];
    while !beam.is_empty() {
        // Bound, how late the ranks are, which order, and with what it goes on.
        let mut children: Vec<(u64, u64, usize, Next)> = Vec::new();
        for (i, flow) in beam.iter_mut().enumerate() {
            for next in competing(flow) {
                let undo = flow.push(next);
                let (bound, late) = (tails.bound(flow), tails.lateness(flow));
                flow.pop(undo);
                if bound < best.makespan_ps {
                    children.push((bound, late, i, next));
                }
            }
        }
        children.sort_by_key(|&(bound, late, i, next)| (bound, late, i, next.work));
        let mut wider: Vec<Flow> = Vec::new();
        for (_, _, i, next) in children {
            if wider.len() as u64 == width {
                break;
            }
            let mut flow = beam[i].clone();
            flow.push(next);
            let times = flow.times();
            if wider.iter().rev().take(16).any(|other| other.done == flow.done && other.times() == times) {
                continue;
            }
            if flow.is_done() {
                let makespan = flow.free.iter().copied().max().unwrap_or(0);
                best.take(flow.schedule(), makespan, FoundBy::Beam);
            } else {
                wider.push(flow);
            }
        }
        beam = wider;
    }
}
