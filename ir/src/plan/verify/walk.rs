//! Walks over the instructions of a program.

use super::error::InstrPlace;
use crate::plan::{Action, Instr, Item, Program, ProgramId};

/// An instruction as it stands in the text of a program.
pub(super) struct Site<'a> {
    pub(super) place: InstrPlace,
    pub(super) instr: &'a Instr,
    /// How often it runs.
    pub(super) trips: u64,
}

/// Every instruction of a program, once.
pub(super) fn sites(id: ProgramId, program: &Program) -> impl Iterator<Item = Site<'_>> {
    program.body.iter().enumerate().flat_map(move |(item, entry)| {
        let (instrs, trips, looped) = match entry {
            Item::Once(instr) => (std::slice::from_ref(instr), 1, false),
            Item::Loop { trips, body } => (body.as_slice(), *trips, true),
        };
        instrs.iter().enumerate().map(move |(position, instr)| {
            let instr_position = looped.then_some(position);
            let place = InstrPlace { rank: None, program: id, item, instr: instr_position, trip: None };
            Site { place, instr, trips }
        })
    })
}

/// The actions of a group, or the action itself.
pub(super) fn parts(action: &Action) -> &[Action] {
    match action {
        Action::Group(actions) => actions,
        Action::Call { .. } | Action::Load { .. } | Action::Send { .. } | Action::Recv { .. } => {
            std::slice::from_ref(action)
        }
        Action::AllReduce { .. } | Action::Broadcast { .. } => std::slice::from_ref(action),
    }
}
