//! Transfers: all members come to a communicator, in one order each, then it happens. Rules P16, P17.

use super::clock::{Clock, Epoch};
use super::error::{InstrPlace, PlanPlace, PlanRule};
use super::machine::Machine;
use super::memory::Interval;
use super::reference;
use super::stream::Step;
use super::term::Term;
use super::walk;
use crate::id::Id;
use crate::plan::{Action, BufferRef, CommunicatorId, RankId};
use crate::ty::Type;

/// The members that have come to a communicator.
pub(super) struct Waiting {
    posted: Vec<Option<Posted>>,
    /// The last transfer of each member.
    last: Vec<Option<Epoch>>,
}

impl Waiting {
    pub(super) fn new(members: usize) -> Self {
        Self { posted: vec![None; members], last: vec![None; members] }
    }
}

/// One side of a transfer.
#[derive(Clone)]
struct Posted {
    rank: usize,
    stream: usize,
    side: Side,
    buffer: BufferRef,
    /// The loop's counter.
    i: u64,
    interval: Interval,
    start: Clock,
    epoch: Epoch,
    place: InstrPlace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Send,
    Receive,
    AllReduce,
    Broadcast { root: u32 },
}

/// The transfers of an instruction that have not happened yet.
pub(super) struct Outstanding {
    left: usize,
    /// What happened before the end of those that have.
    clock: Clock,
    epoch: Epoch,
}

