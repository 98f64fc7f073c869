//! The rules of programs: calls, offsets, persistent buffers, indices, events in program order (P6, P7, P8, P11, P15).

use super::error::{Errors, InstrPlace, PlanPlace, PlanRule};
use super::kernels::same_bytes;
use super::walk;
use crate::plan::{Action, BufferKind, EventId, FrameId, Index, Instr, Item, Plan, Program, SegmentId};
use crate::ty::Type;
use std::collections::HashSet;

pub(super) fn calls(plan: &Plan, errors: &mut Errors) {
    for (id, program) in plan.programs.iter() {
        for (frame, entry) in program.frames.iter() {
            let locals = plan.segments[entry.segment].locals.len();
            if entry.offsets.len() != locals {
                let segment = entry.segment;
                let message = format!("{segment} has {locals} locals, found {} offsets", entry.offsets.len());
                errors.push(PlanRule::Calls, PlanPlace::Frame(id, frame), message);
            }
        }
        for site in walk::sites(id, program) {
            for action in walk::parts(&site.instr.action) {
                if let Err(message) = action_types(plan, program, action) {
                    errors.push(PlanRule::Calls, PlanPlace::Instr(site.place), message);
                }
            }
        }
    }
}

fn action_types(plan: &Plan, program: &Program, action: &Action) -> Result<(), String> {
    match action {
        Action::Call { segment, frames, args, micro_batch: _, site: _ } => {
            if frames.is_empty() {
                return Err("a call needs at least one frame, found none".to_owned());
            }
            frames.iter().try_for_each(|frame| frame_fits(program, *segment, *frame))?;
            let formals = &plan.segments[*segment].formals;
            if args.len() != formals.len() {
                return Err(format!("{segment} has {} formals, found {} actuals", formals.len(), args.len()));
            }
            for (position, (arg, formal)) in args.iter().zip(formals).enumerate() {
                let held = &program.buffers[arg.buffer].ty;
                if !same_bytes(held, &formal.ty) {
                    return Err(format!(
                        "actual {position}: expected the bytes of {}, found {held} ({arg})",
                        formal.ty
                    ));
                }
            }
            Ok(())
        }
        Action::Load { input, buffer, micro_batch: _ } => {
            let (expected, held) = (&plan.inputs[*input].ty, &program.buffers[buffer.buffer].ty);
            if same_bytes(held, expected) {
                return Ok(());
            }
            Err(format!("a load of {input} needs the bytes of {expected}, found {held} ({buffer})"))
        }
        Action::Send { .. } | Action::Recv { .. } | Action::AllReduce { .. } | Action::Broadcast { .. } => Ok(()),
        Action::Group(_) => Ok(()),
    }
}

fn frame_fits(program: &Program, segment: SegmentId, frame: FrameId) -> Result<(), String> {
    let found = program.frames[frame].segment;
    if found == segment {
        return Ok(());
    }
    Err(format!("expected a frame of {segment}, found {frame} of {found}"))
}

/// Offsets are aligned to the element size: that is what any load and store needs.
pub(super) fn offsets(plan: &Plan, errors: &mut Errors) {
    for (id, program) in plan.programs.iter() {
        if program.arena_bytes > i64::MAX as u64 {
            errors.push(PlanRule::Offsets, PlanPlace::Program(id), "the arena does not fit in 63 bits");
        }
        let mut check = |offset: u64, ty: &Type, at: PlanPlace| {
            let align = ty.dtype.bytes();
            if !offset.is_multiple_of(align) {
                let message = format!("expected an offset that is a multiple of {align} for {ty}, found {offset}");
                errors.push(PlanRule::Offsets, at.clone(), message);
            }
            if offset.checked_add(ty.bytes()).is_none_or(|end| end > program.arena_bytes) {
                let arena = program.arena_bytes;
                let message = format!("{ty} at offset {offset} ends after the arena of {arena} bytes");
                errors.push(PlanRule::Offsets, at, message);
            }
        };
        for (buffer, entry) in program.buffers.iter() {
            entry.offsets.iter().for_each(|&offset| check(offset, &entry.ty, PlanPlace::Buffer(id, buffer)));
        }
        for (frame, entry) in program.frames.iter() {
            for (&offset, ty) in entry.offsets.iter().zip(&plan.segments[entry.segment].locals) {
                check(offset, ty, PlanPlace::Frame(id, frame));
            }
        }
        for (buffer, entry) in program.buffers.iter() {
            if entry.offsets.is_empty() {
                let message = "a buffer needs at least one slot, found none";
                errors.push(PlanRule::Offsets, PlanPlace::Buffer(id, buffer), message);
            }
        }
    }
}

