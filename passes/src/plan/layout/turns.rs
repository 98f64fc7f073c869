//! In how many turns the micro-batches of a rank take slots.
//!
//! Where a rank holds a steady number of micro-batches, each buffer has as many slots as it must have. Where the number goes
//! up and down, as with several stages or a divided backward, what holds few micro-batches lends its bytes to what holds
//! many. That works best if all buffers take turns alike and return to a turn at the same place of the order, and best of
//! all if every micro-batch has a turn of its own, which takes room in the plan: so several numbers are tried.

use super::live::{Layout, layout};
use crate::plan::program::order;
use crate::plan::segments::Pool;
use crate::plan::stage::RankDraft;

/// The most turns that are taken for a better layout alone.
const MOST_TURNS: u64 = 64;

/// The draft with the slots that give the smallest arena, and its layout. A rank with one stage and an undivided backward
/// keeps the slots that it has.
pub(crate) fn settle(draft: RankDraft, pool: &Pool, micro_batches: u64) -> (RankDraft, Layout) {
    let first = layout(&draft, &order(&draft), pool);
    let turns = if draft.tasks.len() > 2 { turns(&draft, micro_batches) } else { Vec::new() };
    let mut least_bound = first.lower_bound;
    let mut best = (draft, first);
    for turns in turns {
        // One percent above the bound is good enough.
        if best.1.arena_bytes <= least_bound + least_bound / 100 {
            break;
        }
        let mut other = best.0.clone();
        other.take_turns(turns);
        let found = layout(&other, &order(&other), pool);
        least_bound = least_bound.min(found.lower_bound);
        if found.arena_bytes < best.1.arena_bytes {
            best = (other, found);
        }
    }
    best
}

/// The numbers to try: as many as the buffer with the most slots needs, rounded up to whole rounds of the schedule; twice
/// that; all.
fn turns(draft: &RankDraft, micro_batches: u64) -> Vec<u64> {
    let most = draft.buffers.values().map(|buffer| buffer.slots).max().unwrap_or(1);
    let longest = draft.runs.iter().max_by_key(|run| run.body.len() as u64 * (run.trips - 1));
    let round = longest.map_or(1, |run| run.stride).max(1);
    let rounds = most.next_multiple_of(round);
    let mut turns: Vec<u64> = [rounds, 2 * rounds].into_iter().filter(|&n| n < micro_batches).collect();
    if micro_batches <= MOST_TURNS.max(most) {
        turns.push(micro_batches);
    }
    turns
}
