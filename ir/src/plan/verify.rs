//! The plan verifier: proves from the plan and the training graph alone that a step computes what it must. It trusts
//! nothing that produced the plan.
//!
//! First the structure is checked, entity by entity:
//!
//! - P1: the format version is known, and there is at least one rank and one micro-batch.
//! - P2: every type has a size in bytes below 2^63.
//! - P3: every id names an entity that exists.
//! - P4: a kernel's results have the types that its operator infers, and the operator is executable.
//! - P5: operands of a segment have the element type and size that their kernels need, and formals are used as they
//!   declare.
//! - P6: a call's frame belongs to its segment and its actuals fit the formals, one for one.
//! - P7: a buffer has at least one slot, and every offset is a multiple of the element size and inside the arena.
//! - P8: parameters and states have one slot, and overlap no other parameter or state.
//! - P9: ranks fill their groups and their programs' ports, and are members of the communicators they use.
//! - P10: inputs, parameters, holders and outputs are those of the training graph.
//! - P11: micro-batch numbers are in range, and no event is recorded at a negative index.
//! - P12: the step is small enough to be checked.
//! - P13: a group holds sends and receives only, each on a communicator of its own.
//! - P14: the predicted bytes hold the arena and fit the device.
//! - P15: an event instance is recorded at most once, and stands in its program before what waits for it.
//!
//! Then all ranks run together on *terms* (values by number; a recomputed value has the term of the first one):
//!
//! - P16: a rank comes to the transfers of a communicator in one order.
//! - P17: all ranks of a transfer agree on what is transferred.
//! - P18: every instruction is reached.
//! - P19: of two accesses to the same bytes, one of them a write, one happens before the other.
//! - P20: a result shares bytes with an operand only where the operator allows it, and then exactly.
//! - P21: what is read was written before, under the same name (slot of a buffer, or local), and is still whole.
//! - P22: every kernel computes a value of the training graph.
//! - P23: after the step every parameter, state and updated buffer holds its update.
//! - P24: after the step the outputs hold the loss sum and count.
//!
//! The terms that P22 to P24 compare with come from the training graph: `step` evaluated on each micro-batch, the buffers that
//! it updates going from one to the next; each
//! contribution and loss summed by `accumulate` from a zero constant, in ascending micro-batch order; `update` on those
//! sums, its `count` being the accumulated loss count. An all-reduce is the `add` of its members in their order.

mod clock;
mod error;
mod finish;
mod interface;
mod kernels;
mod link;
mod machine;
mod memory;
mod programs;
mod ranks;
mod reference;
mod stream;
mod structure;
mod term;
mod transfer;
mod walk;

pub use error::{InstrPlace, PlanError, PlanPlace, PlanRule};

use super::Plan;
use crate::training::TrainingGraph;
use error::Errors;
use machine::Machine;
use term::Terms;

/// A plan that [`verify`] accepted; what runs plans takes nothing else.
#[derive(Clone, Debug)]
pub struct VerifiedPlan {
    plan: Plan,
}

impl VerifiedPlan {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The plan, as one that has to be verified again.
    pub fn into_plan(self) -> Plan {
        self.plan
    }
}

/// Checks a plan against the training graph it is for.
///
/// # Errors
/// The rules that are broken, at most a few dozen of them.
pub fn verify(plan: &Plan, training: &TrainingGraph) -> Result<VerifiedPlan, Vec<PlanError>> {
    let mut errors = Errors::default();
    structure::format(plan, &mut errors);
    structure::types(plan, &mut errors);
    structure::references(plan, &mut errors);
    structure::groups(plan, &mut errors);
    errors.check()?;

    let values = training.step.values.len() + training.update.values.len();
    structure::size(plan, values, &mut errors);
    kernels::kernels(plan, &mut errors);
    kernels::segments(plan, &mut errors);
    programs::calls(plan, &mut errors);
    errors.check()?;

    programs::offsets(plan, &mut errors);
    programs::persistent(plan, &mut errors);
    programs::indices(plan, &mut errors);
    interface::interface(plan, training, &mut errors);
    ranks::bytes(plan, &mut errors);
    errors.check()?;
    ranks::ranks(plan, &mut errors);
    errors.check()?;

    let mut terms = Terms::new();
    let reference = reference::build(training, plan.micro_batches, &mut terms);
    let mut machine = Machine::new(plan, &mut terms, &mut errors);
    finish::begin(&mut machine, &reference);
    machine.run();
    finish::end(&mut machine, &reference);
    errors.check()?;
    Ok(VerifiedPlan { plan: plan.clone() })
}
