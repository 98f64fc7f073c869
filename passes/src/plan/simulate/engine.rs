//! The discrete-event model: streams, events, communicators, and what shares a GPU.

use super::durations::Durations;
use super::flight::Flight;
use super::rank::{Active, RankState, State, instance};
use super::{MAX_INSTRUCTIONS, RankTimeline, Side, SimulateError, Span, SpanKind};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use trainc_ir::TransferKind;
use trainc_ir::id::{Id, Table};
use trainc_ir::plan::{Action, BufferRef, CommunicatorId, Instr, Plan, PortId, RankId, SegmentId, StreamId};

/// An instruction of one trip, and what became of it.
pub(super) struct Done<'a> {
    pub(super) instr: &'a Instr,
    pub(super) trip: u64,
    pub(super) start_ps: u64,
    pub(super) end_ps: u64,
    /// The transfer that it ended with.
    pub(super) flight: Option<usize>,
}

/// What a replay gives.
pub(super) struct Run<'a> {
    pub(super) step_ps: u64,
    pub(super) ranks: Table<RankId, RankTimeline>,
    /// In the order in which they started.
    pub(super) flights: Vec<Flight>,
    /// By rank and stream, in order.
    pub(super) done: Vec<Vec<Vec<Done<'a>>>>,
}

/// What one side brings to a communicator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Offer {
    Send,
    Recv,
    AllReduce,
    Broadcast(u32),
}

struct Post {
    side: Side,
    offer: Offer,
    bytes: u64,
}

#[derive(Default)]
struct Communicator {
    /// Posts of each member, in order.
    posts: Vec<VecDeque<Post>>,
    busy: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Calls {
        rank: usize,
        version: u64,
    },
    /// A group of nothing.
    Nothing {
        rank: usize,
        stream: usize,
    },
    Flight {
        flight: usize,
        version: u64,
    },
}

struct Engine<'a, 'd> {
    durations: &'d Durations<'a>,
    ranks: Vec<RankState<'a>>,
    communicators: Vec<Communicator>,
    flights: Vec<Flight>,
    ends: BinaryHeap<Reverse<(u64, End)>>,
    done: Vec<Vec<Vec<Done<'a>>>>,
}

/// Replays all programs.
pub(super) fn run<'a>(plan: &'a Plan, durations: &Durations<'a>) -> Result<Run<'a>, SimulateError> {
    let mut engine = Engine::new(plan, durations)?;
    let mut now = 0;
    for rank in 0..engine.ranks.len() {
        engine.start_all(rank, now)?;
    }
    while let Some(Reverse((time, end))) = engine.ends.pop() {
        if engine.is_void(end) {
            continue;
        }
        now = time;
        engine.finish(now, end)?;
    }
    let mut stuck = Vec::new();
    for (r, rank) in engine.ranks.iter_mut().enumerate() {
        rank.advance(now);
        for (s, stream) in rank.streams.iter().enumerate() {
            if stream.at < stream.queue.len() {
                stuck.push((RankId::from_index(r), StreamId::from_index(s)));
            }
        }
    }
    if !stuck.is_empty() {
        return Err(SimulateError::Deadlock(stuck));
    }
    let timeline = |mut rank: RankState<'a>| {
        rank.timeline.idle_ps = now - rank.timeline.busy_ps;
        rank.timeline.spans.sort_by_key(|span| (span.start_ps, span.stream, span.end_ps));
        rank.timeline
    };
    let ranks = engine.ranks.into_iter().map(timeline).collect();
    Ok(Run { step_ps: now, ranks, flights: engine.flights, done: engine.done })
}

