//! The clock: runs all ranks as far as they come, until all is done.

use super::traffic::Stream;
use super::{Boundary, Costs};
use crate::schedule::{Schedule, Work, WorkKind};

/// When a rank is done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct End {
    /// With its work.
    pub(super) compute: u64,
    /// With its stream.
    pub(super) traffic: u64,
}

/// Not yet.
const NEVER: u64 = u64::MAX;

/// When each rank is done; nothing if they wait for each other for ever. `note` is told when each piece of work starts, what
/// is computed again before it not counted, and ends.
pub(super) fn run(schedule: &Schedule, costs: &Costs, mut note: impl FnMut(Work, (u64, u64))) -> Option<Vec<End>> {
    let n_stages = schedule.n_stages();
    let n_pairs = n_stages * schedule.micro_batches as usize;
    let hand_over = costs.hand_over(&schedule.rank_of);
    // When a stage's input, and the gradient of its output, have arrived.
    let mut input = vec![NEVER; n_pairs];
    let mut gradient = vec![NEVER; n_pairs];
    for (stage, arrived) in [(0, &mut input), (n_stages.saturating_sub(1), &mut gradient)] {
        let begin = stage * schedule.micro_batches as usize;
        arrived[begin..begin + schedule.micro_batches as usize].fill(0);
    }
    let mut channels = vec![Boundary::default(); hand_over.len()];
    let mut streams: Vec<Option<Stream>> =
        schedule.ranks.iter().map(|works| costs.traffic.as_ref().map(|traffic| Stream::new(works, traffic))).collect();
    let mut free = vec![0u64; schedule.ranks.len()];
    let mut next = vec![0usize; schedule.ranks.len()];
    let mut ready: Vec<usize> = (0..schedule.ranks.len()).rev().collect();
    let mut waiting = vec![false; schedule.ranks.len()];
    while let Some(rank) = ready.pop() {
        waiting[rank] = true;
        while let Some(&work) = schedule.ranks[rank].get(next[rank]) {
            let Work { kind, stage, micro_batch } = work;
            let pair = schedule.index(stage, micro_batch);
            let cost = &costs.stages[stage];
            let (arrived, before, time) = match kind {
                WorkKind::Forward => (input[pair], 0, cost.forward_ps),
                WorkKind::Backward => (gradient[pair], cost.recompute_ps, cost.backward_ps),
                WorkKind::InputGrad => (gradient[pair], cost.recompute_ps, cost.input_grad_ps),
                WorkKind::WeightGrad => (0, 0, cost.weight_grad_ps),
            };
            if arrived == NEVER {
                break;
            }
            let place = next[rank];
            let begin = streams[rank].as_ref().map_or(free[rank], |stream| free[rank].max(stream.ready(place)));
            let start = begin.saturating_add(before).max(arrived);
            let end = start.saturating_add(time).min(NEVER - 1);
            note(work, (start, end));
            free[rank] = end;
            next[rank] += 1;
            if let Some(stream) = &mut streams[rank] {
                stream.done(place, end);
            }
            let to = match kind {
                WorkKind::Forward if stage + 1 < n_stages => {
                    let channel = &mut channels[stage].forward_ps;
                    *channel = end.max(*channel).saturating_add(hand_over[stage].forward_ps).min(NEVER - 1);
                    input[schedule.index(stage + 1, micro_batch)] = *channel;
                    stage + 1
                }
                WorkKind::Backward | WorkKind::InputGrad if stage > 0 => {
                    let channel = &mut channels[stage - 1].backward_ps;
                    *channel = end.max(*channel).saturating_add(hand_over[stage - 1].backward_ps).min(NEVER - 1);
                    gradient[schedule.index(stage - 1, micro_batch)] = *channel;
                    stage - 1
                }
                WorkKind::Forward | WorkKind::Backward | WorkKind::InputGrad | WorkKind::WeightGrad => continue,
            };
            let woken = schedule.rank_of[to];
            if woken != rank && std::mem::take(&mut waiting[woken]) {
                ready.push(woken);
            }
        }
    }
    if next.iter().zip(&schedule.ranks).any(|(&next, works)| next < works.len()) {
        return None;
    }
    let traffic = |rank: usize| streams[rank].as_ref().map_or(0, |stream| stream.free);
    Some(free.iter().enumerate().map(|(rank, &compute)| End { compute, traffic: traffic(rank) }).collect())
}
