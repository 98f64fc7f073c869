//! The discrete-event model: streams, events, communicators, and calls that share a GPU.

use super::durations::{Durations, bytes};
use super::{MAX_INSTRUCTIONS, RankTimeline, SimulateError, Span, SpanKind};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use trainc_ir::id::{Id, Table};
use trainc_ir::plan::{
    Action, BufferRef, CommunicatorId, EventRef, Instr, Item, Plan, PortId, Program, RankId, SegmentId, StreamId,
};

/// An instruction of one trip, and what became of it.
pub(super) struct Done<'a> {
    pub(super) instr: &'a Instr,
    pub(super) trip: u64,
    pub(super) start_ps: u64,
    pub(super) end_ps: u64,
}

/// What a replay gives.
pub(super) struct Run<'a> {
    pub(super) step_ps: u64,
    pub(super) ranks: Table<RankId, RankTimeline>,
    /// By rank and stream, in order.
    pub(super) done: Vec<Vec<Vec<Done<'a>>>>,
}

/// An instance of an event.
pub(super) type Instance = (usize, i64);

/// The instance that a reference means in a trip; `None` for those that are never waited for.
pub(super) fn instance(reference: &EventRef, trip: u64) -> Option<Instance> {
    let index = reference.index.value(trip);
    (index >= 0).then_some((reference.event.index(), index))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    /// Waits for so many calls, loads or transfers of its instruction to end.
    Busy(usize),
}

struct Stream<'a> {
    queue: Vec<(&'a Instr, u64)>,
    at: usize,
    state: State,
    started: u64,
}

/// A call that runs.
struct Active {
    stream: usize,
    left: u64,
}

struct RankState<'a> {
    program: &'a Program,
    communicators: &'a [CommunicatorId],
    streams: Vec<Stream<'a>>,
    recorded: BTreeMap<Instance, u64>,
    calls: Vec<Active>,
    n_transfers: usize,
    now: u64,
    /// Changes whenever the set of calls does, so that older ends are known to be void.
    version: u64,
    timeline: RankTimeline,
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
    rank: usize,
    stream: usize,
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
    Calls { rank: usize, version: u64 },
    Load { rank: usize, stream: usize },
    Transfer { communicator: usize },
}

struct Engine<'a, 'd> {
    durations: &'d Durations<'a>,
    ranks: Vec<RankState<'a>>,
    communicators: Vec<Communicator>,
    /// Streams whose current transfer a communicator carries.
    carried: Vec<Vec<(usize, usize)>>,
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
    Ok(Run { step_ps: now, ranks: engine.ranks.into_iter().map(timeline).collect(), done: engine.done })
}

impl<'a, 'd> Engine<'a, 'd> {
    fn new(plan: &'a Plan, durations: &'d Durations<'a>) -> Result<Self, SimulateError> {
        let mut n_left = MAX_INSTRUCTIONS;
        let (mut ranks, mut done) = (Vec::new(), Vec::new());
        for rank in plan.ranks.values() {
            let missing = || SimulateError::Malformed(format!("there is no program {}", rank.program));
            let program = plan.programs.get(rank.program).ok_or_else(missing)?;
            let streams = streams(program, &mut n_left)?;
            done.push(streams.iter().map(|_| Vec::new()).collect());
            ranks.push(RankState {
                program,
                communicators: &rank.communicators,
                streams,
                recorded: BTreeMap::new(),
                calls: Vec::new(),
                n_transfers: 0,
                now: 0,
                version: 0,
                timeline: RankTimeline::default(),
            });
        }
        let communicator = |members: &Vec<RankId>| {
            let posts = members.iter().map(|_| VecDeque::new()).collect();
            Communicator { posts, busy: false }
        };
        let communicators: Vec<Communicator> = plan.communicators.values().map(communicator).collect();
        let carried = communicators.iter().map(|_| Vec::new()).collect();
        Ok(Self { durations, ranks, communicators, carried, ends: BinaryHeap::new(), done })
    }