impl<'a, 'd> Engine<'a, 'd> {
    fn new(plan: &'a Plan, durations: &'d Durations<'a>) -> Result<Self, SimulateError> {
        let mut n_left = MAX_INSTRUCTIONS;
        let ranks = plan.ranks.values().map(|rank| RankState::new(plan, rank, &mut n_left));
        let ranks = ranks.collect::<Result<Vec<_>, _>>()?;
        let done = ranks.iter().map(|rank| rank.streams.iter().map(|_| Vec::new()).collect()).collect();
        let communicator = |members: &Vec<RankId>| {
            let posts = members.iter().map(|_| VecDeque::new()).collect();
            Communicator { posts, busy: false }
        };
        let communicators = plan.communicators.values().map(communicator).collect();
        Ok(Self { durations, ranks, communicators, flights: Vec::new(), ends: BinaryHeap::new(), done })
    }

    /// Starts every instruction of the rank that can start.
    fn start_all(&mut self, rank: usize, now: u64) -> Result<(), SimulateError> {
        for stream in 0..self.ranks[rank].streams.len() {
            if let Some(instr) = self.ranks[rank].next(stream) {
                self.ranks[rank].streams[stream].started = now;
                let n = self.start(rank, stream, &instr.action, now)?;
                if n == 0 {
                    self.ends.push(Reverse((now, End::Nothing { rank, stream })));
                }
                self.ranks[rank].streams[stream].state = State::Busy(n.max(1));
            }
        }
        Ok(())
    }

    /// Starts an action; how many ends it waits for.
    fn start(&mut self, rank: usize, stream: usize, action: &'a Action, now: u64) -> Result<usize, SimulateError> {
        match action {
            Action::Call { segment, frames: _, args: _, micro_batch: _, site: _ } => {
                let left = self.durations.call(RankId::from_index(rank), *segment)?;
                self.ranks[rank].advance(now);
                self.ranks[rank].calls.push(Active { stream, left });
                self.plan_calls(rank);
                if self.ranks[rank].calls.len() == 1 {
                    self.disturb_flights(rank, now);
                }
            }
            Action::Load { input, buffer, micro_batch } => {
                let bytes = self.ranks[rank].bytes(*buffer)?;
                let time = self.durations.load(RankId::from_index(rank), bytes);
                let mut side = self.side(rank, stream, *buffer);
                side.slot = micro_batch.value(self.ranks[rank].trip(stream));
                side.input = Some(*input);
                self.take_off(Flight::new(TransferKind::Load, None, vec![side], bytes, now, time), now);
            }
            Action::Send { port, buffer } => self.post(rank, stream, *port, Offer::Send, *buffer, now)?,
            Action::Recv { port, buffer } => self.post(rank, stream, *port, Offer::Recv, *buffer, now)?,
            Action::AllReduce { port, buffer } => self.post(rank, stream, *port, Offer::AllReduce, *buffer, now)?,
            Action::Broadcast { port, root, buffer } => {
                self.post(rank, stream, *port, Offer::Broadcast(*root), *buffer, now)?;
            }
            Action::Group(actions) => {
                for inner in actions {
                    if matches!(inner, Action::Group(_) | Action::Call { .. }) {
                        return Err(SimulateError::Malformed("a group holds more than transfers".to_owned()));
                    }
                    self.start(rank, stream, inner, now)?;
                }
                return Ok(actions.len());
            }
        }
        Ok(1)
    }

    fn side(&self, rank: usize, stream: usize, buffer: BufferRef) -> Side {
        Side {
            rank: RankId::from_index(rank),
            stream: StreamId::from_index(stream),
            nth: self.ranks[rank].streams[stream].at,
            input: None,
            buffer: buffer.buffer,
            slot: buffer.slot.value(self.ranks[rank].trip(stream)),
        }
    }

    fn post(
        &mut self,
        rank: usize,
        stream: usize,
        port: PortId,
        offer: Offer,
        buffer: BufferRef,
        now: u64,
    ) -> Result<(), SimulateError> {
        let bytes = self.ranks[rank].bytes(buffer)?;
        let missing = || SimulateError::Malformed(format!("rank r{rank} has no communicator for port {port}"));
        let communicator = *self.ranks[rank].communicators.get(port.index()).ok_or_else(missing)?;
        let members = self.durations.members(communicator);
        let member = members.iter().position(|m| m.index() == rank).ok_or_else(missing)?;
        let right_side = match offer {
            Offer::Send => member == 0,
            Offer::Recv => member == 1,
            Offer::AllReduce | Offer::Broadcast(_) => true,
        };
        if !right_side {
            return Err(SimulateError::Mismatch(communicator));
        }
        let side = self.side(rank, stream, buffer);
        self.communicators[communicator.index()].posts[member].push_back(Post { side, offer, bytes });
        self.carry(communicator, now)
    }

