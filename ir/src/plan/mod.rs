//! The plan: a program per rank, and everything that running, checking and requesting it needs.
//!
//! A plan is executable as it stands. Each rank owns one arena of `arena_bytes` and runs its [`Program`] on a set of
//! in-order streams. Instructions of different streams are ordered by events only; instructions of different ranks by
//! transfers only. A transfer has rendezvous semantics: it happens when both sides have come to it, without buffering.
//! Between steps a rank joins all its streams.
//!
//! Bytes: a buffer occupies `ty.bytes()` from each of its offsets, one per slot; a slot index is taken modulo the
//! number of slots. A call's locals occupy the offsets of one of its frames
//! during that call.

mod header;
mod program;
mod segment;
mod verify;

pub use header::{
    BlockClass, Breakdown, Digests, Header, Locality, PlacementGroup, PlanInput, PlanParameter, Prediction, Rank,
    RankPrediction, RecomputePrediction,
};
pub use program::{
    Action, Buffer, BufferKind, BufferRef, EventRef, Frame, Holder, Index, Instr, Item, Program, ProgramOutput, Stream,
    StreamKind, frame_of,
};
pub use segment::{Access, Formal, Kernel, KernelCall, Operand, Segment};
pub use verify::{InstrPlace, PlanError, PlanPlace, PlanRule, VerifiedPlan, verify};

use crate::id;
use crate::id::Table;
use serde::{Deserialize, Serialize};

id!(
    /// Names a placement group.
    GroupId,
    "g"
);
id!(
    /// Names a rank.
    RankId,
    "r"
);
id!(
    /// Names a communicator: an ordered set of ranks that transfer among themselves in one total order.
    CommunicatorId,
    "c"
);
id!(
    /// Names an input of the step: a data tensor, labels, or a scalar.
    InputId,
    "i"
);
id!(
    /// Names a kernel.
    KernelId,
    "k"
);
id!(
    /// Names a segment.
    SegmentId,
    "s"
);
id!(
    /// Names a program.
    ProgramId,
    "p"
);
id!(
    /// Names a buffer of a program.
    BufferId,
    "b"
);
id!(
    /// Names an event of a program.
    EventId,
    "e"
);
id!(
    /// Names a stream of a program.
    StreamId,
    "t"
);
id!(
    /// Names a frame of a program.
    FrameId,
    "f"
);
id!(
    /// Names a port of a program: a place for a communicator, filled by each rank with its own.
    PortId,
    "o"
);

/// The format that this version writes; a reader refuses newer ones.
pub const FORMAT: u32 = 1;

/// A training plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Version of the format, [`FORMAT`].
    pub format: u32,
    /// Where the plan comes from.
    pub header: Header,
    /// Number of micro-batches of a step, numbered from 0.
    pub micro_batches: u64,
    /// What the host feeds: data and labels once per micro-batch, scalars once per step.
    pub inputs: Table<InputId, PlanInput>,
    /// Groups of GPUs to ask the cluster for.
    pub groups: Table<GroupId, PlacementGroup>,
    /// Ranks in global order.
    pub ranks: Table<RankId, Rank>,
    /// Communicators.
    pub communicators: Table<CommunicatorId, Vec<RankId>>,
    /// Kernels, without repetition.
    pub kernels: Table<KernelId, Kernel>,
    /// Segments.
    pub segments: Table<SegmentId, Segment>,
    /// Programs.
    pub programs: Table<ProgramId, Program>,
    /// Parameters and who holds them.
    pub parameters: Vec<PlanParameter>,
    /// What the compiler expects of a run.
    pub prediction: Prediction,
}
