//! In how many turns the micro-batches of a rank take slots.
//!
//! Where a rank holds a steady number of micro-batches, each buffer has as many slots as it must have. Where the number goes
//! up and down, as with several stages or a divided backward, what holds few micro-batches lends its bytes to what holds
//! many. That works best if all buffers take turns alike and return to a turn at the same place of the order, and best of
//! all if every micro-batch has a turn of its own, which takes room in the plan: so several numbers are tried.

use super::live::{Layout, PACKING_STEPS, layout};
use crate::plan::program::order;
use crate::plan::segments::Pool;
use crate::plan::stage::RankDraft;

/// The most turns that are taken for a better layout alone.
const MOST_TURNS: u64 = 64;

/// What is spent at most on the ranks of a plan together, where a layout is far from its bound.
const MORE_STEPS: u64 = 2_400_000_000;

/// What is spent at most on one of them.
const MOST_STEPS: u64 = 300_000_000;

/// Bytes that are not worth an effort.
const SMALL_LOSS: u64 = 4 << 10;

/// Gives the draft the slots that make the smallest arena; the layout with them. A rank with one stage and an undivided
/// backward keeps the slots that it has, and is left to be laid out.
pub(crate) fn settle(draft: &mut RankDraft, pool: &Pool, micro_batches: u64, n_ranks: usize) -> Option<Layout> {
    if draft.tasks.len() <= 2 {
        return None;
    }
    let lay_out = |draft: &RankDraft, steps| layout(draft, &order(draft), pool, steps);
    let is_within =
        |layout: &Layout, bound: u64, part: u64| layout.arena_bytes <= bound + (bound / part).max(SMALL_LOSS);
    let turns = turns(draft, micro_batches);
    let first = lay_out(draft, PACKING_STEPS / 4);
    let mut bound = first.lower_bound;
    let mut tried = vec![(std::mem::take(draft), first)];
    for turns in turns {
        if tried.iter().any(|(_, layout)| is_within(layout, bound, 100)) {
            break;
        }
        let mut other = tried[0].0.clone();
        other.take_turns(turns);
        let found = lay_out(&other, PACKING_STEPS / 4);
        bound = bound.min(found.lower_bound);
        tried.push((other, found));
    }
    tried.sort_by_key(|(_, layout)| layout.arena_bytes);
    // More effort where it may pay, the most promising first.
    for i in 0..tried.len() {
        if is_within(&tried[0].1, bound, 60) {
            break;
        }
        let found = lay_out(&tried[i].0, MOST_STEPS.min(MORE_STEPS / n_ranks.max(1) as u64));
        if found.arena_bytes < tried[0].1.arena_bytes {
            tried[i].1 = found;
            tried.swap(0, i);
        }
    }
    let (best, layout) = tried.swap_remove(0);
    *draft = best;
    Some(layout)
}

/// The numbers to try: as many as the buffer with the most slots needs, rounded up to whole rounds of the schedule; twice
/// and four times that; all.
fn turns(draft: &RankDraft, micro_batches: u64) -> Vec<u64> {
    let most = draft.buffers.values().map(|buffer| buffer.slots).max().unwrap_or(1);
    let longest = draft.runs.iter().max_by_key(|run| run.body.len() as u64 * (run.trips - 1));
    let round = longest.map_or(1, |run| run.stride).max(1);
    let rounds = most.next_multiple_of(round);
    let mut turns: Vec<u64> =
        [1, 2, 4].map(|times| times * rounds).into_iter().filter(|&n| n < micro_batches).collect();
    if micro_batches <= MOST_TURNS.max(most) {
        turns.push(micro_batches);
    }
    turns
}
