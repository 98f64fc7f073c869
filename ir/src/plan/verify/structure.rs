//! The rules that hold a plan together: format, types, references, groups of transfers, size (P1, P2, P3, P12, P13).

use super::error::{Errors, PlanPlace, PlanRule};
use super::walk;
use crate::id::{Id, Table};
use crate::plan::{Action, BufferRef, FORMAT, Instr, Item, Operand, Plan, PortId, Program, ProgramId};
use crate::ty::Type;

/// How many instructions and kernel calls of a step the verifier expands, over all ranks.
const MAX_WORK: u64 = 50_000_000;
/// How many entries the clocks of its events and streams have.
const MAX_CLOCKS: u64 = 500_000_000;
/// How many values of the training graph it evaluates, over all micro-batches.
const MAX_VALUES: u64 = 50_000_000;

/// The bytes of a type, or `None` where they do not fit in 63 bits.
pub(super) fn bytes(ty: &Type) -> Option<u64> {
    let bytes = ty.checked_elements()?.checked_mul(ty.dtype.bytes())?;
    i64::try_from(bytes).ok().map(|_| bytes)
}

pub(super) fn format(plan: &Plan, errors: &mut Errors) {
    let rule = PlanRule::Format;
    if plan.format != FORMAT {
        errors.push(rule, PlanPlace::Plan, format!("expected format {FORMAT}, found {}", plan.format));
    }
    if plan.micro_batches == 0 || plan.micro_batches > u64::from(u32::MAX) {
        let message = format!("expected between 1 and 2^32 - 1 micro-batches, found {}", plan.micro_batches);
        errors.push(rule, PlanPlace::Plan, message);
    }
    if plan.ranks.is_empty() {
        errors.push(rule, PlanPlace::Plan, "a plan needs at least one rank");
    }
}

pub(super) fn types(plan: &Plan, errors: &mut Errors) {
    let mut check = |ty: &Type, at: PlanPlace| {
        if bytes(ty).is_none() {
            errors.push(PlanRule::Types, at, format!("the size of {ty} does not fit in 63 bits"));
        }
    };
    for (id, input) in plan.inputs.iter() {
        check(&input.ty, PlanPlace::Input(id));
    }
    for (id, kernel) in plan.kernels.iter() {
        for ty in kernel.inputs.iter().chain(&kernel.outputs) {
            check(ty, PlanPlace::Kernel(id));
        }
    }
    for (id, segment) in plan.segments.iter() {
        for ty in segment.formals.iter().map(|formal| &formal.ty).chain(&segment.locals) {
            check(ty, PlanPlace::Segment(id, None));
        }
    }
    for (id, program) in plan.programs.iter() {
        for (buffer, entry) in program.buffers.iter() {
            check(&entry.ty, PlanPlace::Buffer(id, buffer));
        }
    }
    for (position, parameter) in plan.parameters.iter().enumerate() {
        check(&parameter.ty, PlanPlace::Parameter(position));
    }
}

pub(super) fn references(plan: &Plan, errors: &mut Errors) {
    for (id, rank) in plan.ranks.iter() {
        let mut check = Checker { errors: &mut *errors, at: PlanPlace::Rank(id) };
        check.id("group", rank.group, &plan.groups);
        check.id("program", rank.program, &plan.programs);
        for &communicator in &rank.communicators {
            check.id("communicator", communicator, &plan.communicators);
        }
    }
    for (id, members) in plan.communicators.iter() {
        for &member in members {
            Checker { errors: &mut *errors, at: PlanPlace::Communicator(id) }.id("rank", member, &plan.ranks);
        }
    }
    for (id, segment) in plan.segments.iter() {
        for (position, call) in segment.body.iter().enumerate() {
            let mut check = Checker { errors: &mut *errors, at: PlanPlace::Segment(id, Some(position)) };
            check.id("kernel", call.kernel, &plan.kernels);
            for operand in call.inputs.iter().chain(&call.outputs) {
                let (what, index, count) = match operand {
                    Operand::Formal(index) => ("formal", *index, segment.formals.len()),
                    Operand::Local(index) => ("local", *index, segment.locals.len()),
                };
                check.index(what, index as usize, count);
            }
        }
    }
    for (id, program) in plan.programs.iter() {
        for (frame, entry) in program.frames.iter() {
            let mut check = Checker { errors: &mut *errors, at: PlanPlace::Frame(id, frame) };
            check.id("segment", entry.segment, &plan.segments);
        }
        for output in &program.outputs {
            let mut check = Checker { errors: &mut *errors, at: PlanPlace::Program(id) };
            check.id("buffer", output.buffer, &program.buffers);
        }
        for site in walk::sites(id, program) {
            let mut check = Checker { errors: &mut *errors, at: PlanPlace::Instr(site.place) };
            check.instr(plan, program, site.instr);
        }
    }
    for (position, parameter) in plan.parameters.iter().enumerate() {
        let mut check = Checker { errors: &mut *errors, at: PlanPlace::Parameter(position) };
        for holder in &parameter.holders {
            if check.id("program", holder.program, &plan.programs) {
                check.id("buffer", holder.buffer, &plan.programs[holder.program].buffers);
            }
        }
    }
}

struct Checker<'e> {
    errors: &'e mut Errors,
    at: PlanPlace,
}