pub(super) fn persistent(plan: &Plan, errors: &mut Errors) {
    for (id, program) in plan.programs.iter() {
        let mut places = Vec::new();
        for (buffer, entry) in program.buffers.iter() {
            if !matches!(entry.kind, BufferKind::Parameter | BufferKind::State) {
                continue;
            }
            match entry.offsets[..] {
                [offset] if entry.ty.bytes() > 0 => places.push((offset, entry.ty.bytes(), buffer)),
                [_] => {}
                _ => {
                    let message = format!("expected one slot, found {}", entry.offsets.len());
                    errors.push(PlanRule::Persistent, PlanPlace::Buffer(id, buffer), message);
                }
            }
        }
        places.sort_unstable();
        for pair in places.windows(2) {
            let ((offset, bytes, first), (next, _, second)) = (pair[0], pair[1]);
            if offset + bytes > next {
                let end = offset + bytes;
                let message = format!("starts at {next}, inside of {first} ({offset} to {end})");
                errors.push(PlanRule::Persistent, PlanPlace::Buffer(id, second), message);
            }
        }
    }
}

/// Checks the indices of every trip, and that events stand in program order: an issuer that walks the body once, as a
/// device with asynchronous streams does, records an event before it enqueues a wait for it.
pub(super) fn indices(plan: &Plan, errors: &mut Errors) {
    for (id, program) in plan.programs.iter() {
        let mut walker = Walker { plan, recorded: HashSet::new(), errors };
        for (item, entry) in program.body.iter().enumerate() {
            match entry {
                Item::Once(instr) => {
                    let place = InstrPlace { rank: None, program: id, item, instr: None, trip: None };
                    walker.instr(place, instr, 0);
                }
                Item::Loop { trips, body } => {
                    for i in 0..*trips {
                        for (position, instr) in body.iter().enumerate() {
                            let instr_position = Some(position);
                            let place =
                                InstrPlace { rank: None, program: id, item, instr: instr_position, trip: Some(i) };
                            walker.instr(place, instr, i);
                        }
                        if walker.errors.is_full() {
                            return;
                        }
                    }
                }
            }
        }
    }
}

struct Walker<'a> {
    plan: &'a Plan,
    recorded: HashSet<(EventId, i64)>,
    errors: &'a mut Errors,
}

impl Walker<'_> {
    fn instr(&mut self, place: InstrPlace, instr: &Instr, i: u64) {
        for wait in &instr.waits {
            let index = wait.index.value(i);
            if index >= 0 && !self.recorded.contains(&(wait.event, index)) {
                let message = format!("waits for {}[{index}], which nothing before it records", wait.event);
                self.errors.push(PlanRule::Events, PlanPlace::Instr(place), message);
            }
        }
        match &instr.action {
            Action::Call { micro_batch, .. } => self.micro_batch(place, *micro_batch, i),
            Action::Load { micro_batch, .. } => self.micro_batch(place, *micro_batch, i),
            Action::Send { .. } | Action::Recv { .. } | Action::AllReduce { .. } | Action::Broadcast { .. } => {}
            Action::Group(_) => {}
        }
        if let Some(record) = &instr.record {
            let index = record.index.value(i);
            if index < 0 {
                let message = format!("records {}[{index}], expected an index that is not negative", record.event);
                self.errors.push(PlanRule::Indices, PlanPlace::Instr(place), message);
            } else if !self.recorded.insert((record.event, index)) {
                let message = format!("records {}[{index}], which is recorded before", record.event);
                self.errors.push(PlanRule::Events, PlanPlace::Instr(place), message);
            }
        }
    }

    fn micro_batch(&mut self, place: InstrPlace, index: Index, i: u64) {
        let (found, count) = (index.value(i), self.plan.micro_batches);
        if u64::try_from(found).is_ok_and(|found| found < count) {
            return;
        }
        let message = format!("expected a micro-batch below {count}, found {found}");
        self.errors.push(PlanRule::Indices, PlanPlace::Instr(place), message);
    }
}
