//! Replays a plan on a cluster in a discrete-event model: when every instruction of every rank starts and ends.
//!
//! Each stream runs its instructions in order. A call takes the time of its kernels on the rank's GPU; calls of several
//! streams of a rank share the GPU equally. A transfer starts when both sides have come to it and its communicator is
//! free; collectives take the time of a ring, a broadcast that of a chain, over the slowest link between neighbours.
//! Transfers do not slow each other or the calls beside them. Loads come over the host's link.

mod durations;
mod engine;
mod recompute;

#[cfg(test)]
mod tests;

use durations::Durations;
use trainc_ir::Cluster;
use trainc_ir::id::Table;
use trainc_ir::plan::{CommunicatorId, Plan, RankId, SegmentId, StreamId};

/// When everything happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Time of a step.
    pub step_ps: u64,
    /// Ranks in order.
    pub ranks: Table<RankId, RankTimeline>,
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
    /// A copy from the host.
    Load,
    /// A transfer or collective.
    Transfer(CommunicatorId),
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

/// A plan that cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimulateError {
    /// Something names what is not there, or has a type that its operator does not admit.
    Malformed(String),
    /// A rank is in a group that the cluster does not have.
    UnknownGroup(String),
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
    let run = engine::run(plan, &durations)?;
    let recompute = recompute::recompute_time(&run, &durations);
    Ok(Timeline { step_ps: run.step_ps, ranks: run.ranks, recompute })
}