impl Checker<'_> {
    fn index(&mut self, what: &str, index: usize, count: usize) -> bool {
        if index < count {
            return true;
        }
        let message = format!("expected one of {count} {what}s, found number {index}");
        self.errors.push(PlanRule::References, self.at.clone(), message);
        false
    }

    fn id<I: Id, T>(&mut self, what: &str, id: I, table: &Table<I, T>) -> bool {
        self.index(what, id.index(), table.len())
    }

    fn instr(&mut self, plan: &Plan, program: &Program, instr: &Instr) {
        self.id("stream", instr.stream, &program.streams);
        for event in instr.waits.iter().chain(&instr.record) {
            self.id("event", event.event, &program.events);
        }
        for action in walk::parts(&instr.action) {
            match action {
                Action::Call { segment, frames, args, micro_batch: _, site: _ } => {
                    self.id("segment", *segment, &plan.segments);
                    for frame in frames {
                        self.id("frame", *frame, &program.frames);
                    }
                    args.iter().for_each(|arg| self.buffer(program, *arg));
                }
                Action::Load { input, buffer, micro_batch: _ } => {
                    self.id("input", *input, &plan.inputs);
                    self.buffer(program, *buffer);
                }
                Action::Send { port, buffer } | Action::Recv { port, buffer } => {
                    self.transfer(program, *port, *buffer);
                }
                Action::AllReduce { port, buffer } | Action::Broadcast { port, root: _, buffer } => {
                    self.transfer(program, *port, *buffer);
                }
                // Rule P13 forbids it.
                Action::Group(_) => {}
            }
        }
    }

    fn transfer(&mut self, program: &Program, port: PortId, buffer: BufferRef) {
        self.id("port", port, &program.ports);
        self.buffer(program, buffer);
    }

    fn buffer(&mut self, program: &Program, buffer: BufferRef) {
        self.id("buffer", buffer.buffer, &program.buffers);
    }
}

pub(super) fn groups(plan: &Plan, errors: &mut Errors) {
    for (id, program) in plan.programs.iter() {
        for site in walk::sites(id, program) {
            if let Action::Group(actions) = &site.instr.action
                && let Err(message) = group(actions)
            {
                errors.push(PlanRule::Groups, PlanPlace::Instr(site.place), message);
            }
        }
    }
}

fn group(actions: &[Action]) -> Result<(), String> {
    let mut ports = Vec::new();
    for action in actions {
        match action {
            Action::Send { port, buffer: _ } | Action::Recv { port, buffer: _ } => ports.push(*port),
            Action::Call { .. } | Action::Load { .. } | Action::AllReduce { .. } => {
                return Err("only sends and receives may stand in a group".to_owned());
            }
            Action::Broadcast { .. } | Action::Group(_) => {
                return Err("only sends and receives may stand in a group".to_owned());
            }
        }
    }
    if ports.is_empty() {
        return Err("a group must hold at least one transfer".to_owned());
    }
    ports.sort_unstable();
    match ports.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("expected every transfer of a group on its own port, found {} twice", pair[0])),
        None => Ok(()),
    }
}

/// Bounds the work of everything after: instructions and kernels of all ranks, clocks, values of the training graph.
pub(super) fn size(plan: &Plan, values: usize, errors: &mut Errors) {
    let mut bound = |what: &str, found: u64, limit: u64| {
        if found > limit {
            let message = format!("expected at most {limit} {what} in a step, found {found}");
            errors.push(PlanRule::Size, PlanPlace::Plan, message);
        }
    };
    let mut instances = 0u64;
    let mut clocks = 0u64;
    let mut streams = 0u64;
    let work: Vec<_> = plan.programs.iter().map(|(id, program)| program_work(plan, id, program)).collect();
    // Every program is walked once by itself, whoever runs it.
    for (instrs, _) in &work {
        instances = instances.saturating_add(*instrs);
    }
    for (_, rank) in plan.ranks.iter() {
        let (instrs, records) = work[rank.program.index()];
        instances = instances.saturating_add(instrs);
        clocks = clocks.saturating_add(records);
        streams += plan.programs[rank.program].streams.len() as u64;
    }
    bound("instructions and kernels", instances, MAX_WORK);
    // A clock has an entry per stream and some overhead; events and streams have one each.
    let entries = clocks.saturating_add(streams).saturating_mul(streams + 16);
    bound("entries of clocks", entries, MAX_CLOCKS);
    bound("values", plan.micro_batches.saturating_mul(values as u64), MAX_VALUES);
}

/// Instructions with their kernels, and recorded events, of one run of a program.
fn program_work(plan: &Plan, id: ProgramId, program: &Program) -> (u64, u64) {
    let empty_trips = program.body.iter().map(|item| match item {
        Item::Once(_) => 0,
        Item::Loop { trips, body } => {
            if body.is_empty() {
                *trips
            } else {
                0
            }
        }
    });
    let mut instances = empty_trips.fold(0, u64::saturating_add);
    let mut records = 0u64;
    for site in walk::sites(id, program) {
        let mut work = 1 + site.instr.waits.len() as u64;
        for action in walk::parts(&site.instr.action) {
            work += match action {
                Action::Call { segment, .. } => {
                    let segment = &plan.segments[*segment];
                    (segment.body.len() + segment.formals.len() + segment.locals.len()) as u64
                }
                Action::Load { .. } | Action::Send { .. } | Action::Recv { .. } => 1,
                Action::AllReduce { .. } | Action::Broadcast { .. } | Action::Group(_) => 1,
            };
        }
        instances = instances.saturating_add(site.trips.saturating_mul(work));
        if site.instr.record.is_some() {
            records = records.saturating_add(site.trips);
        }
    }
    (instances, records)
}
