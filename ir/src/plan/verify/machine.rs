//! Runs all ranks together on terms instead of numbers. Any order of the runnable instructions leads to the same end:
//! streams are in order, events are recorded once, and a communicator pairs its transfers in one order. So one order
//! decides whether the step ends, and vector clocks stand for all others. Rules P18 and P19.

use super::clock::{Clock, Epoch};
use super::error::{Errors, InstrPlace, PlanPlace, PlanRule, action_name};
use super::link::{self, Linked};
use super::memory::{Accesses, Contents, Interval, Missing, Slot};
use super::stream::{Cursor, Script, Step, stream_name};
use super::structure::bytes;
use super::term::{Signature, Term, Terms};
use super::transfer::{Outstanding, Waiting};
use crate::id::Id;
use crate::plan::{Action, BufferRef, EventId, EventRef, FrameId, Plan, ProgramId, RankId, SegmentId, frame_of};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// The state of all ranks.
pub(super) struct Machine<'a> {
    pub(super) plan: &'a Plan,
    pub(super) terms: &'a mut Terms,
    pub(super) errors: &'a mut Errors,
    pub(super) ranks: Vec<RankState>,
    pub(super) communicators: Vec<Waiting>,
    /// Streams that may be able to go on, as (rank, stream of its program).
    pub(super) ready: VecDeque<(usize, usize)>,
    /// A violation after which going on makes no sense.
    pub(super) stopped: bool,
    scripts: Vec<Vec<Script<'a>>>,
    signatures: Vec<Signature>,
    linked: HashMap<Placement, Rc<Linked>>,
    values: Vec<Term>,
    operands: Vec<Term>,
}

/// Where a call's bytes lie.
#[derive(PartialEq, Eq, Hash)]
struct Placement {
    program: ProgramId,
    segment: SegmentId,
    frame: FrameId,
    actuals: Vec<Slot>,
}

pub(super) struct RankState {
    pub(super) program: ProgramId,
    pub(super) streams: Vec<StreamState>,
    /// Values with the name that they were written under.
    pub(super) memory: Contents<(Term, Slot)>,
    accesses: Accesses,
    recorded: HashMap<(EventId, i64), Rc<Clock>>,
    waiting: HashMap<(EventId, i64), Vec<usize>>,
}

pub(super) struct StreamState {
    /// Its position among the streams of all ranks.
    pub(super) number: u32,
    pub(super) clock: Clock,
    cursor: Cursor,
    /// The transfers of its instruction that are under way.
    pub(super) outstanding: Option<Outstanding>,
}

impl<'a> Machine<'a> {
    pub(super) fn new(plan: &'a Plan, terms: &'a mut Terms, errors: &'a mut Errors) -> Self {
        let scripts: Vec<_> = plan.programs.iter().map(|(id, program)| Script::all(id, program)).collect();
        let width: usize = plan.ranks.values().map(|rank| scripts[rank.program.index()].len()).sum();
        let mut number = 0;
        let mut ranks = Vec::new();
        let mut ready = VecDeque::new();
        for rank in plan.ranks.values() {
            let streams = scripts[rank.program.index()].iter().enumerate().map(|(stream, _)| {
                ready.push_back((ranks.len(), stream));
                number += 1;
                let clock = Clock::new(width);
                StreamState { number: number - 1, clock, cursor: Cursor::default(), outstanding: None }
            });
            let streams = streams.collect();
            ranks.push(RankState {
                program: rank.program,
                streams,
                memory: Contents::new(),
                accesses: Accesses::default(),
                recorded: HashMap::new(),
                waiting: HashMap::new(),
            });
        }
        let communicators = plan.communicators.values().map(|members| Waiting::new(members.len())).collect();
        let signatures = link::signatures(plan, terms);
        let (linked, values, operands) = (HashMap::new(), Vec::new(), Vec::new());
        let stopped = false;
        Self {
            plan,
            terms,
            errors,
            ranks,
            communicators,
            ready,
            stopped,
            scripts,
            signatures,
            linked,
            values,
            operands,
        }
    }

