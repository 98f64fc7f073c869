//! Replays a plan on a cluster in a discrete-event model: when every instruction of every rank starts and ends.
//!
//! Each stream runs its instructions in order. A call takes the time of its kernels on the rank's GPU; calls of several
//! streams of a rank share the GPU equally. A transfer starts when both sides have come to it and its communicator is
//! free; collectives take the time of a ring, a broadcast that of a chain, over the slowest link between neighbours.
//! Loads come over the host's link. Transfers do not slow each other. While a GPU computes and transfers, its calls take
//! the factor of the most disturbing kind of transfer as long, and a transfer that of its kind
//! ([`Contention`](trainc_ir::Contention)).

mod critical;
mod durations;
mod engine;
mod flight;
mod profiled;
mod rank;
mod recompute;

#[cfg(test)]
mod tests;

use durations::Durations;
pub use profiled::unmeasured;
use trainc_ir::id::Table;
use trainc_ir::plan::{BufferId, CommunicatorId, InputId, Plan, RankId, SegmentId, StreamId};
use trainc_ir::{Cluster, TransferKind};

/// When everything happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Time of a step.
    pub step_ps: u64,
    /// Ranks in order.
    pub ranks: Table<RankId, RankTimeline>,
    /// Transfers and loads, in the order in which they started.
    pub transfers: Vec<Transfer>,
    /// Recomputation, summed over ranks.
    pub recompute: RecomputeTime,
}

/// What one rank does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankTimeline {
    /// Time in which it computes.
    pub busy_ps: u64,
    /// Time in which it does not: what is left of the step.
    pub idle_ps: u64,
    /// Time in which it transfers and does not compute; a part of the idle time.
    pub exposed_transfer_ps: u64,
    /// Its recomputation.
    pub recompute: RecomputeTime,
    /// What it does, by start.
    pub spans: Vec<Span>,
}

/// An instruction that took time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The stream it ran on.
    pub stream: StreamId,
    /// What it was.
    pub kind: SpanKind,
    /// When it started. A transfer starts when all sides have come to it.
    pub start_ps: u64,
    /// When it was done.
    pub end_ps: u64,
}

/// What an instruction was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// A call.
    Call {
        /// The segment.
        segment: SegmentId,
        /// The micro-batch it worked on.
        micro_batch: i64,
    },
    /// A part in a transfer, collective, or copy from the host.
    Transfer {
        /// Which of the timeline's transfers.
        transfer: usize,
        /// Which of its sides.
        side: usize,
    },
}

/// A transfer, a collective, or a copy from the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// What it was.
    pub kind: TransferKind,
    /// Who carried it; nobody a copy from the host.
    pub communicator: Option<CommunicatorId>,
    /// Those that took part, in the communicator's order: the sender of a point-to-point transfer comes first.
    pub sides: Vec<Side>,
    /// The side that the bytes come from; the first where all bring some.
    pub root: usize,
    /// Bytes of the buffer.
    pub bytes: u64,
    /// When all sides had come to it.
    pub start_ps: u64,
    /// When it was done.
    pub end_ps: u64,
}

/// One side of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// The rank.
    pub rank: RankId,
    /// Its stream.
    pub stream: StreamId,
    /// The position of the instruction on the stream.
    pub nth: usize,
    /// What is loaded from the host.
    pub input: Option<InputId>,
    /// The buffer.
    pub buffer: BufferId,
    /// The slot of the buffer, or the micro-batch of what is loaded.
    pub slot: i64,
}

/// A part of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CriticalStep {
    /// The rank; of a transfer, its first.
    pub rank: RankId,
    /// What it did.
    pub span: Span,
}

/// Time of recomputation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecomputeTime {
    /// All of it.
    pub total_ps: u64,
    /// What ran while the call that needs it was still waiting for something else.
    pub hidden_ps: u64,
    /// The rest, which made that call later.
    pub exposed_ps: u64,
}

