//! Programs: the instructions of a rank, its buffers and streams.

use super::segment::serde_as_text;
use super::{BufferId, EventId, FrameId, InputId, PortId, ProgramId, SegmentId, StreamId};
use crate::id::{Id, Table};
use crate::ty::Type;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// What the ranks of one stage and role run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Name for people.
    pub name: String,
    /// Pipeline stage.
    pub stage: u32,
    /// Size of the arena.
    pub arena_bytes: u64,
    /// The liveness lower bound of the arena: the largest sum of bytes in use at one time.
    pub arena_lower_bound: u64,
    /// Streams.
    pub streams: Table<StreamId, Stream>,
    /// Names of the events. An event has an instance per index, recorded at most once per step.
    pub events: Table<EventId, String>,
    /// Names of the ports.
    pub ports: Table<PortId, String>,
    /// Buffers.
    pub buffers: Table<BufferId, Buffer>,
    /// Places of segments' locals.
    pub frames: Table<FrameId, Frame>,
    /// The instructions of a step, in an order that respects every stream's.
    pub body: Vec<Item>,
    /// What the host reads after a step.
    pub outputs: Vec<ProgramOutput>,
}

/// An in-order queue of instructions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Name for people.
    pub name: String,
    /// What it runs.
    pub kind: StreamKind,
}

/// What a stream runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamKind {
    /// Segments.
    Compute,
    /// Segments that run beside the compute stream.
    Side,
    /// Transfers, collectives and loads.
    Transfer,
}

/// A named region of the arena, one place per slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    /// Name. For parameters, states, gradients and scalars it is the name of the update graph's input
    /// (`wte.weight`, `wte.weight.m`, `grad.wte.weight.0`, `lr`); otherwise for people.
    pub name: String,
    /// Type of each slot.
    #[serde(rename = "type")]
    pub ty: Type,
    /// What it holds.
    pub kind: BufferKind,
    /// Offset of each slot in the arena.
    pub offsets: Vec<u64>,
}

/// What a buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BufferKind {
    /// A weight; persists between steps.
    Parameter,
    /// Optimizer state; persists between steps.
    State,
    /// A gradient summed over micro-batches.
    Gradient,
    /// A scalar from the host, or a loss sum or count.
    Scalar,
    /// Data or labels of a micro-batch.
    Data,
    /// An activation kept for the backward.
    Saved,
    /// An activation or gradient received from or sent to another rank, or passed between segments.
    Boundary,
}

/// The places of a segment's locals in one program.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// The segment.
    pub segment: SegmentId,
    /// Offset of each local in the arena.
    pub offsets: Vec<u64>,
}

/// An instruction, or a loop over instructions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// One instruction; the `i` of its indices is 0.
    Once(Instr),
    /// The body for `i` = 0, 1, .. `trips` - 1.
    Loop {
        /// How many times.
        trips: u64,
        /// The instructions.
        body: Vec<Instr>,
    },
}

/// One instruction of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instr {
    /// The stream it runs on.
    pub stream: StreamId,
    /// Event instances that must have been recorded before it starts. A negative index is never waited for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<EventRef>,
    /// What it does.
    #[serde(flatten)]
    pub action: Action,
    /// The event instance recorded when it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<EventRef>,
}

/// What an instruction does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Runs a segment.
    Call {
        /// The segment.
        segment: SegmentId,
        /// The places of its locals: micro-batch `j` uses the frame at `j` modulo their number.
        frames: Vec<FrameId>,
        /// Actual buffers, one per formal.
        args: Vec<BufferRef>,
        /// The micro-batch it works on (for random operators; 0 for updates).
        micro_batch: Index,
        /// Added to the sites of the segment's random operators.
        site: u64,
    },
    /// Copies an input of a micro-batch (or a scalar of the step) from the host.
    Load {
        /// The input.
        input: InputId,
        /// Where to.
        buffer: BufferRef,
        /// The micro-batch; ignored for scalars.
        micro_batch: Index,
    },
    /// Sends a buffer to the second rank of a two-rank communicator; this rank is the first.
    Send {
        /// The communicator's port.
        port: PortId,
        /// What is sent.
        buffer: BufferRef,
    },
    /// Receives a buffer from the first rank of a two-rank communicator; this rank is the second.
    Recv {
        /// The communicator's port.
        port: PortId,
        /// Where to.
        buffer: BufferRef,
    },
    /// Replaces the buffer on every rank of a communicator by the sum, added in the communicator's order.
    AllReduce {
        /// The communicator's port.
        port: PortId,
        /// The summand, then the sum.
        buffer: BufferRef,
    },
    /// Replaces the buffer on every rank of a communicator by the root's.
    Broadcast {
        /// The communicator's port.
        port: PortId,
        /// Position of the root in the communicator.
        root: u32,
        /// The buffer.
        buffer: BufferRef,
    },
    /// Sends and receives that start together and are done when all are done; nothing else may stand in it.
    Group(Vec<Action>),
}