    /// Starts the next transfer of a communicator when all sides have come to it.
    fn carry(&mut self, id: CommunicatorId, now: u64) -> Result<(), SimulateError> {
        let communicator = &mut self.communicators[id.index()];
        if communicator.busy || communicator.posts.iter().any(VecDeque::is_empty) {
            return Ok(());
        }
        let posts: Vec<Post> = communicator.posts.iter_mut().filter_map(VecDeque::pop_front).collect();
        communicator.busy = true;
        let Some(&Post { side: _, offer, bytes }) = posts.first() else { return Err(SimulateError::Mismatch(id)) };
        let agrees = |(member, post): (usize, &Post)| {
            let expected = if offer == Offer::Send && member == 1 { Offer::Recv } else { offer };
            post.offer == expected && post.bytes == bytes
        };
        if !posts.iter().enumerate().all(agrees) {
            return Err(SimulateError::Mismatch(id));
        }
        let members = self.durations.members(id);
        let (kind, time) = match offer {
            Offer::Send | Offer::Recv => (TransferKind::PointToPoint, self.durations.send(members, bytes)?),
            Offer::AllReduce => (TransferKind::AllReduce, self.durations.all_reduce(members, bytes)?),
            Offer::Broadcast(root) => (TransferKind::Broadcast, self.durations.broadcast(members, root, bytes)?),
        };
        let sides = posts.into_iter().map(|post| post.side).collect();
        let mut flight = Flight::new(kind, Some(id), sides, bytes, now, time);
        if let Offer::Broadcast(root) = offer {
            flight.root = root as usize;
        }
        self.take_off(flight, now);
        Ok(())
    }

    /// Starts a transfer, which slows the calls beside it and is slowed by them.
    fn take_off(&mut self, flight: Flight, now: u64) {
        let id = self.flights.len();
        let ranks: Vec<usize> = flight.sides.iter().map(|side| side.rank.index()).collect();
        self.flights.push(flight);
        for rank in ranks {
            self.ranks[rank].advance(now);
            self.ranks[rank].flights.push(id);
            self.disturb_calls(rank);
        }
        let slow = self.slowdown(id);
        let flight = &mut self.flights[id];
        flight.slow_down(now, slow);
        self.ends.push(Reverse((flight.end(), End::Flight { flight: id, version: flight.version })));
    }

    /// How much a transfer is slowed: by its kind's factor while one of its ranks computes.
    fn slowdown(&self, flight: usize) -> u32 {
        let flight = &self.flights[flight];
        let computes = flight.sides.iter().any(|side| !self.ranks[side.rank.index()].calls.is_empty());
        if computes { self.durations.contention().of(flight.kind).transfer_permille } else { 1000 }
    }

    /// The transfers of a rank have changed: its calls get slower or faster.
    fn disturb_calls(&mut self, rank: usize) {
        let contention = self.durations.contention();
        let factors = self.ranks[rank].flights.iter().map(|&id| contention.of(self.flights[id].kind).compute_permille);
        let slow = factors.max().unwrap_or(1000);
        if self.ranks[rank].slow_down(slow) {
            self.plan_calls(rank);
        }
    }

    /// A rank has begun or ceased to compute: its transfers get slower or faster.
    fn disturb_flights(&mut self, rank: usize, now: u64) {
        for i in 0..self.ranks[rank].flights.len() {
            let id = self.ranks[rank].flights[i];
            let slow = self.slowdown(id);
            let flight = &mut self.flights[id];
            if flight.slow_down(now, slow) {
                self.ends.push(Reverse((flight.end(), End::Flight { flight: id, version: flight.version })));
            }
        }
    }

