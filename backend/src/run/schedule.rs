//! Unrolls a program: every loop trip, slot, event instance and offset becomes a plain number, checked against the plan.

use super::error::RunError;
use std::collections::BTreeMap;
use trainc_ir::Type;
use trainc_ir::id::Id;
use trainc_ir::plan::{
    Access, Action, BufferId, BufferRef, EventId, EventRef, Index, InputId, Item, Operand, Plan, Program, SegmentId,
    frame_of,
};

/// A range of the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// First byte.
    pub(super) start: usize,
    /// Number of bytes.
    pub(super) len: usize,
}

impl Span {
    /// One past the last byte.
    pub(super) fn end(self) -> usize {
        self.start + self.len
    }

    /// Whether the two share a byte.
    pub(super) fn meets(self, other: Self) -> bool {
        self.len > 0 && other.len > 0 && self.start < other.end() && other.start < self.end()
    }
}

/// A buffer's slot as an instruction uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Use {
    /// The buffer.
    pub(super) buffer: BufferId,
    /// The slot.
    pub(super) slot: usize,
    /// Its bytes.
    pub(super) span: Span,
    /// What is done with it.
    pub(super) access: Access,
}

/// A part in one communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    /// The program's port.
    pub(super) port: usize,
    /// Position among the port's communications of a step.
    pub(super) sequence: usize,
    /// What this side does.
    pub(super) role: Role,
    /// The bytes.
    pub(super) span: Span,
    /// Element type, for sums.
    pub(super) dtype: trainc_ir::DType,
}

/// What one side of a communication does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Gives its bytes to the second rank.
    Send,
    /// Takes the bytes of the first rank.
    Recv,
    /// Adds up with all others.
    AllReduce,
    /// Takes (or, as the root, gives) the root's bytes.
    Broadcast {
        /// Position of the root.
        root: usize,
    },
}

/// What a step does.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// Runs a segment.
    Call {
        /// The segment.
        segment: SegmentId,
        /// Bytes of the formals.
        formals: Vec<Span>,
        /// Bytes of the locals.
        locals: Vec<Span>,
        /// The micro-batch.
        micro_batch: u64,
        /// Added to random sites.
        site: u64,
    },
    /// Copies an input from the host.
    Load {
        /// The input.
        input: InputId,
        /// The micro-batch.
        micro_batch: usize,
        /// Where to.
        span: Span,
    },
    /// Communicates; all parts start together.
    Transfers(Vec<Transfer>),
}

/// One instruction with every number known.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// What it does.
    pub(super) work: Work,
    /// Event instances it waits for.
    pub(super) waits: Vec<usize>,
    /// The event instance it records.
    pub(super) record: Option<usize>,
    /// The buffers it touches.
    pub(super) uses: Vec<Use>,
}

/// An unrolled program.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    /// All steps, in the program's order.
    pub(super) steps: Vec<Step>,
    /// For each stream its steps in order.
    pub(super) streams: Vec<Vec<usize>>,
    /// Number of event instances.
    pub(super) n_events: usize,
    /// Size of the arena.
    pub(super) arena: usize,
}

/// Unrolls a program of the plan for a rank whose position in the communicator of each port is `members`.
///
/// # Errors
/// A reference leads nowhere, or an offset leaves the arena.
pub(super) fn unroll(plan: &Plan, program: &Program, members: &[usize]) -> Result<Schedule, RunError> {
    let arena = usize::try_from(program.arena_bytes)
        .map_err(|_| bad(format!("the arena of program `{}` exceeds the address space", program.name)))?;
    let mut unroller = Unroller {
        plan,
        program,
        members,
        arena,
        events: BTreeMap::new(),
        sequences: vec![0; program.ports.len()],
        schedule: Schedule { steps: Vec::new(), streams: vec![Vec::new(); program.streams.len()], n_events: 0, arena },
    };
    for item in &program.body {
        match item {
            Item::Once(instr) => unroller.instr(instr, 0)?,
            Item::Loop { trips, body } => {
                for i in 0..*trips {
                    body.iter().try_for_each(|instr| unroller.instr(instr, i))?;
                }
            }
        }
    }
    unroller.schedule.n_events = unroller.events.len();
    Ok(unroller.schedule)
}

fn bad(message: String) -> RunError {
    RunError::Plan(message)
}

struct Unroller<'p> {
    plan: &'p Plan,
    program: &'p Program,
    members: &'p [usize],
    arena: usize,
    /// Recorded event instances, in the program's order.
    events: BTreeMap<(EventId, i64), usize>,
    /// Communications so far, by port.
    sequences: Vec<usize>,
    schedule: Schedule,
}