/// The frame that a call uses for a micro-batch, or `None` where the call names none.
pub fn frame_of(frames: &[FrameId], micro_batch: i64) -> Option<FrameId> {
    let count = i64::try_from(frames.len()).ok().filter(|&count| count > 0)?;
    frames.get(usize::try_from(micro_batch.rem_euclid(count)).ok()?).copied()
}

/// A number that depends on the loop's counter: `base + stride i`. Spelled `3`, `i`, `i+3`, `2i-1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Index {
    /// Value at `i` = 0.
    pub base: i64,
    /// Added per trip.
    pub stride: i64,
}

impl Index {
    /// A number that does not depend on the loop.
    pub const fn at(base: i64) -> Self {
        Self { base, stride: 0 }
    }

    /// The loop's counter plus `base`.
    pub const fn counter(base: i64) -> Self {
        Self { base, stride: 1 }
    }

    /// The value in trip `i`; saturates at the ends of 64 bits.
    pub const fn value(self, i: u64) -> i64 {
        let i = if i > i64::MAX as u64 { i64::MAX } else { i as i64 };
        self.base.saturating_add(self.stride.saturating_mul(i))
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.stride, self.base) {
            (0, base) => write!(f, "{base}"),
            (1, 0) => f.write_str("i"),
            (1, base) => write!(f, "i{base:+}"),
            (stride, 0) => write!(f, "{stride}i"),
            (stride, base) => write!(f, "{stride}i{base:+}"),
        }
    }
}

impl FromStr for Index {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let bad = || format!("expected an index like `3`, `i` or `2i+3`, found `{s}`");
        let number = |text: &str| text.parse::<i64>().map_err(|_| bad());
        let Some((stride, base)) = s.split_once('i') else {
            return number(s).map(Self::at);
        };
        let stride = if stride.is_empty() { 1 } else { number(stride)? };
        let base = match base {
            "" => 0,
            text if text.starts_with(['+', '-']) => number(text)?,
            _ => return Err(bad()),
        };
        Ok(Self { base, stride })
    }
}

/// A slot of a buffer: `b3` is slot 0, `b3[i+1]` slot `i + 1` modulo the number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferRef {
    /// The buffer.
    pub buffer: BufferId,
    /// The slot.
    pub slot: Index,
}

/// An instance of an event: `e3` is instance 0, `e3[i+1]` instance `i + 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventRef {
    /// The event.
    pub event: EventId,
    /// The instance.
    pub index: Index,
}

fn write_indexed(f: &mut fmt::Formatter<'_>, id: impl fmt::Display, index: Index) -> fmt::Result {
    if index == Index::at(0) { write!(f, "{id}") } else { write!(f, "{id}[{index}]") }
}

fn read_indexed<I: Id>(s: &str, prefix: &str) -> Result<(I, Index), String> {
    let bad = || format!("expected a reference like `{prefix}0` or `{prefix}0[i]`, found `{s}`");
    let rest = s.strip_prefix(prefix).ok_or_else(bad)?;
    let (number, index) = match rest.split_once('[') {
        None => (rest, Index::at(0)),
        Some((number, index)) => (number, index.strip_suffix(']').ok_or_else(bad)?.parse()?),
    };
    let number: u32 = number.parse().map_err(|_| bad())?;
    if number == u32::MAX {
        return Err(bad());
    }
    Ok((I::from_index(number as usize), index))
}

impl fmt::Display for BufferRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_indexed(f, self.buffer, self.slot)
    }
}

impl FromStr for BufferRef {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        read_indexed(s, BufferId::PREFIX).map(|(buffer, slot)| Self { buffer, slot })
    }
}

impl fmt::Display for EventRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_indexed(f, self.event, self.index)
    }
}

impl FromStr for EventRef {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        read_indexed(s, EventId::PREFIX).map(|(event, index)| Self { event, index })
    }
}

serde_as_text!(Index, BufferRef, EventRef);

/// A scalar that the host reads after each step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramOutput {
    /// `loss_sum` or `loss_count`, both over all micro-batches.
    pub name: String,
    /// Where it is.
    pub buffer: BufferId,
}

/// A program that holds a parameter, and the buffer it holds it in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holder {
    /// The program.
    pub program: ProgramId,
    /// The buffer.
    pub buffer: BufferId,
}
