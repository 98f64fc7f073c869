//! What lies in the arenas before and after a step. Rules P23 and P24.

use super::error::{PlanPlace, PlanRule};
use super::interface::LOSSES;
use super::machine::Machine;
use super::memory::{Interval, Slot};
use super::reference::Reference;
use super::structure::bytes;
use super::term::Term;
use crate::graph::InputRole;
use crate::id::Id;
use crate::plan::{BufferId, BufferKind, Plan, ProgramId, RankId};

/// Puts the weights and states where their buffers are.
pub(super) fn begin(machine: &mut Machine<'_>, reference: &Reference) {
    for rank in 0..machine.ranks.len() {
        let program = machine.ranks[rank].program;
        for (buffer, role) in persistent(machine.plan, program, reference) {
            let entry = &machine.plan.programs[program].buffers[buffer];
            let term = machine.terms.leaf(role, &entry.name, 0);
            let interval = interval(machine.plan, program, buffer);
            if !interval.is_empty() {
                machine.ranks[rank].memory.write(interval, (term, Slot { buffer, number: 0 }));
            }
        }
    }
}

/// Checks what the step left behind; says nothing where it did not come to its end.
pub(super) fn end(machine: &mut Machine<'_>, reference: &Reference) {
    if !machine.errors.is_empty() {
        return;
    }
    for rank in 0..machine.ranks.len() {
        let program = machine.ranks[rank].program;
        for (buffer, role) in persistent(machine.plan, program, reference) {
            let name = &machine.plan.programs[program].buffers[buffer].name;
            let expected = reference.finals.get(&(role, name.clone())).copied().unwrap_or(Term::UNKNOWN);
            holds(machine, rank, buffer, expected, PlanRule::Updates);
        }
        for output in &machine.plan.programs[program].outputs {
            let position = LOSSES.iter().position(|name| *name == output.name);
            let expected = position.map_or(Term::UNKNOWN, |position| reference.losses[position]);
            holds(machine, rank, output.buffer, expected, PlanRule::Losses);
        }
    }
}

fn holds(machine: &mut Machine<'_>, rank: usize, buffer: BufferId, expected: Term, rule: PlanRule) {
    let program = machine.ranks[rank].program;
    let interval = interval(machine.plan, program, buffer);
    if interval.is_empty() {
        return;
    }
    let found = machine.ranks[rank].memory.read(interval);
    if found == Ok((expected, Slot { buffer, number: 0 })) && expected != Term::UNKNOWN {
        return;
    }
    let name = &machine.plan.programs[program].buffers[buffer].name;
    let expected = machine.terms.describe(expected);
    let found = found.map_or_else(|_| "no value".to_owned(), |(term, _)| machine.terms.describe(term));
    let rank = RankId::from_index(rank);
    let message = format!("on rank {rank} `{name}` must end as {expected}, found {found}");
    machine.errors.push(rule, PlanPlace::Buffer(program, buffer), message);
}

fn interval(plan: &Plan, program: ProgramId, buffer: BufferId) -> Interval {
    let entry = &plan.programs[program].buffers[buffer];
    Interval::new(entry.offsets[0], bytes(&entry.ty).expect("rule P2 bounds the size"))
}

/// The buffers that hold weights and states, with the role of the training graph's input that they hold.
fn persistent(plan: &Plan, program: ProgramId, reference: &Reference) -> Vec<(BufferId, InputRole)> {
    let role = |(id, buffer): (BufferId, &crate::plan::Buffer)| match buffer.kind {
        BufferKind::Parameter => reference.weights.get(&buffer.name).map(|&role| (id, role)),
        BufferKind::State => Some((id, InputRole::State)),
        BufferKind::Gradient | BufferKind::Scalar | BufferKind::Data => None,
        BufferKind::Saved | BufferKind::Boundary => None,
    };
    plan.programs[program].buffers.iter().filter_map(role).collect()
}