impl Machine<'_> {
    /// A rank comes to the transfers of an instruction.
    pub(super) fn post(&mut self, rank: usize, stream: usize, step: Step<'_>, start: &Clock, epoch: Epoch) {
        let actions = walk::parts(&step.instr.action);
        self.conflicts(rank, actions, &step);
        let outstanding = Outstanding { left: actions.len(), clock: start.clone(), epoch };
        self.ranks[rank].streams[stream].outstanding = Some(outstanding);
        let mut complete = Vec::new();
        for action in actions {
            let (port, side, buffer) = match action {
                Action::Send { port, buffer } => (*port, Side::Send, *buffer),
                Action::Recv { port, buffer } => (*port, Side::Receive, *buffer),
                Action::AllReduce { port, buffer } => (*port, Side::AllReduce, *buffer),
                Action::Broadcast { port, root, buffer } => (*port, Side::Broadcast { root: *root }, *buffer),
                // Rule P13 has been checked.
                Action::Call { .. } | Action::Load { .. } | Action::Group(_) => continue,
            };
            let id = RankId::from_index(rank);
            let communicator = self.plan.ranks[id].communicators[port.index()];
            let members = &self.plan.communicators[communicator];
            let member = members.iter().position(|&member| member == id).expect("rule P9 has been checked");
            let interval = self.interval(rank, buffer, step.i);
            let waiting = &mut self.communicators[communicator.index()];
            let ordered = waiting.last[member].is_none_or(|last| start.covers(last));
            if waiting.posted[member].is_some() || !ordered {
                let message = format!("nothing orders this after the rank's previous transfer on {communicator}");
                self.errors.push(PlanRule::Order, PlanPlace::Instr(step.place), message);
                self.stopped = true;
                return;
            }
            let start = start.clone();
            let posted = Posted { rank, stream, side, buffer, i: step.i, interval, start, epoch, place: step.place };
            waiting.last[member] = Some(epoch);
            waiting.posted[member] = Some(posted);
            if waiting.posted.iter().all(Option::is_some) {
                complete.push(communicator);
            }
        }
        for communicator in complete {
            if !self.stopped {
                self.transfer(communicator);
            }
        }
    }

    /// The transfers of a group happen in any order, so none may write what another one touches.
    fn conflicts(&mut self, rank: usize, actions: &[Action], step: &Step<'_>) {
        let touched = |action: &Action| match action {
            Action::Send { port: _, buffer } => Some((self.interval(rank, *buffer, step.i), false)),
            Action::Recv { port: _, buffer } => Some((self.interval(rank, *buffer, step.i), true)),
            Action::AllReduce { .. } | Action::Broadcast { .. } => None,
            Action::Call { .. } | Action::Load { .. } | Action::Group(_) => None,
        };
        let touched: Vec<_> = actions.iter().filter_map(touched).collect();
        for (index, (first, write)) in touched.iter().enumerate() {
            for (second, other) in &touched[index + 1..] {
                if first.overlaps(*second) && (*write || *other) {
                    let message = "transfers of one group touch the same bytes, and one of them writes";
                    self.errors.push(PlanRule::Races, PlanPlace::Instr(step.place), message);
                }
            }
        }
    }

    /// All members have come.
    fn transfer(&mut self, communicator: CommunicatorId) {
        let waiting = &mut self.communicators[communicator.index()];
        let sides: Vec<Posted> = waiting.posted.iter_mut().filter_map(Option::take).collect();
        if let Err(message) = self.agree(&sides) {
            self.errors.push(PlanRule::Transfers, PlanPlace::Instr(sides[0].place), message);
            self.stopped = true;
            return;
        }
        let mut after = sides[0].start.clone();
        sides[1..].iter().for_each(|side| after.join(&side.start));

        let mut values = Vec::new();
        for (member, side) in sides.iter().enumerate() {
            let reads = match side.side {
                Side::Send | Side::AllReduce => true,
                Side::Receive => false,
                Side::Broadcast { root } => root as usize == member,
            };
            values.push(if reads {
                self.read(side.rank, (side.buffer, side.i), side.interval, side.place)
            } else {
                Term::UNKNOWN
            });
        }
        let moved = self.moved(&sides, &values);
        for (member, side) in sides.iter().enumerate() {
            let write = match side.side {
                Side::Send => false,
                Side::Receive | Side::AllReduce => true,
                Side::Broadcast { root } => root as usize != member,
            };
            self.access(side.rank, side.interval, write, side.epoch, &after, side.place);
            if write && !side.interval.is_empty() {
                let slot = self.slot(side.rank, side.buffer, side.i);
                self.ranks[side.rank].memory.write(side.interval, (moved, slot));
            }
        }
        for side in &sides {
            self.arrived(side, &after);
        }
    }

    /// The value that the transfer leaves behind.
    fn moved(&mut self, sides: &[Posted], values: &[Term]) -> Term {
        match sides[0].side {
            Side::Send | Side::Receive => values[0],
            Side::Broadcast { root } => values[root as usize],
            Side::AllReduce => {
                let ty = self.ty(&sides[0]).clone();
                if sides[0].interval.is_empty() {
                    return Term::EMPTY;
                }
                let add = reference::addition(&ty, self.terms).kernel;
                let mut sum = values[0];
                for &value in &values[1..] {
                    if sum == Term::UNKNOWN || value == Term::UNKNOWN {
                        return Term::UNKNOWN;
                    }
                    let Some(next) = self.terms.find(add, None, &[sum, value]) else {
                        let (a, b) = (self.terms.describe(sum), self.terms.describe(value));
                        let message = format!("expected a sum of the training graph, found {a} plus {b}");
                        self.errors.push(PlanRule::Computation, PlanPlace::Instr(sides[0].place), message);
                        return Term::UNKNOWN;
                    };
                    sum = next;
                }
                sum
            }
        }
    }

    fn ty(&self, side: &Posted) -> &Type {
        &self.plan.programs[self.ranks[side.rank].program].buffers[side.buffer.buffer].ty
    }

    fn agree(&self, sides: &[Posted]) -> Result<(), String> {
        let first = &sides[0];
        for other in &sides[1..] {
            let fits = match (first.side, other.side) {
                (Side::Send, side) => side == Side::Receive,
                (Side::Receive, _) => false,
                (Side::AllReduce | Side::Broadcast { root: _ }, side) => side == first.side,
            };
            if !fits {
                return Err(format!("{:?} meets {:?} at {}", first.side, other.side, other.place));
            }
            let (expected, found) = (self.ty(first), self.ty(other));
            if expected != found {
                return Err(format!("{expected} meets {found} at {}", other.place));
            }
        }
        Ok(())
    }

    fn arrived(&mut self, side: &Posted, after: &Clock) {
        let state = &mut self.ranks[side.rank].streams[side.stream];
        let Some(outstanding) = &mut state.outstanding else { return };
        outstanding.clock.join(after);
        outstanding.left -= 1;
        if outstanding.left == 0
            && let Some(Outstanding { left: _, clock, epoch }) = state.outstanding.take()
        {
            self.complete(side.rank, side.stream, clock, epoch);
            self.ready.push_back((side.rank, side.stream));
        }
    }

    /// The ranks that have not come to the transfers of a stream's instruction.
    pub(super) fn awaited_ranks(&self, rank: usize, stream: usize) -> String {
        let mut awaited = Vec::new();
        for (id, members) in self.plan.communicators.iter() {
            let posted = &self.communicators[id.index()].posted;
            let mine = |side: &Posted| side.rank == rank && side.stream == stream;
            if posted.iter().flatten().any(mine) {
                let missing = members.iter().zip(posted).filter(|(_, side)| side.is_none());
                let missing: Vec<_> = missing.map(|(member, _)| member.to_string()).collect();
                awaited.push(format!("rank {} on {id}", missing.join(", ")));
            }
        }
        awaited.join("; ")
    }
}
