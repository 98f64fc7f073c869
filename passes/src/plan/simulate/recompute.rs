//! How much of the recomputation is hidden: what runs while the call that needs it still waits for something else.

use super::RecomputeTime;
use super::durations::Durations;
use super::engine::{Done, Run, call};
use super::rank::{Instance, instance};
use std::collections::BTreeMap;
use trainc_ir::id::Id;
use trainc_ir::plan::RankId;

/// The call that needs a recomputation is the next call of another phase on its stream, or, on a stream that has none,
/// the first instruction of another stream that waits for its event. What that call waits for besides recomputation is
/// there at some time; recomputation before that time is hidden, and after it exposed. By rank.
pub(super) fn recompute_times(run: &Run<'_>, durations: &Durations<'_>) -> Vec<RecomputeTime> {
    let mut times = Vec::new();
    for (rank, streams) in run.done.iter().enumerate() {
        let mut sum = RecomputeTime::default();
        let is_recompute =
            |done: &Done<'_>| call(done.instr, done.trip).is_some_and(|(of, _)| durations.is_recompute(of));
        let mut recorded: BTreeMap<Instance, u64> = BTreeMap::new();
        let mut waiting: BTreeMap<Instance, (usize, usize)> = BTreeMap::new();
        for (s, stream) in streams.iter().enumerate() {
            for (i, done) in stream.iter().enumerate() {
                for event in done.instr.waits.iter().filter_map(|event| instance(event, done.trip)) {
                    let first = waiting.entry(event).or_insert((s, i));
                    if streams[first.0][first.1].start_ps > done.start_ps {
                        *first = (s, i);
                    }
                }
                let event = done.instr.record.as_ref().and_then(|event| instance(event, done.trip));
                if let Some(event) = event.filter(|_| !is_recompute(done)) {
                    recorded.insert(event, done.end_ps);
                }
            }
        }
        let arrival = |done: &Done<'_>| {
            let waits = done.instr.waits.iter().filter_map(|event| instance(event, done.trip));
            waits.filter_map(|event| recorded.get(&event)).copied().max().unwrap_or(0)
        };
        for stream in streams {
            let mut needed_at = None;
            for done in stream.iter().rev() {
                let Some((of, _)) = call(done.instr, done.trip) else { continue };
                if !durations.is_recompute(of) {
                    needed_at = Some(arrival(done));
                    continue;
                }
                let event = done.instr.record.as_ref().and_then(|event| instance(event, done.trip));
                let beside = event.and_then(|event| waiting.get(&event)).map(|&(s, i)| {
                    let before = i.checked_sub(1).map_or(0, |before| streams[s][before].end_ps);
                    arrival(&streams[s][i]).max(before)
                });
                let ready = needed_at.or(beside).unwrap_or(0);
                let total = durations.call(RankId::from_index(rank), of).unwrap_or(0);
                let exposed = done.end_ps.saturating_sub(ready.max(done.start_ps)).min(total);
                sum.add(RecomputeTime { total_ps: total, hidden_ps: total - exposed, exposed_ps: exposed });
            }
        }
        times.push(sum);
    }
    times
}
