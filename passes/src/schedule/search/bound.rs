//! A bound from below on the time of every order that begins with a given one.
//!
//! On each rank: for the works whose results have a way of at least `t` behind them, no end comes before the earliest of them
//! can begin, plus all their times, plus `t`.

use super::Unequal;
use super::flow::{Done, Flow};
use crate::schedule::WorkKind;

/// The works of one kind and stage that are left are alike for the bound.
#[derive(Clone, Copy, Debug)]
struct Group {
    kind: WorkKind,
    stage: usize,
    /// The least time that its result has before it.
    tail: u64,
}

/// The ways behind all works.
pub(super) struct Tails {
    /// The groups of each rank, the longest tail first.
    groups: Vec<Vec<Group>>,
}

impl Tails {
    /// The ways of a problem.
    pub(super) fn new(problem: &Unequal) -> Self {
        let flow = Flow::new(problem);
        let n_stages = problem.rank_of.len();
        let least = |stage| least_backward(&flow, stage);
        // From the end of the input gradients of a stage to the end of the step, and from the end of its forward.
        let mut up = vec![0u64; n_stages];
        for stage in 0..n_stages {
            let weights = weights_behind(&flow, stage);
            let further = stage.checked_sub(1).map_or(0, |below| {
                let way = flow.hand_over[below].backward_ps.saturating_add(least(below));
                way.saturating_add(up[below])
            });
            up[stage] = further.max(weights);
        }
        let mut down = vec![0u64; n_stages];
        for stage in (0..n_stages).rev() {
            down[stage] = match flow.hand_over.get(stage) {
                Some(hand_over) => {
                    let next = hand_over.forward_ps.saturating_add(flow.cost(stage + 1).forward_ps);
                    next.saturating_add(down[stage + 1])
                }
                None => least(stage).saturating_add(flow.cost(stage).recompute_ps).saturating_add(up[stage]),
            };
        }
        let group = |stage: usize| {
            [
                Group { kind: WorkKind::Forward, stage, tail: down[stage] },
                Group { kind: WorkKind::InputGrad, stage, tail: up[stage] },
                Group { kind: WorkKind::WeightGrad, stage, tail: 0 },
            ]
        };
        let groups = |stages: &Vec<usize>| {
            let mut groups: Vec<Group> = stages.iter().flat_map(|&stage| group(stage)).collect();
            groups.sort_by_key(|group| std::cmp::Reverse(group.tail));
            groups
        };
        Self { groups: flow.stages_of.iter().map(groups).collect() }
    }

    /// No order that begins like this one is done before.
    pub(super) fn bound(&self, flow: &Flow) -> u64 {
        let heads = Heads::new(flow);
        let busy = flow.free.iter().copied().max().unwrap_or(0);
        self.groups.iter().map(|groups| Self::bound_of(flow, &heads, groups)).fold(busy, u64::max)
    }

    /// How late all ranks are together, for orders with equal bounds: the sum of what each rank alone makes of the bound.
    pub(super) fn lateness(&self, flow: &Flow) -> u64 {
        let heads = Heads::new(flow);
        let of_rank = |groups: &Vec<Group>| Self::bound_of(flow, &heads, groups);
        self.groups.iter().map(of_rank).fold(0, u64::saturating_add)
    }

    /// The bound that the works of one rank give.
    fn bound_of(flow: &Flow, heads: &Heads, groups: &[Group]) -> u64 {
        let (mut head, mut time, mut bound) = (u64::MAX, 0u64, 0u64);
        for group in groups {
            let (number, each) = left(flow, group);
            if number == 0 {
                continue;
            }
            head = head.min(heads.of(group));
            time = time.saturating_add(number.saturating_mul(each));
            bound = bound.max(head.saturating_add(time).saturating_add(group.tail));
        }
        bound
    }
}

/// How many works of a group are left, and the least time of each.
///
/// A backward counts as two halves: the time that passes at least until its gradient is sent, and the rest.
fn left(flow: &Flow, group: &Group) -> (u64, u64) {
    let Done { forwards, backwards, weights } = flow.done[group.stage];
    let all = flow.problem.micro_batches;
    let cost = flow.cost(group.stage);
    match group.kind {
        WorkKind::Forward => (all - forwards, cost.forward_ps),
        WorkKind::Backward | WorkKind::InputGrad => {
            (all - backwards, least_backward(flow, group.stage).saturating_add(cost.recompute_ps))
        }
        WorkKind::WeightGrad => (all - weights, weights_behind(flow, group.stage)),
    }
}

/// The least time of a stage between the arrival of a gradient and its own being sent.
fn least_backward(flow: &Flow, stage: usize) -> u64 {
    let cost = flow.cost(stage);
    if !flow.problem.split {
        cost.backward_ps
    } else if flow.may_be_whole(stage) {
        cost.input_grad_ps.min(cost.backward_ps)
    } else {
        cost.input_grad_ps
    }
}

/// The least time that a stage works for a micro-batch after its gradient is sent, or could be.
fn weights_behind(flow: &Flow, stage: usize) -> u64 {
    let cost = flow.cost(stage);
    if !flow.problem.split {
        0
    } else if flow.may_be_whole(stage) {
        // A whole backward takes the rest of its time before.
        let rest = cost.backward_ps.saturating_sub(least_backward(flow, stage));
        cost.weight_grad_ps.min(rest)
    } else {
        cost.weight_grad_ps
    }
}

/// When the next work of each kind and stage can begin at the earliest.
struct Heads {
    forward: Vec<u64>,
    backward: Vec<u64>,
    weight: Vec<u64>,
}

impl Heads {
    fn new(flow: &Flow) -> Self {
        let n_stages = flow.done.len();
        let free = |stage: usize| flow.free[flow.problem.rank_of[stage]];
        let mut forward = vec![0u64; n_stages];
        for stage in 0..n_stages {
            let arrives = flow.next_input(stage).unwrap_or_else(|| match stage.checked_sub(1) {
                Some(before) => {
                    let sent = forward[before].saturating_add(flow.cost(before).forward_ps);
                    sent.saturating_add(flow.hand_over[before].forward_ps)
                }
                None => 0,
            });
            forward[stage] = arrives.max(free(stage));
        }
        let mut backward = vec![0u64; n_stages];
        for stage in (0..n_stages).rev() {
            let cost = flow.cost(stage);
            let mut head = flow.next_gradient(stage).unwrap_or_else(|| {
                if stage + 1 == n_stages {
                    return 0;
                }
                let after = stage + 1;
                let least = least_backward(flow, after).saturating_add(flow.cost(after).recompute_ps);
                backward[after].saturating_add(least).saturating_add(flow.hand_over[stage].backward_ps)
            });
            // What is computed again may come before the arrival.
            head = head.saturating_sub(cost.recompute_ps);
            if flow.done[stage].forwards == flow.done[stage].backwards {
                head = head.max(forward[stage].saturating_add(cost.forward_ps));
            }
            backward[stage] = head.max(free(stage));
        }
        let weight = (0..n_stages).map(|stage| {
            if flow.done[stage].weights < flow.done[stage].backwards { free(stage) } else { backward[stage] }
        });
        Self { weight: weight.collect(), forward, backward }
    }

    fn of(&self, group: &Group) -> u64 {
        match group.kind {
            WorkKind::Forward => self.forward[group.stage],
            WorkKind::Backward | WorkKind::InputGrad => self.backward[group.stage],
            WorkKind::WeightGrad => self.weight[group.stage],
        }
    }
}
