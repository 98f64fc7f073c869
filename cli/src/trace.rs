//! A replay as a trace: a process for each rank, a row for each stream, arrows along the transfers.

use crate::replay::Replayed;
use std::collections::BTreeMap;
use trainc_backend::{Trace, TraceArrow, TraceDetail, TraceProcess, TraceSlice};
use trainc_ir::id::Id;
use trainc_ir::plan::{BufferKind, Plan, Program, RankId, StreamId};
use trainc_ir::{InputRole, Phase, TransferKind};
use trainc_passes::plan::simulate::{Side, Span, SpanKind, Transfer};

/// The trace of a replay. Arrows lead from a sender to its receiver, and from the first rank of a collective (of a
/// broadcast: its root) to all others.
pub fn trace(replayed: &Replayed) -> Trace {
    let plan = &replayed.plan;
    let transfers = &replayed.timeline.transfers;
    let mut trace = Trace::default();
    // The slices of each side of every transfer.
    let mut of_sides: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for ((id, rank), timeline) in plan.ranks.iter().zip(replayed.timeline.ranks.values()) {
        let Some(program) = plan.programs.get(rank.program) else { continue };
        let (rows, placed) = rows(program, &timeline.spans);
        let group = plan.groups.get(rank.group);
        let gpu = group.map_or_else(String::new, |group| format!(", {}", group.gpu));
        let name = format!("rank {}{gpu}, stage {}", id.index(), rank.stage);
        for (span, row) in timeline.spans.iter().zip(placed) {
            if let SpanKind::Transfer { transfer, side } = span.kind {
                of_sides.insert((transfer, side), trace.slices.len());
            }
            trace.slices.push(slice(plan, program, transfers, id, span, row));
        }
        trace.processes.push(TraceProcess { name, rows });
    }
    for (id, transfer) in transfers.iter().enumerate() {
        let Some(from) = of_sides.get(&(id, transfer.root)) else { continue };
        for side in (0..transfer.sides.len()).filter(|&side| side != transfer.root) {
            let Some(to) = of_sides.get(&(id, side)) else { continue };
            let name = trace.slices[*from].category.to_owned();
            trace.arrows.push(TraceArrow { name, from: *from, to: *to });
        }
    }
    trace
}

/// The rows of a rank and the row of each span: one for each stream, and more for a stream whose grouped transfers run at
/// the same time. Spans come in the order of their starts.
fn rows(program: &Program, spans: &[Span]) -> (Vec<String>, Vec<usize>) {
    // Of each stream: when each of its rows is free again.
    let mut free: BTreeMap<StreamId, Vec<u64>> = program.streams.ids().map(|id| (id, vec![0])).collect();
    let mut lanes = Vec::new();
    for span in spans {
        let of = free.entry(span.stream).or_default();
        let lane = of.iter().position(|&at| at <= span.start_ps).unwrap_or(of.len());
        if lane == of.len() {
            of.push(0);
        }
        of[lane] = span.end_ps;
        lanes.push(lane);
    }
    let (mut names, mut first) = (Vec::new(), BTreeMap::new());
    for (stream, of) in &free {
        first.insert(*stream, names.len());
        let name = program.streams.get(*stream).map_or_else(|| stream.to_string(), |stream| stream.name.clone());
        names.extend((0..of.len()).map(|lane| if lane == 0 { name.clone() } else { format!("{name} ({})", lane + 1) }));
    }
    let placed = spans.iter().zip(lanes).map(|(span, lane)| first[&span.stream] + lane).collect();
    (names, placed)
}

fn slice(plan: &Plan, program: &Program, transfers: &[Transfer], rank: RankId, span: &Span, row: usize) -> TraceSlice {
    let (name, category, details) = match span.kind {
        SpanKind::Call { segment, micro_batch } => {
            let of = plan.segments.get(segment);
            let phase = of.map_or(Phase::Forward, |of| of.phase);
            let name = of.map_or("", |of| of.name.as_str());
            let update = phase == Phase::Update;
            let name = if update { name.to_owned() } else { format!("{name} #{micro_batch}") };
            let mut details = vec![("segment", TraceDetail::Text(segment.to_string()))];
            if let Ok(number) = u64::try_from(micro_batch)
                && !update
            {
                details.push(("micro-batch", TraceDetail::Number(number)));
            }
            (name, phase_name(phase), details)
        }
        SpanKind::Transfer { transfer, side } => {
            let transfer = &transfers[transfer];
            let (name, category) = transfer_name(plan, program, transfer, side);
            let mut details = vec![("bytes", TraceDetail::Number(transfer.bytes))];
            if let Some(communicator) = transfer.communicator {
                let peers = transfer.sides.iter().filter(|other| other.rank != rank);
                let peers: Vec<String> = peers.map(|side| side.rank.index().to_string()).collect();
                details.push(("with ranks", TraceDetail::Text(peers.join(", "))));
                details.push(("communicator", TraceDetail::Text(communicator.to_string())));
            }
            (name, category, details)
        }
    };
    TraceSlice { process: rank.index(), row, name, category, start_ps: span.start_ps, end_ps: span.end_ps, details }
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Forward => "forward",
        Phase::InputGrad => "backward",
        Phase::WeightGrad => "weight gradient",
        Phase::Recompute => "recompute",
        Phase::Update => "update",
    }
}

/// What a side of a transfer is called, and its kind.
fn transfer_name(plan: &Plan, program: &Program, transfer: &Transfer, side: usize) -> (String, &'static str) {
    let of = &transfer.sides[side];
    let kind = match (transfer.kind, side) {
        (TransferKind::Load, _) => "load",
        (TransferKind::PointToPoint, 0) => "send",
        (TransferKind::PointToPoint, _) => "recv",
        (TransferKind::AllReduce, _) => "all-reduce",
        (TransferKind::Broadcast, _) => "broadcast",
    };
    let category = if transfer.kind == TransferKind::PointToPoint { "transfer" } else { kind };
    (format!("{kind} {}", what(plan, program, of)), category)
}

/// What is moved: an input or a boundary with its micro-batch, or the buffer by its name.
fn what(plan: &Plan, program: &Program, side: &Side) -> String {
    let buffer = program.buffers.get(side.buffer);
    if let Some(input) = side.input.and_then(|input| plan.inputs.get(input)) {
        let once = input.role == InputRole::Scalar;
        return if once { input.name.clone() } else { format!("{} #{}", input.name, side.slot) };
    }
    let name = buffer.map(|buffer| buffer.name.as_str()).filter(|name| !name.is_empty());
    let name = name.map_or_else(|| side.buffer.to_string(), str::to_owned);
    let each = buffer.is_some_and(|buffer| matches!(buffer.kind, BufferKind::Boundary | BufferKind::Saved));
    if each { format!("{name} #{}", side.slot) } else { name }
}
