//! Segments at fixed offsets: which kernel reads the result of which, through which bytes. Done once per placement of
//! a call; running the call is then a matter of looking up terms. Rules P20 and P21 inside of a call.

use super::error::PlanRule;
use super::memory::{Contents, Interval, Missing, Slot, merged};
use super::structure::bytes;
use super::term::{Signature, Terms};
use crate::plan::{Access, KernelCall, Operand, Plan, Program, SegmentId};

/// A segment at fixed offsets.
#[derive(Debug)]
pub(super) struct Linked {
    pub(super) segment: SegmentId,
    /// Formals that bring a value, which is numbered as the formal is.
    pub(super) inputs: Vec<(usize, Interval)>,
    /// Kernels in order.
    pub(super) steps: Vec<Step>,
    /// Number of values: formals, one unknown, results.
    pub(super) values: usize,
    /// Bytes that the call reads only.
    pub(super) reads: Vec<Interval>,
    /// Bytes that the call writes, its locals included.
    pub(super) writes: Vec<Interval>,
    /// What lies in the written formals when the call is done.
    pub(super) results: Vec<(Interval, usize, Slot)>,
    /// What is wrong: the kernel call, the rule, the message.
    pub(super) faults: Vec<(usize, PlanRule, String)>,
}

/// A kernel call with its operands by value.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) signature: Signature,
    pub(super) inputs: Vec<usize>,
    /// The first of its results.
    pub(super) first: usize,
    /// For each result whether it has no bytes.
    pub(super) empty: Vec<bool>,
}

/// The name under which bytes were written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Actual(Slot),
    Local(u32),
}

struct Linker<'a> {
    actuals: &'a [Slot],
    formals: &'a [Interval],
    locals: &'a [Interval],
    contents: Contents<(usize, Owner)>,
    unknown: usize,
    faults: Vec<(usize, PlanRule, String)>,
}

/// Links a segment to slots and locals of a program. `signatures` are the plan's kernels'.
pub(super) fn link(
    plan: &Plan,
    program: &Program,
    id: SegmentId,
    actuals: &[Slot],
    locals: &[u64],
    signatures: &[Signature],
) -> Linked {
    use crate::id::Id;
    let segment = &plan.segments[id];
    let place = |(&start, ty)| Interval::new(start, bytes(ty).expect("rule P2 bounds the size"));
    let offsets: Vec<u64> =
        actuals.iter().map(|slot| program.buffers[slot.buffer].offsets[slot.number as usize]).collect();
    let formals: Vec<_> = offsets.iter().zip(segment.formals.iter().map(|formal| &formal.ty)).map(place).collect();
    let locals: Vec<_> = locals.iter().zip(&segment.locals).map(place).collect();

    let mut inputs = Vec::new();
    let (mut reads, mut writes) = (Vec::new(), locals.clone());
    let mut contents = Contents::new();
    for (index, (formal, &interval)) in segment.formals.iter().zip(&formals).enumerate() {
        match formal.access {
            Access::Read => reads.push(interval),
            Access::Write | Access::Update => writes.push(interval),
        }
        if formal.access != Access::Write {
            inputs.push((index, interval));
            if !interval.is_empty() {
                contents.write(interval, (index, Owner::Actual(actuals[index])));
            }
        }
    }

    let unknown = formals.len();
    let mut linker = Linker { actuals, formals: &formals, locals: &locals, contents, unknown, faults: Vec::new() };
    let mut values = unknown + 1;
    let mut steps = Vec::new();
    for (position, call) in segment.body.iter().enumerate() {
        let signature = signatures[call.kernel.index()];
        linker.sharing(position, call, plan.kernels[call.kernel].op.in_place());
        let inputs = call.inputs.iter().map(|&operand| linker.read(position, operand)).collect();
        let first = values;
        values += call.outputs.len();
        for (index, &operand) in call.outputs.iter().enumerate() {
            linker.write(operand, first + index);
        }
        let empty = call.outputs.iter().map(|&operand| linker.interval(operand).is_empty()).collect();
        steps.push(Step { signature, inputs, first, empty });
    }

    let Linker { contents, faults, .. } = linker;
    let written = |interval: &Interval| {
        let mut formals = segment.formals.iter().zip(&formals);
        formals.any(|(formal, place)| formal.access != Access::Read && place == interval)
    };
    let results = contents.iter().filter(|(interval, _)| written(interval));
    let results = results.filter_map(|(interval, (value, owner))| match owner {
        Owner::Actual(slot) => Some((interval, value, slot)),
        Owner::Local(_) => None,
    });
    let results = results.collect();
    let (reads, writes) = (merged(reads), merged(writes));
    Linked { segment: id, inputs, steps, values, reads, writes, results, faults }
}

impl Linker<'_> {
    fn interval(&self, operand: Operand) -> Interval {
        match operand {
            Operand::Formal(index) => self.formals[index as usize],
            Operand::Local(index) => self.locals[index as usize],
        }
    }

    fn owner(&self, operand: Operand) -> Owner {
        match operand {
            Operand::Formal(index) => Owner::Actual(self.actuals[index as usize]),
            Operand::Local(index) => Owner::Local(index),
        }
    }

    fn read(&mut self, position: usize, operand: Operand) -> usize {
        let interval = self.interval(operand);
        if interval.is_empty() {
            return self.unknown;
        }
        let found = match self.contents.read(interval) {
            Ok((value, owner)) if owner == self.owner(operand) => return value,
            Ok(_) => format!("{operand} was overwritten through another name"),
            Err(Missing::Undefined) => format!("{operand} is read before it is written"),
            Err(Missing::Other(_)) => format!("{operand} is read after some of its bytes were given to something else"),
        };
        self.faults.push((position, PlanRule::Reads, found));
        self.unknown
    }

    fn write(&mut self, operand: Operand, value: usize) {
        let interval = self.interval(operand);
        if !interval.is_empty() {
            self.contents.write(interval, (value, self.owner(operand)));
        }
    }

    /// Results share bytes with operands only as the operator allows, and never with one another.
    fn sharing(&mut self, position: usize, call: &KernelCall, allowed: &[(usize, usize)]) {
        let mut fault = |message| self.faults.push((position, PlanRule::InPlace, message));
        let interval = |operand| match operand {
            Operand::Formal(index) => self.formals[index as usize],
            Operand::Local(index) => self.locals[index as usize],
        };
        for (result, &output) in call.outputs.iter().enumerate() {
            for (operand, &input) in call.inputs.iter().enumerate() {
                let (to, from) = (interval(output), interval(input));
                if to.overlaps(from) && !(to == from && allowed.contains(&(result, operand))) {
                    fault(format!("result {result} ({output}) shares bytes with operand {operand} ({input})"));
                }
            }
            for (other, &second) in call.outputs.iter().enumerate().skip(result + 1) {
                if interval(output).overlaps(interval(second)) {
                    fault(format!("results {result} ({output}) and {other} ({second}) share bytes"));
                }
            }
        }
    }
}

/// The numbers of a plan's kernels.
pub(super) fn signatures(plan: &Plan, terms: &mut Terms) -> Vec<Signature> {
    plan.kernels.values().map(|kernel| terms.signature(&kernel.op, &kernel.inputs, &kernel.outputs)).collect()
}