    /// Runs until nothing can go on.
    pub(super) fn run(&mut self) {
        while let Some((rank, stream)) = self.ready.pop_front() {
            self.advance(rank, stream);
            if self.stopped || self.errors.is_full() {
                return;
            }
        }
        self.deadlock();
    }

    pub(super) fn step(&self, rank: usize, stream: usize) -> Option<Step<'a>> {
        let state = &self.ranks[rank];
        self.scripts[state.program.index()][stream].at(RankId::from_index(rank), state.streams[stream].cursor)
    }

    /// Runs a stream until it waits.
    fn advance(&mut self, rank: usize, stream: usize) {
        while !self.stopped && !self.errors.is_full() && self.ranks[rank].streams[stream].outstanding.is_none() {
            let Some(step) = self.step(rank, stream) else { return };
            let Some(start) = self.start(rank, stream, &step) else { return };
            let number = self.ranks[rank].streams[stream].number;
            let epoch = Epoch { stream: number, time: start.time(number) + 1 };
            match &step.instr.action {
                Action::Call { segment, frames, args, micro_batch, site } => {
                    let frame = frame_of(frames, micro_batch.value(step.i)).expect("rule P6 asks for a frame");
                    let draw = (micro_batch.value(step.i), *site);
                    self.call(rank, (*segment, frame), args, draw, (step, epoch, &start));
                    self.complete(rank, stream, start, epoch);
                }
                Action::Load { input, buffer, micro_batch } => {
                    let input = &self.plan.inputs[*input];
                    let batch = u64::try_from(micro_batch.value(step.i)).unwrap_or(0);
                    let term = match input.role {
                        crate::graph::InputRole::Scalar => self.terms.leaf(input.role, &input.name, 0),
                        role => self.terms.leaf(role, &input.name, batch),
                    };
                    let interval = self.interval(rank, *buffer, step.i);
                    self.access(rank, interval, true, epoch, &start, step.place);
                    let slot = self.slot(rank, *buffer, step.i);
                    self.ranks[rank].memory.write(interval, (term, slot));
                    self.complete(rank, stream, start, epoch);
                }
                Action::Send { .. } | Action::Recv { .. } | Action::AllReduce { .. } | Action::Broadcast { .. } => {
                    self.post(rank, stream, step, &start, epoch);
                }
                Action::Group(_) => self.post(rank, stream, step, &start, epoch),
            }
        }
    }

    /// What happened before the instruction, or `None` while it waits for an event.
    fn start(&mut self, rank: usize, stream: usize, step: &Step<'_>) -> Option<Clock> {
        let state = &mut self.ranks[rank];
        let mut start = state.streams[stream].clock.clone();
        for wait in &step.instr.waits {
            let Some(key) = instance(wait, step.i) else { continue };
            match state.recorded.get(&key) {
                Some(clock) => start.join(clock),
                None => {
                    state.waiting.entry(key).or_default().push(stream);
                    return None;
                }
            }
        }
        Some(start)
    }

    /// Ends the instruction at the stream's cursor: `clock` is what happened before its end.
    pub(super) fn complete(&mut self, rank: usize, stream: usize, mut clock: Clock, epoch: Epoch) {
        let Some(step) = self.step(rank, stream) else { return };
        clock.set(epoch);
        let state = &mut self.ranks[rank];
        if let Some(key) = step.instr.record.as_ref().and_then(|record| instance(record, step.i)) {
            state.recorded.insert(key, Rc::new(clock.clone()));
            let woken = state.waiting.remove(&key).unwrap_or_default();
            self.ready.extend(woken.into_iter().map(|stream| (rank, stream)));
        }
        let script = &self.scripts[state.program.index()][stream];
        let entry = &mut state.streams[stream];
        entry.cursor = script.next(entry.cursor);
        entry.clock = clock;
    }

    /// Notes an access to a rank's bytes; rule P19.
    pub(super) fn access(
        &mut self,
        rank: usize,
        interval: Interval,
        write: bool,
        epoch: Epoch,
        after: &Clock,
        place: InstrPlace,
    ) {
        let accesses = &mut self.ranks[rank].accesses;
        let race = if write { accesses.write(interval, epoch, after) } else { accesses.read(interval, epoch, after) };
        let Some(other) = race else { return };
        let state = &self.ranks[rank];
        let index = state.streams.iter().position(|stream| stream.number == other.stream);
        let index = index.expect("only a rank's own streams touch its arena");
        let script = &self.scripts[state.program.index()][index];
        let text = match script.past(RankId::from_index(rank), other.time) {
            Some(step) => format!("{} ({})", step.place, action_name(self.plan, &step.instr.action)),
            None => "an earlier instruction".to_owned(),
        };
        let (what, Interval { start, end }) = (if write { "writes" } else { "reads" }, interval);
        let message = format!("{what} bytes {start} to {end} without waiting for {text}");
        self.errors.push(PlanRule::Races, PlanPlace::Instr(place), message);
    }

    /// The slot that a reference names in a trip.
    pub(super) fn slot(&self, rank: usize, buffer: BufferRef, i: u64) -> Slot {
        let entry = &self.plan.programs[self.ranks[rank].program].buffers[buffer.buffer];
        let number = buffer.slot.value(i).rem_euclid(entry.offsets.len() as i64);
        Slot { buffer: buffer.buffer, number: number as u32 }
    }

    /// The bytes of a slot of a buffer.
    pub(super) fn interval(&self, rank: usize, buffer: BufferRef, i: u64) -> Interval {
        let entry = &self.plan.programs[self.ranks[rank].program].buffers[buffer.buffer];
        let slot = self.slot(rank, buffer, i);
        Interval::new(entry.offsets[slot.number as usize], bytes(&entry.ty).expect("rule P2 bounds the size"))
    }

    /// The value in the bytes of a buffer, read as `buffer` in trip `i`; rule P21.
    pub(super) fn read(
        &mut self,
        rank: usize,
        (buffer, i): (BufferRef, u64),
        interval: Interval,
        place: InstrPlace,
    ) -> Term {
        if interval.is_empty() {
            return Term::EMPTY;
        }
        let missing = match self.ranks[rank].memory.read(interval) {
            Ok((term, slot)) if slot == self.slot(rank, buffer, i) => return term,
            Ok((_, slot)) => Err(slot),
            Err(missing) => Ok(missing),
        };
        let Interval { start, end } = interval;
        let name = &self.plan.programs[self.ranks[rank].program].buffers[buffer.buffer].name;
        let found = match missing {
            Ok(Missing::Undefined) => "undefined bytes".to_owned(),
            Ok(Missing::Other(other)) => format!("a value at {} to {}", other.start, other.end),
            Err(Slot { buffer, number }) => format!("what was written there as slot {number} of {buffer}"),
        };
        let message = format!("expected a value in {buffer} `{name}` ({start} to {end}), found {found}");
        self.errors.push(PlanRule::Reads, PlanPlace::Instr(place), message);
        Term::UNKNOWN
    }

    fn call(
        &mut self,
        rank: usize,
        (segment, frame): (SegmentId, FrameId),
        args: &[BufferRef],
        draw: (i64, u64),
        (step, epoch, start): (Step<'_>, Epoch, &Clock),
    ) {
        let actuals = args.iter().map(|&arg| self.slot(rank, arg, step.i)).collect();
        let placement = Placement { program: self.ranks[rank].program, segment, frame, actuals };
        let linked = self.link(placement, step.place);
        for &interval in &linked.reads {
            self.access(rank, interval, false, epoch, start, step.place);
        }
        for &interval in &linked.writes {
            self.access(rank, interval, true, epoch, start, step.place);
        }
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        values.resize(linked.values, Term::UNKNOWN);
        for &(formal, interval) in &linked.inputs {
            values[formal] = self.read(rank, (args[formal], step.i), interval, step.place);
        }
        self.evaluate(&linked, &mut values, draw, step.place);
        let memory = &mut self.ranks[rank].memory;
        for &interval in &linked.writes {
            memory.erase(interval);
        }
        for &(interval, value, slot) in &linked.results {
            memory.write(interval, (values[value], slot));
        }
        self.values = values;
    }

    /// Looks up what the kernels compute; rule P22.
    fn evaluate(&mut self, linked: &Linked, values: &mut [Term], (batch, site): (i64, u64), place: InstrPlace) {
        let mut operands = std::mem::take(&mut self.operands);
        for (position, step) in linked.steps.iter().enumerate() {
            let call = &self.plan.segments[linked.segment].body[position];
            let kernel = &self.plan.kernels[call.kernel];
            operands.clear();
            let read = |(&value, ty): (&usize, &crate::ty::Type)| {
                if bytes(ty) == Some(0) { Term::EMPTY } else { values[value] }
            };
            operands.extend(step.inputs.iter().zip(&kernel.inputs).map(read));
            if step.signature.alias {
                values[step.first] = operands[0];
                continue;
            }
            if operands.contains(&Term::UNKNOWN) {
                continue;
            }
            let draw = step.signature.site.map(|own| (batch.unsigned_abs(), own.wrapping_add(site)));
            let found = self.terms.find(step.signature.kernel, draw, &operands);
            let Some(first) = found else {
                let described: Vec<_> = operands.iter().map(|&term| self.terms.describe(term)).collect();
                let (name, described) = (kernel.op.spelling(), described.join(", "));
                let drawn = draw.map(|(batch, site)| format!(" (random, micro-batch {batch}, site {site})"));
                let message = format!(
                    "expected a value of the training graph, found `{name}`{} of ({described})",
                    drawn.unwrap_or_default()
                );
                let at = PlanPlace::InstrKernel(place, linked.segment, position);
                self.errors.push(PlanRule::Computation, at, message);
                continue;
            };
            for (index, &empty) in step.empty.iter().enumerate() {
                values[step.first + index] = if empty { Term::EMPTY } else { Terms::result(first, index) };
            }
        }
        self.operands = operands;
    }

    fn link(&mut self, placement: Placement, place: InstrPlace) -> Rc<Linked> {
        if let Some(linked) = self.linked.get(&placement) {
            return Rc::clone(linked);
        }
        let program = &self.plan.programs[placement.program];
        let locals = &program.frames[placement.frame].offsets;
        let linked = link::link(self.plan, program, placement.segment, &placement.actuals, locals, &self.signatures);
        for (position, rule, message) in &linked.faults {
            let at = PlanPlace::InstrKernel(place, placement.segment, *position);
            self.errors.push(*rule, at, message.clone());
        }
        let linked = Rc::new(linked);
        self.linked.insert(placement, Rc::clone(&linked));
        linked
    }

    /// Names what every unfinished stream waits for; rule P18.
    fn deadlock(&mut self) {
        let mut stuck = Vec::new();
        for rank in 0..self.ranks.len() {
            for stream in 0..self.ranks[rank].streams.len() {
                if let Some(step) = self.step(rank, stream) {
                    stuck.push((rank, stream, step));
                }
            }
        }
        for &(rank, stream, step) in &stuck {
            if self.errors.is_full() {
                return;
            }
            let program = &self.plan.programs[self.ranks[rank].program];
            let name = stream_name(program, stream);
            let action = action_name(self.plan, &step.instr.action);
            let waits = match &self.ranks[rank].streams[stream].outstanding {
                Some(_) => self.awaited_ranks(rank, stream),
                None => {
                    let recorded = &self.ranks[rank].recorded;
                    let open = step.instr.waits.iter().filter_map(|wait| instance(wait, step.i));
                    let open = open.filter(|key| !recorded.contains_key(key));
                    open.map(|(event, index)| format!("{event}[{index}]")).collect::<Vec<_>>().join(", ")
                }
            };
            let message = format!("the {action} on stream {name} never ends: it waits for {waits}");
            self.errors.push(PlanRule::Deadlock, PlanPlace::Instr(step.place), message);
        }
    }
}

fn instance(event: &EventRef, i: u64) -> Option<(EventId, i64)> {
    let index = event.index.value(i);
    (index >= 0).then_some((event.event, index))
}