impl Unroller<'_> {
    fn instr(&mut self, instr: &trainc_ir::plan::Instr, i: u64) -> Result<(), RunError> {
        let name = &self.program.name;
        let mut waits = Vec::new();
        for wait in &instr.waits {
            let index = wait.index.value(i);
            if index < 0 {
                continue;
            }
            let event = self.events.get(&(wait.event, index)).copied();
            waits.push(event.ok_or_else(|| {
                bad(format!("program `{name}` waits for {}[{index}] before anything records it", wait.event))
            })?);
        }
        let mut uses = Vec::new();
        let work = self.work(&instr.action, i, &mut uses)?;
        let record = instr.record.map(|record| self.record(record, i)).transpose()?;
        let at = self.schedule.steps.len();
        let stream = self.schedule.streams.get_mut(instr.stream.index());
        let stream = stream.ok_or_else(|| bad(format!("program `{name}` has no stream {}", instr.stream)))?;
        stream.push(at);
        self.schedule.steps.push(Step { work, waits, record, uses });
        Ok(())
    }

    fn record(&mut self, record: EventRef, i: u64) -> Result<usize, RunError> {
        let index = record.index.value(i);
        let next = self.events.len();
        if index < 0 || self.events.insert((record.event, index), next).is_some() {
            return Err(bad(format!("program `{}` records {}[{index}] twice", self.program.name, record.event)));
        }
        Ok(next)
    }

    fn work(&mut self, action: &Action, i: u64, uses: &mut Vec<Use>) -> Result<Work, RunError> {
        Ok(match action {
            Action::Call { segment, frames, args, micro_batch, site } => {
                let frame = frame_of(frames, micro_batch.value(i));
                let frame = frame.ok_or_else(|| bad(format!("a call of {segment} names no frame")))?;
                self.call(*segment, frame, args, (*micro_batch, *site), i, uses)?
            }
            Action::Load { input, buffer, micro_batch } => {
                let known = self.plan.inputs.get(*input);
                let known = known.ok_or_else(|| bad(format!("the plan has no input {input}")))?;
                let used = self.buffer(*buffer, i, Access::Write)?;
                self.fits(used.span, &known.ty)?;
                uses.push(used);
                let micro_batch = self.micro_batch(*micro_batch, i)? as usize;
                Work::Load { input: *input, micro_batch, span: used.span }
            }
            Action::Send { .. } | Action::Recv { .. } | Action::AllReduce { .. } | Action::Broadcast { .. } => {
                Work::Transfers(vec![self.transfer(action, i, uses)?])
            }
            Action::Group(parts) => {
                let parts: Result<_, _> = parts.iter().map(|part| self.transfer(part, i, uses)).collect();
                Work::Transfers(parts?)
            }
        })
    }

    fn call(
        &self,
        segment: SegmentId,
        frame: trainc_ir::plan::FrameId,
        args: &[BufferRef],
        (micro_batch, site): (Index, u64),
        i: u64,
        uses: &mut Vec<Use>,
    ) -> Result<Work, RunError> {
        let name = &self.program.name;
        let known = self.plan.segments.get(segment).ok_or_else(|| bad(format!("the plan has no segment {segment}")))?;
        let frame =
            self.program.frames.get(frame).ok_or_else(|| bad(format!("program `{name}` has no frame {frame}")))?;
        if args.len() != known.formals.len() || frame.segment != segment || frame.offsets.len() != known.locals.len() {
            return Err(bad(format!(
                "program `{name}` calls segment `{}` with other operands than it has",
                known.name
            )));
        }
        let mut formals = Vec::new();
        for (arg, formal) in args.iter().zip(&known.formals) {
            let used = self.buffer(*arg, i, formal.access)?;
            self.fits(used.span, &formal.ty)?;
            formals.push(used.span);
            uses.push(used);
        }
        let locals: Result<Vec<Span>, _> =
            known.locals.iter().zip(&frame.offsets).map(|(ty, &offset)| self.span(offset, ty)).collect();
        let locals = locals?;
        for call in &known.body {
            let kernel = self.plan.kernels.get(call.kernel);
            let kernel = kernel.ok_or_else(|| bad(format!("the plan has no kernel {}", call.kernel)))?;
            let sides = [(&call.inputs, &kernel.inputs), (&call.outputs, &kernel.outputs)];
            for (operands, types) in sides {
                if operands.len() != types.len() {
                    return Err(bad(format!("segment `{}` calls {} with other operands", known.name, call.kernel)));
                }
                for (operand, ty) in operands.iter().zip(types) {
                    let span = resolve(*operand, &formals, &locals);
                    let span = span.ok_or_else(|| bad(format!("segment `{}` has no operand {operand}", known.name)))?;
                    self.fits(span, ty)?;
                }
            }
        }
        Ok(Work::Call { segment, formals, locals, micro_batch: self.micro_batch(micro_batch, i)?, site })
    }

    fn micro_batch(&self, index: Index, i: u64) -> Result<u64, RunError> {
        let value = u64::try_from(index.value(i)).ok().filter(|&value| value < self.plan.micro_batches.max(1));
        value.ok_or_else(|| {
            bad(format!("program `{}` names a micro-batch beyond {}", self.program.name, self.plan.micro_batches))
        })
    }

    fn transfer(&mut self, action: &Action, i: u64, uses: &mut Vec<Use>) -> Result<Transfer, RunError> {
        let (port, buffer, role, access) = match action {
            Action::Send { port, buffer } => (*port, *buffer, Role::Send, Access::Read),
            Action::Recv { port, buffer } => (*port, *buffer, Role::Recv, Access::Write),
            Action::AllReduce { port, buffer } => (*port, *buffer, Role::AllReduce, Access::Update),
            Action::Broadcast { port, root, buffer } => {
                let root = *root as usize;
                let access = if self.members.get(port.index()) == Some(&root) { Access::Read } else { Access::Write };
                (*port, *buffer, Role::Broadcast { root }, access)
            }
            Action::Call { .. } | Action::Load { .. } | Action::Group(_) => {
                return Err(bad(format!("program `{}` groups what is no transfer", self.program.name)));
            }
        };
        let sequence = self.sequences.get_mut(port.index());
        let sequence = sequence.ok_or_else(|| bad(format!("program `{}` has no port {port}", self.program.name)))?;
        *sequence += 1;
        let sequence = *sequence - 1;
        let used = self.buffer(buffer, i, access)?;
        uses.push(used);
        let dtype = self.program.buffers[buffer.buffer].ty.dtype;
        Ok(Transfer { port: port.index(), sequence, role, span: used.span, dtype })
    }

    fn buffer(&self, reference: BufferRef, i: u64, access: Access) -> Result<Use, RunError> {
        let name = &self.program.name;
        let buffer = self.program.buffers.get(reference.buffer);
        let buffer = buffer.ok_or_else(|| bad(format!("program `{name}` has no buffer {}", reference.buffer)))?;
        if buffer.offsets.is_empty() {
            return Err(bad(format!("buffer `{}` of program `{name}` has no place", buffer.name)));
        }
        let slot = reference.slot.value(i).rem_euclid(buffer.offsets.len() as i64) as usize;
        let span = self.span(buffer.offsets[slot], &buffer.ty)?;
        Ok(Use { buffer: reference.buffer, slot, span, access })
    }

    fn span(&self, offset: u64, ty: &Type) -> Result<Span, RunError> {
        let bytes = ty.checked_elements().and_then(|n| n.checked_mul(ty.dtype.bytes()));
        let inside = |bytes: u64| offset.checked_add(bytes).is_some_and(|end| end <= self.arena as u64);
        match bytes {
            Some(bytes) if inside(bytes) && offset.is_multiple_of(ty.dtype.bytes()) => {
                Ok(Span { start: offset as usize, len: bytes as usize })
            }
            _ => Err(bad(format!(
                "{ty} at offset {offset} of program `{}` is misaligned or leaves the arena of {} bytes",
                self.program.name, self.arena
            ))),
        }
    }

    fn fits(&self, span: Span, ty: &Type) -> Result<(), RunError> {
        let bytes = ty.checked_elements().and_then(|n| n.checked_mul(ty.dtype.bytes()));
        let aligned = (span.start as u64).is_multiple_of(ty.dtype.bytes());
        if bytes == Some(span.len as u64) && aligned {
            return Ok(());
        }
        Err(bad(format!("program `{}` passes {} bytes at {} as {ty}", self.program.name, span.len, span.start)))
    }
}

/// The bytes of an operand.
pub(super) fn resolve(operand: Operand, formals: &[Span], locals: &[Span]) -> Option<Span> {
    match operand {
        Operand::Formal(i) => formals.get(i as usize).copied(),
        Operand::Local(i) => locals.get(i as usize).copied(),
    }
}
