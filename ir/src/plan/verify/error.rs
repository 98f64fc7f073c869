//! What the plan verifier says: the rule that is broken, where in the plan, what was expected and what was found.

use crate::diag::{Diagnostic, Place};
use crate::plan::{
    Action, BufferId, CommunicatorId, FrameId, GroupId, InputId, KernelId, Plan, ProgramId, RankId, SegmentId,
};
use std::fmt;

macro_rules! rules {
    ($($variant:ident = $number:literal, $text:literal;)*) => {
        /// A rule of the plan verifier; displayed as `P7`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum PlanRule { $(#[doc = $text] $variant = $number),* }

        impl PlanRule {
            /// All rules in order, each with what it demands.
            pub const ALL: &'static [(Self, &'static str)] = &[$((Self::$variant, $text)),*];
        }
    };
}

rules! {
    Format = 1, "the format version is known, and there is at least one rank and one micro-batch";
    Types = 2, "every type has a size in bytes below 2^63";
    References = 3, "every id names an entity that exists";
    Kernels = 4, "a kernel's results have the types that its operator infers, and the operator is executable";
    Segments = 5, "operands of a segment have the element type and size that their kernels need, and formals are used as they declare";
    Calls = 6, "a call's frame belongs to its segment and its actuals fit the formals, one for one";
    Offsets = 7, "a buffer has at least one slot, and every offset is a multiple of the element size and inside the arena";
    Persistent = 8, "parameters and states have one slot, and overlap no other parameter or state";
    Ranks = 9, "ranks fill their groups and their programs' ports, and are members of the communicators they use";
    Interface = 10, "inputs, parameters, holders and outputs are those of the training graph";
    Indices = 11, "micro-batch numbers are in range, and no event is recorded at a negative index";
    Size = 12, "the step is small enough to be checked";
    Groups = 13, "a group holds sends and receives only, each on a communicator of its own";
    Bytes = 14, "the predicted bytes hold the arena and fit the device";
    Events = 15, "an event instance is recorded at most once, and stands in its program before what waits for it";
    Order = 16, "a rank comes to the transfers of a communicator in one order";
    Transfers = 17, "all ranks of a transfer agree on what is transferred";
    Deadlock = 18, "every instruction is reached";
    Races = 19, "of two accesses to the same bytes, one of them a write, one happens before the other";
    InPlace = 20, "a result shares bytes with an operand only where the operator allows it, and then exactly";
    Reads = 21, "what is read was written before, under the same name, and is still whole";
    Computation = 22, "every kernel computes a value of the training graph";
    Updates = 23, "after the step every parameter, state and updated buffer holds its update";
    Losses = 24, "after the step the outputs hold the loss sum and count";
}

impl fmt::Display for PlanRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P{}", *self as u8)
    }
}

/// Where in a plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanPlace {
    /// The plan as a whole.
    Plan,
    /// An input.
    Input(InputId),
    /// A parameter by its position in the list of parameters.
    Parameter(usize),
    /// A placement group.
    Group(GroupId),
    /// A rank.
    Rank(RankId),
    /// A communicator.
    Communicator(CommunicatorId),
    /// A kernel.
    Kernel(KernelId),
    /// A segment, or one of its kernel calls.
    Segment(SegmentId, Option<usize>),
    /// A program.
    Program(ProgramId),
    /// A buffer of a program.
    Buffer(ProgramId, BufferId),
    /// A frame of a program.
    Frame(ProgramId, FrameId),
    /// An instruction.
    Instr(InstrPlace),
    /// A kernel call that an instruction runs.
    InstrKernel(InstrPlace, SegmentId, usize),
}

/// Where an instruction stands, and in which trip of its loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstrPlace {
    /// The rank, where it matters.
    pub rank: Option<RankId>,
    /// The program.
    pub program: ProgramId,
    /// Position in the program's body.
    pub item: usize,
    /// Position in the loop's body.
    pub instr: Option<usize>,
    /// The loop's counter, where it matters.
    pub trip: Option<u64>,
}

impl fmt::Display for InstrPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rank) = self.rank {
            write!(f, "rank {rank}, ")?;
        }
        write!(f, "program {}, item {}", self.program, self.item)?;
        if let Some(instr) = self.instr {
            write!(f, ", instr {instr}")?;
            if let Some(trip) = self.trip {
                write!(f, " (i={trip})")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for PlanPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan => f.write_str("plan"),
            Self::Input(id) => write!(f, "input {id}"),
            Self::Parameter(position) => write!(f, "parameter {position}"),
            Self::Group(id) => write!(f, "group {id}"),
            Self::Rank(id) => write!(f, "rank {id}"),
            Self::Communicator(id) => write!(f, "communicator {id}"),
            Self::Kernel(id) => write!(f, "kernel {id}"),
            Self::Segment(id, None) => write!(f, "segment {id}"),
            Self::Segment(id, Some(kernel)) => write!(f, "segment {id}, kernel call {kernel}"),
            Self::Program(id) => write!(f, "program {id}"),
            Self::Buffer(program, id) => write!(f, "program {program}, buffer {id}"),
            Self::Frame(program, id) => write!(f, "program {program}, frame {id}"),
            Self::Instr(place) => place.fmt(f),
            Self::InstrKernel(place, segment, kernel) => write!(f, "{place}, segment {segment}, kernel call {kernel}"),
        }
    }
}

/// A violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// The rule.
    pub rule: PlanRule,
    /// Where.
    pub at: PlanPlace,
    /// What is wrong: lower case, with what was expected and what was found.
    pub message: String,
}

impl PlanError {
    /// The code of these errors as diagnostics.
    pub const CODE: &'static str = "E0750";

    /// The error as a diagnostic.
    pub fn diagnostic(&self) -> Diagnostic {
        Diagnostic::error(Self::CODE, format!("plan rule {} is broken: {}", self.rule, self.message))
            .at(Place::Entity(self.at.to_string()), "here")
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}: {}", self.rule, self.at, self.message)
    }
}

impl std::error::Error for PlanError {}

/// Collects errors up to a bound, so that a wrong plan cannot fill the memory with its errors.
#[derive(Debug, Default)]
pub(super) struct Errors {
    list: Vec<PlanError>,
}

impl Errors {
    pub(super) const LIMIT: usize = 64;

    pub(super) fn push(&mut self, rule: PlanRule, at: PlanPlace, message: impl Into<String>) {
        if self.list.len() < Self::LIMIT {
            self.list.push(PlanError { rule, at, message: message.into() });
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.list.len() == Self::LIMIT
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Goes on only where nothing has been found so far.
    pub(super) fn check(&mut self) -> Result<(), Vec<PlanError>> {
        if self.list.is_empty() { Ok(()) } else { Err(std::mem::take(&mut self.list)) }
    }
}

/// The name of a rank's instruction in messages about other instructions.
pub(super) fn action_name(plan: &Plan, action: &Action) -> String {
    match action {
        Action::Call { segment, frames: _, args: _, micro_batch: _, site: _ } => {
            format!("call of {segment} `{}`", plan.segments[*segment].name)
        }
        Action::Load { input, buffer: _, micro_batch: _ } => format!("load of `{}`", plan.inputs[*input].name),
        Action::Send { port: _, buffer: _ } => "send".to_owned(),
        Action::Recv { port: _, buffer: _ } => "receive".to_owned(),
        Action::AllReduce { port: _, buffer: _ } => "all-reduce".to_owned(),
        Action::Broadcast { port: _, root: _, buffer: _ } => "broadcast".to_owned(),
        Action::Group(_) => "group".to_owned(),
    }
}
