//! Streams: the instructions of a program that one stream runs, in order, trip by trip.

use super::error::InstrPlace;
use crate::id::Id;
use crate::plan::{Instr, Item, Program, ProgramId, RankId, StreamId};

/// The instructions of one stream of a program.
#[derive(Debug)]
pub(super) struct Script<'a> {
    program: ProgramId,
    parts: Vec<Part<'a>>,
}

/// Consecutive instructions of one item.
#[derive(Debug)]
struct Part<'a> {
    item: usize,
    looped: bool,
    trips: u64,
    instrs: Vec<(usize, &'a Instr)>,
}

/// Where a stream stands in its script.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    part: usize,
    trip: u64,
    position: usize,
}

/// An instruction in one trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    pub(super) instr: &'a Instr,
    /// The loop's counter, 0 outside of loops.
    pub(super) i: u64,
    pub(super) place: InstrPlace,
}

impl<'a> Script<'a> {
    /// The scripts of all streams of a program.
    pub(super) fn all(id: ProgramId, program: &'a Program) -> Vec<Self> {
        let mut scripts: Vec<Self> = program.streams.ids().map(|_| Self { program: id, parts: Vec::new() }).collect();
        for (item, entry) in program.body.iter().enumerate() {
            let (instrs, trips, looped) = match entry {
                Item::Once(instr) => (std::slice::from_ref(instr), 1, false),
                Item::Loop { trips, body } => (body.as_slice(), *trips, true),
            };
            if trips == 0 {
                continue;
            }
            for (position, instr) in instrs.iter().enumerate() {
                let parts = &mut scripts[instr.stream.index()].parts;
                if parts.last().is_none_or(|part| part.item != item) {
                    parts.push(Part { item, looped, trips, instrs: Vec::new() });
                }
                parts.last_mut().expect("one was just pushed").instrs.push((position, instr));
            }
        }
        scripts
    }

    /// The instruction at the cursor, or `None` when the stream is done.
    pub(super) fn at(&self, rank: RankId, cursor: Cursor) -> Option<Step<'a>> {
        let part = self.parts.get(cursor.part)?;
        let (position, instr) = part.instrs[cursor.position];
        let (instr_position, trip) = if part.looped { (Some(position), Some(cursor.trip)) } else { (None, None) };
        let place =
            InstrPlace { rank: Some(rank), program: self.program, item: part.item, instr: instr_position, trip };
        Some(Step { instr, i: cursor.trip, place })
    }

    pub(super) fn next(&self, cursor: Cursor) -> Cursor {
        let Cursor { part, trip, position } = cursor;
        let here = &self.parts[part];
        if position + 1 < here.instrs.len() {
            Cursor { part, trip, position: position + 1 }
        } else if trip + 1 < here.trips {
            Cursor { part, trip: trip + 1, position: 0 }
        } else {
            Cursor { part: part + 1, trip: 0, position: 0 }
        }
    }

    /// The instruction that ran as the `time`-th of the stream, counted from 1.
    pub(super) fn past(&self, rank: RankId, time: u32) -> Option<Step<'a>> {
        let mut left = u64::from(time).checked_sub(1)?;
        for (index, part) in self.parts.iter().enumerate() {
            let (each, all) = (part.instrs.len() as u64, part.instrs.len() as u64 * part.trips);
            if left < all {
                return self.at(rank, Cursor { part: index, trip: left / each, position: (left % each) as usize });
            }
            left -= all;
        }
        None
    }
}

/// A stream's name in messages.
pub(super) fn stream_name(program: &Program, index: usize) -> String {
    let id = StreamId::from_index(index);
    format!("{id} `{}`", program.streams[id].name)
}