    /// Foresees when the first of the rank's calls ends.
    fn plan_calls(&mut self, rank: usize) {
        if let Some((end, version)) = self.ranks[rank].next_end() {
            self.ends.push(Reverse((end, End::Calls { rank, version })));
        }
    }

    /// Whether an end was foreseen before something changed.
    fn is_void(&self, end: End) -> bool {
        match end {
            End::Calls { rank, version } => self.ranks[rank].version != version,
            End::Flight { flight, version } => self.flights[flight].version != version,
            End::Nothing { rank: _, stream: _ } => false,
        }
    }

    fn finish(&mut self, now: u64, end: End) -> Result<(), SimulateError> {
        match end {
            End::Calls { rank, version: _ } => {
                self.ranks[rank].advance(now);
                let calls = std::mem::take(&mut self.ranks[rank].calls);
                let (ended, left) = calls.into_iter().partition(|call: &Active| call.left == 0);
                self.ranks[rank].calls = left;
                for call in ended {
                    self.end(rank, call.stream, now, None);
                }
                self.plan_calls(rank);
                self.start_all(rank, now)?;
                if self.ranks[rank].calls.is_empty() {
                    self.disturb_flights(rank, now);
                }
                Ok(())
            }
            End::Nothing { rank, stream } => {
                self.end(rank, stream, now, None);
                self.start_all(rank, now)
            }
            End::Flight { flight, version: _ } => self.land(flight, now),
        }
    }

    /// Ends a transfer.
    fn land(&mut self, id: usize, now: u64) -> Result<(), SimulateError> {
        let flight = &mut self.flights[id];
        (flight.at, flight.version) = (now, flight.version + 1);
        let (communicator, start_ps) = (flight.communicator, flight.start_ps);
        let sides = flight.sides.clone();
        for (position, side) in sides.iter().enumerate() {
            let rank = side.rank.index();
            self.ranks[rank].advance(now);
            self.ranks[rank].flights.retain(|&other| other != id);
            self.disturb_calls(rank);
            let kind = SpanKind::Transfer { transfer: id, side: position };
            self.ranks[rank].timeline.spans.push(Span { stream: side.stream, kind, start_ps, end_ps: now });
            self.end(rank, side.stream.index(), now, Some(id));
        }
        if let Some(communicator) = communicator {
            self.communicators[communicator.index()].busy = false;
            self.carry(communicator, now)?;
        }
        sides.iter().try_for_each(|side| self.start_all(side.rank.index(), now))
    }

    /// One of the ends that a stream's instruction waits for.
    fn end(&mut self, rank: usize, stream: usize, now: u64, flight: Option<usize>) {
        let state = &mut self.ranks[rank];
        let of = &mut state.streams[stream];
        if let State::Busy(n @ 2..) = of.state {
            of.state = State::Busy(n - 1);
            return;
        }
        let (instr, trip) = of.queue[of.at];
        of.state = State::Ready;
        of.at += 1;
        let start_ps = of.started;
        if let Some(recorded) = instr.record.as_ref().and_then(|event| instance(event, trip)) {
            state.recorded.entry(recorded).or_insert(now);
        }
        if let Some((segment, micro_batch)) = call(instr, trip) {
            let kind = SpanKind::Call { segment, micro_batch };
            let stream = StreamId::from_index(stream);
            state.timeline.spans.push(Span { stream, kind, start_ps, end_ps: now });
        }
        self.done[rank][stream].push(Done { instr, trip, start_ps, end_ps: now, flight });
    }
}

/// The segment of a call, and the micro-batch that it works on in a trip.
pub(super) fn call(instr: &Instr, trip: u64) -> Option<(SegmentId, i64)> {
    match &instr.action {
        Action::Call { segment, frames: _, args: _, micro_batch, site: _ } => Some((*segment, micro_batch.value(trip))),
        Action::Load { .. } | Action::Send { .. } | Action::Recv { .. } => None,
        Action::AllReduce { .. } | Action::Broadcast { .. } | Action::Group(_) => None,
    }
}
