//! The critical path: what each part of the step waited for, from its end back to its start.

use super::engine::{Done, Run, call};
use super::rank::{Instance, instance};
use super::{CriticalStep, Span, SpanKind};
use std::collections::BTreeMap;
use trainc_ir::id::Id;
use trainc_ir::plan::{CommunicatorId, RankId, StreamId};

/// Where the walk has come to.
#[derive(Clone, Copy)]
enum At {
    /// An instruction: rank, stream, position.
    Instr(usize, usize, usize),
    Flight(usize),
}

/// Everything starts when the last thing that it waits for ends, so a chain without gaps leads from the end of the step
/// to its start. Where several end at one time, the first stream's is taken.
pub(super) fn critical_path(run: &Run<'_>) -> Vec<CriticalStep> {
    let recorders = recorders(run);
    let before = flights_before(run);
    let mut path = Vec::new();
    let mut at = last(run);
    let mut n_left: usize = run.done.iter().flatten().map(Vec::len).sum::<usize>() + run.flights.len();
    while let Some(here) = at.filter(|_| n_left > 0) {
        n_left -= 1;
        let (start_ps, waiting, step) = match here {
            At::Instr(rank, stream, nth) => {
                let done = &run.done[rank][stream][nth];
                if let Some(flight) = done.flight {
                    at = Some(At::Flight(flight));
                    continue;
                }
                (done.start_ps, vec![(rank, stream, nth)], step_of(done, rank, stream))
            }
            At::Flight(id) => {
                let flight = &run.flights[id];
                let sides = flight.sides.iter().enumerate();
                let positions =
                    sides.clone().map(|(_, side)| (side.rank.index(), side.stream.index(), side.nth)).collect();
                let step = flight.sides.first().map(|side| {
                    let kind = SpanKind::Transfer { transfer: id, side: 0 };
                    let span = Span { stream: side.stream, kind, start_ps: flight.start_ps, end_ps: flight.at };
                    CriticalStep { rank: side.rank, span }
                });
                (flight.start_ps, positions, step)
            }
        };
        path.extend(step.filter(|step| step.span.end_ps > step.span.start_ps));
        at = if start_ps == 0 { None } else { before_that(run, &recorders, &before, here, &waiting, start_ps) };
    }
    path.reverse();
    path
}

fn step_of(done: &Done<'_>, rank: usize, stream: usize) -> Option<CriticalStep> {
    let (segment, micro_batch) = call(done.instr, done.trip)?;
    let kind = SpanKind::Call { segment, micro_batch };
    let stream = StreamId::from_index(stream);
    let span = Span { stream, kind, start_ps: done.start_ps, end_ps: done.end_ps };
    Some(CriticalStep { rank: RankId::from_index(rank), span })
}

/// The instruction that ends last.
fn last(run: &Run<'_>) -> Option<At> {
    for (rank, streams) in run.done.iter().enumerate() {
        for (stream, done) in streams.iter().enumerate() {
            if done.last().is_some_and(|done| done.end_ps == run.step_ps) {
                return Some(At::Instr(rank, stream, done.len() - 1));
            }
        }
    }
    None
}

/// By rank: which instruction recorded an event.
fn recorders(run: &Run<'_>) -> Vec<BTreeMap<Instance, (usize, usize)>> {
    let of_rank = |streams: &Vec<Vec<Done<'_>>>| {
        let mut recorders = BTreeMap::new();
        for (s, stream) in streams.iter().enumerate() {
            for (i, done) in stream.iter().enumerate() {
                if let Some(event) = done.instr.record.as_ref().and_then(|event| instance(event, done.trip)) {
                    recorders.entry(event).or_insert((s, i));
                }
            }
        }
        recorders
    };
    run.done.iter().map(of_rank).collect()
}

/// The transfer that each communicator carried before each transfer.
fn flights_before(run: &Run<'_>) -> Vec<Option<usize>> {
    let mut last: BTreeMap<CommunicatorId, usize> = BTreeMap::new();
    let flights = run.flights.iter().enumerate();
    flights.map(|(id, flight)| flight.communicator.and_then(|communicator| last.insert(communicator, id))).collect()
}

/// What ended when this could start.
fn before_that(
    run: &Run<'_>,
    recorders: &[BTreeMap<Instance, (usize, usize)>],
    before: &[Option<usize>],
    here: At,
    waiting: &[(usize, usize, usize)],
    start_ps: u64,
) -> Option<At> {
    for &(rank, stream, nth) in waiting {
        let done = &run.done[rank][stream][nth];
        let previous = nth.checked_sub(1).map(|previous| (stream, previous));
        let events = done.instr.waits.iter().filter_map(|event| instance(event, done.trip));
        let recorded = events.filter_map(|event| recorders[rank].get(&event).copied());
        let mut candidates = previous.into_iter().chain(recorded);
        if let Some((s, i)) = candidates.find(|&(s, i)| run.done[rank][s][i].end_ps == start_ps) {
            return Some(At::Instr(rank, s, i));
        }
    }
    let At::Flight(id) = here else { return None };
    before[id].filter(|&previous| run.flights[previous].at == start_ps).map(At::Flight)
}