impl RecomputeTime {
    fn add(&mut self, other: Self) {
        self.total_ps = self.total_ps.saturating_add(other.total_ps);
        self.hidden_ps = self.hidden_ps.saturating_add(other.hidden_ps);
        self.exposed_ps = self.exposed_ps.saturating_add(other.exposed_ps);
    }
}

/// A plan that cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimulateError {
    /// Something names what is not there, or has a type that its operator does not admit.
    Malformed(String),
    /// A rank is in a group that the cluster does not have.
    UnknownGroup(String),
    /// A group has not the nodes that the plan takes of it: nodes and GPUs of each, as there are and as they are needed.
    TooFewNodes(String, (u32, u32), (u32, u32)),
    /// Two ranks that transfer to each other are not connected.
    NotConnected(RankId, RankId),
    /// A rank's GPU cannot run a kernel.
    CannotRun(RankId, String),
    /// The sides of a communicator do not agree on what happens next.
    Mismatch(CommunicatorId),
    /// Nothing can happen any more, and these streams have not come to their end.
    Deadlock(Vec<(RankId, StreamId)>),
    /// The programs have more instructions than are replayed.
    TooLong,
}

impl std::fmt::Display for SimulateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Malformed(what) => write!(f, "the plan is malformed: {what}"),
            Self::UnknownGroup(name) => write!(f, "the cluster has no group `{name}`"),
            Self::TooFewNodes(name, has, needs) => {
                let of = |(nodes, gpus): (u32, u32)| format!("{nodes} x {gpus} GPUs");
                write!(f, "group `{name}` has {}, the plan takes {}", of(*has), of(*needs))
            }
            Self::NotConnected(from, to) => write!(f, "ranks {from} and {to} transfer but are not connected"),
            Self::CannotRun(rank, why) => write!(f, "rank {rank} cannot run its program: {why}"),
            Self::Mismatch(communicator) => {
                write!(f, "the ranks of communicator {communicator} do not agree on a transfer")
            }
            Self::Deadlock(streams) => {
                f.write_str("the plan deadlocks, with instructions left on")?;
                for (i, (rank, stream)) in streams.iter().enumerate() {
                    write!(f, "{} rank {rank} stream {stream}", if i == 0 { "" } else { "," })?;
                }
                Ok(())
            }
            Self::TooLong => write!(f, "the programs have more than {MAX_INSTRUCTIONS} instructions"),
        }
    }
}

/// Instructions of all ranks that are replayed at most.
const MAX_INSTRUCTIONS: usize = 5_000_000;

/// Replays a plan on the cluster it was made for.
///
/// # Errors
/// Why the plan cannot be replayed, whatever it holds.
pub fn simulate(plan: &Plan, cluster: &Cluster) -> Result<Timeline, SimulateError> {
    let durations = Durations::new(plan, cluster)?;
    Ok(timeline(engine::run(plan, &durations)?, &durations))
}

/// Replays a plan as [`simulate`] does, and says what the length of the step comes from: a chain of calls and transfers
/// from its start to its end, without gaps, each of which started when the one before it ended.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_critical(plan: &Plan, cluster: &Cluster) -> Result<(Timeline, Vec<CriticalStep>), SimulateError> {
    let durations = Durations::new(plan, cluster)?;
    let run = engine::run(plan, &durations)?;
    let path = critical::critical_path(&run);
    Ok((timeline(run, &durations), path))
}

fn timeline(run: engine::Run<'_>, durations: &Durations<'_>) -> Timeline {
    let of_ranks = recompute::recompute_times(&run, durations);
    let mut recompute = RecomputeTime::default();
    let mut ranks = run.ranks;
    for ((_, rank), of) in ranks.iter_mut().zip(of_ranks) {
        rank.recompute = of;
        recompute.add(of);
    }
    let transfers = run.flights.into_iter().map(flight::Flight::into_transfer).collect();
    Timeline { step_ps: run.step_ps, ranks, transfers, recompute }
}
