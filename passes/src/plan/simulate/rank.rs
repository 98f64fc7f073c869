//! The state of one rank of a replay: its streams, and the calls that share its GPU.

use super::flight::{lasting, worked};
use super::{RankTimeline, SimulateError, durations};
use std::collections::BTreeMap;
use trainc_ir::id::Id;
use trainc_ir::plan::{BufferRef, CommunicatorId, EventRef, Instr, Item, Plan, Program, Rank};

/// An instance of an event.
pub(super) type Instance = (usize, i64);

/// The instance that a reference means in a trip; `None` for those that are never waited for.
pub(super) fn instance(reference: &EventRef, trip: u64) -> Option<Instance> {
    let index = reference.index.value(trip);
    (index >= 0).then_some((reference.event.index(), index))
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// Waits for so many calls or transfers of its instruction to end.
    Busy(usize),
}

/// A stream with its instructions and their trips, in order.
pub(super) struct Stream<'a> {
    pub(super) queue: Vec<(&'a Instr, u64)>,
    pub(super) at: usize,
    pub(super) state: State,
    pub(super) started: u64,
}

/// A call that runs.
pub(super) struct Active {
    pub(super) stream: usize,
    /// What is left of it, alone and undisturbed.
    pub(super) left: u64,
}

/// A rank.
pub(super) struct RankState<'a> {
    program: &'a Program,
    pub(super) communicators: &'a [CommunicatorId],
    pub(super) streams: Vec<Stream<'a>>,
    pub(super) recorded: BTreeMap<Instance, u64>,
    pub(super) calls: Vec<Active>,
    /// Transfers that it takes part in now.
    pub(super) flights: Vec<usize>,
    /// How many times as long calls take now, in thousandths.
    slow: u32,
    now: u64,
    /// Changes whenever the set of calls or their speed does, so that older ends are known to be void.
    pub(super) version: u64,
    pub(super) timeline: RankTimeline,
}

impl<'a> RankState<'a> {
    /// The rank before its first instruction; takes its instructions from those that may still be replayed.
    pub(super) fn new(plan: &'a Plan, rank: &'a Rank, n_left: &mut usize) -> Result<Self, SimulateError> {
        let missing = || SimulateError::Malformed(format!("there is no program {}", rank.program));
        let program = plan.programs.get(rank.program).ok_or_else(missing)?;
        Ok(Self {
            program,
            communicators: &rank.communicators,
            streams: streams(program, n_left)?,
            recorded: BTreeMap::new(),
            calls: Vec::new(),
            flights: Vec::new(),
            slow: 1000,
            now: 0,
            version: 0,
            timeline: RankTimeline::default(),
        })
    }

    /// The next instruction of the stream, where it can start.
    pub(super) fn next(&self, stream: usize) -> Option<&'a Instr> {
        let of = &self.streams[stream];
        let &(instr, trip) = of.queue.get(of.at).filter(|_| of.state == State::Ready)?;
        let mut waits = instr.waits.iter().filter_map(|event| instance(event, trip));
        waits.all(|event| self.recorded.contains_key(&event)).then_some(instr)
    }

    /// The trip of the instruction that a stream has come to.
    pub(super) fn trip(&self, stream: usize) -> u64 {
        let of = &self.streams[stream];
        of.queue.get(of.at).map_or(0, |(_, trip)| *trip)
    }

    /// Accounts for the time since the last change.
    pub(super) fn advance(&mut self, now: u64) {
        let passed = now - self.now;
        self.now = now;
        let n = self.calls.len() as u64;
        if n > 0 {
            self.timeline.busy_ps += passed;
        } else if !self.flights.is_empty() {
            self.timeline.exposed_transfer_ps += passed;
        }
        for call in &mut self.calls {
            call.left = call.left.saturating_sub(worked(passed, self.slow, n));
        }
    }

    /// Changes the speed of its calls, up to now accounted for; whether it did change.
    pub(super) fn slow_down(&mut self, slow: u32) -> bool {
        std::mem::replace(&mut self.slow, slow) != slow
    }

    /// When the first of its calls ends if nothing changes, and the version that this is true of.
    pub(super) fn next_end(&mut self) -> Option<(u64, u64)> {
        self.version += 1;
        let least = self.calls.iter().map(|call| call.left).min()?;
        Some((self.now.saturating_add(lasting(least, self.slow, self.calls.len() as u64)), self.version))
    }

    /// Bytes of a buffer.
    pub(super) fn bytes(&self, buffer: BufferRef) -> Result<u64, SimulateError> {
        let malformed =
            |what: &str| SimulateError::Malformed(format!("{}: {what} {}", self.program.name, buffer.buffer));
        let of = self.program.buffers.get(buffer.buffer).ok_or_else(|| malformed("there is no buffer"))?;
        durations::bytes(&of.ty).ok_or_else(|| malformed("the type is too large of buffer"))
    }
}

/// The instructions of each stream with their trips, in order.
fn streams<'a>(program: &'a Program, n_left: &mut usize) -> Result<Vec<Stream<'a>>, SimulateError> {
    let stream = |_| Stream { queue: Vec::new(), at: 0, state: State::Ready, started: 0 };
    let mut streams: Vec<Stream<'a>> = program.streams.values().map(stream).collect();
    let mut push = |instr: &'a Instr, trip: u64| {
        *n_left = n_left.checked_sub(1).ok_or(SimulateError::TooLong)?;
        let missing = || SimulateError::Malformed(format!("{}: there is no stream {}", program.name, instr.stream));
        streams.get_mut(instr.stream.index()).ok_or_else(missing)?.queue.push((instr, trip));
        Ok(())
    };
    for item in &program.body {
        match item {
            Item::Once(instr) => push(instr, 0)?,
            Item::Loop { trips, body } if !body.is_empty() => {
                for trip in 0..*trips {
                    body.iter().try_for_each(|instr| push(instr, trip))?;
                }
            }
            Item::Loop { trips: _, body: _ } => {}
        }
    }
    Ok(streams)
}