    /// Starts every instruction of the rank that can start.
    fn start_all(&mut self, rank: usize, now: u64) -> Result<(), SimulateError> {
        for stream in 0..self.ranks[rank].streams.len() {
            if let Some(&(instr, _)) = self.ranks[rank].next(stream) {
                self.ranks[rank].streams[stream].started = now;
                let n = self.start(rank, stream, &instr.action, now)?;
                if n == 0 {
                    // An empty group is done at once.
                    self.ranks[rank].transfers(now, 1);
                    self.ends.push(Reverse((now, End::Load { rank, stream })));
                }
                self.ranks[rank].streams[stream].state = State::Busy(n.max(1));
            }
        }
        Ok(())
    }

    /// Starts an action; how many ends it waits for.
    fn start(&mut self, rank: usize, stream: usize, action: &'a Action, now: u64) -> Result<usize, SimulateError> {
        let id = RankId::from_index(rank);
        match action {
            Action::Call { segment, frames: _, args: _, micro_batch: _, site: _ } => {
                let left = self.durations.call(id, *segment)?;
                self.ranks[rank].advance(now);
                self.ranks[rank].calls.push(Active { stream, left });
                self.plan_calls(rank, now);
            }
            Action::Load { input: _, buffer, micro_batch: _ } => {
                let time = self.durations.load(id, self.ranks[rank].bytes(*buffer)?);
                self.ranks[rank].transfers(now, 1);
                self.ends.push(Reverse((now.saturating_add(time), End::Load { rank, stream })));
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
        let side = match offer {
            Offer::Send => member == 0,
            Offer::Recv => member == 1,
            Offer::AllReduce | Offer::Broadcast(_) => true,
        };
        if !side {
            return Err(SimulateError::Mismatch(communicator));
        }
        self.communicators[communicator.index()].posts[member].push_back(Post { rank, stream, offer, bytes });
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
        let first = &posts[0];
        let agrees = |(member, post): (usize, &Post)| {
            let expected = if first.offer == Offer::Send && member == 1 { Offer::Recv } else { first.offer };
            post.offer == expected && post.bytes == first.bytes
        };
        if !posts.iter().enumerate().all(agrees) {
            return Err(SimulateError::Mismatch(id));
        }
        let members = self.durations.members(id);
        let time = match first.offer {
            Offer::Send | Offer::Recv => self.durations.send(members, first.bytes)?,
            Offer::AllReduce => self.durations.all_reduce(members, first.bytes)?,
            Offer::Broadcast(root) => self.durations.broadcast(members, root, first.bytes)?,
        };
        let end = now.saturating_add(time);
        for post in &posts {
            self.ranks[post.rank].transfers(now, 1);
            let stream = StreamId::from_index(post.stream);
            let span = Span { stream, kind: SpanKind::Transfer(id), start_ps: now, end_ps: end };
            self.ranks[post.rank].timeline.spans.push(span);
        }
        self.carried[id.index()] = posts.iter().map(|post| (post.rank, post.stream)).collect();
        self.ends.push(Reverse((end, End::Transfer { communicator: id.index() })));
        Ok(())
    }

    /// Foresees when the first of the rank's calls ends.
    fn plan_calls(&mut self, rank: usize, now: u64) {
        let state = &mut self.ranks[rank];
        state.version += 1;
        if let Some(least) = state.calls.iter().map(|call| call.left).min() {
            let end = now.saturating_add(least.saturating_mul(state.calls.len() as u64));
            self.ends.push(Reverse((end, End::Calls { rank, version: state.version })));
        }
    }

    fn finish(&mut self, now: u64, end: End) -> Result<(), SimulateError> {
        match end {
            End::Calls { rank, version } => {
                if self.ranks[rank].version != version {
                    return Ok(());
                }
                self.ranks[rank].advance(now);
                let calls = std::mem::take(&mut self.ranks[rank].calls);
                let (ended, left) = calls.into_iter().partition(|call: &Active| call.left == 0);
                self.ranks[rank].calls = left;
                for call in ended {
                    self.end(rank, call.stream, now);
                }
                self.plan_calls(rank, now);
                self.start_all(rank, now)
            }
            End::Load { rank, stream } => {
                self.ranks[rank].transfers(now, -1);
                self.end(rank, stream, now);
                self.start_all(rank, now)
            }
            End::Transfer { communicator } => {
                self.communicators[communicator].busy = false;
                let carried = std::mem::take(&mut self.carried[communicator]);
                for &(rank, stream) in &carried {
                    self.ranks[rank].transfers(now, -1);
                    self.end(rank, stream, now);
                }
                self.carry(CommunicatorId::from_index(communicator), now)?;
                carried.iter().try_for_each(|&(rank, _)| self.start_all(rank, now))
            }
        }
    }

    /// One of the ends that a stream's instruction waits for.
    fn end(&mut self, rank: usize, stream: usize, now: u64) {
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
        let kind = match &instr.action {
            Action::Call { segment, frames: _, args: _, micro_batch, site: _ } => {
                Some(SpanKind::Call { segment: *segment, micro_batch: micro_batch.value(trip) })
            }
            Action::Load { input: _, buffer: _, micro_batch: _ } => Some(SpanKind::Load),
            Action::Send { .. } | Action::Recv { .. } | Action::AllReduce { .. } => None,
            Action::Broadcast { .. } | Action::Group(_) => None,
        };
        if let Some(kind) = kind {
            let stream = StreamId::from_index(stream);
            state.timeline.spans.push(Span { stream, kind, start_ps, end_ps: now });
        }
        self.done[rank][stream].push(Done { instr, trip, start_ps, end_ps: now });
    }
}

impl<'a> RankState<'a> {
    /// The next instruction of the stream, where it can start.
    fn next(&self, stream: usize) -> Option<&(&'a Instr, u64)> {
        let of = &self.streams[stream];
        let next = of.queue.get(of.at).filter(|_| of.state == State::Ready)?;
        let (instr, trip) = *next;
        let mut waits = instr.waits.iter().filter_map(|event| instance(event, trip));
        waits.all(|event| self.recorded.contains_key(&event)).then_some(next)
    }

    /// Accounts for the time since the last change.
    fn advance(&mut self, now: u64) {
        let passed = now - self.now;
        self.now = now;
        let n = self.calls.len() as u64;
        if n > 0 {
            self.timeline.busy_ps += passed;
        } else if self.n_transfers > 0 {
            self.timeline.exposed_transfer_ps += passed;
        }
        for call in &mut self.calls {
            call.left = call.left.saturating_sub(passed / n);
        }
    }

    /// More or fewer transfers run.
    fn transfers(&mut self, now: u64, change: isize) {
        self.advance(now);
        self.n_transfers = self.n_transfers.saturating_add_signed(change);
    }

    fn bytes(&self, buffer: BufferRef) -> Result<u64, SimulateError> {
        let malformed =
            |what: &str| SimulateError::Malformed(format!("{}: {what} {}", self.program.name, buffer.buffer));
        let of = self.program.buffers.get(buffer.buffer).ok_or_else(|| malformed("there is no buffer"))?;
        bytes(&of.ty).ok_or_else(|| malformed("the type is too large of buffer"))
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

/// The segment of a call.
pub(super) fn segment(instr: &Instr) -> Option<SegmentId> {
    match &instr.action {
        Action::Call { segment, frames: _, args: _, micro_batch: _, site: _ } => Some(*segment),
        Action::Load { .. } | Action::Send { .. } | Action::Recv { .. } => None,
        Action::AllReduce { .. } | Action::Broadcast { .. } | Action::Group(_) => None,
    }
}
