//! Puts a plan together: ranks become programs with buffers, streams, events and ports.

use super::crossing::{StageUnits, transfers};
use super::facts::Facts;
use super::flow::Flow;
use super::layout::live::{Layout, PACKING_STEPS, layout};
use super::layout::turns::settle;
use super::program::{Ordered, Placed, order};
use super::segments::{Key, Pool};
use super::stage::{Act, Context, Draft, Lane, PortKey, RankDraft, draft};
use crate::schedule::Schedule;
use std::collections::{BTreeMap, BTreeSet};
use trainc_ir::id::{Id, Table};
use trainc_ir::plan::{
    Action, Buffer, BufferId, BufferKind, BufferRef, CommunicatorId, EventId, EventRef, Frame, FrameId, Holder, Index,
    InputId, Instr, Item, Kernel, KernelId, PlanInput, PlanParameter, PortId, Program, ProgramId, ProgramOutput,
    RankId, Segment, SegmentId, Stream, StreamId, StreamKind,
};
use trainc_ir::{InputRole, TrainingGraph};

/// The parts of a plan that follow from the training graph and its division into stages.
#[derive(Debug)]
pub(crate) struct Assembled {
    pub(crate) inputs: Table<InputId, PlanInput>,
    pub(crate) kernels: Table<KernelId, Kernel>,
    pub(crate) segments: Table<SegmentId, Segment>,
    pub(crate) programs: Table<ProgramId, Program>,
    pub(crate) communicators: Table<CommunicatorId, Vec<RankId>>,
    /// For each rank the communicators of its ports.
    pub(crate) ports: Vec<Vec<CommunicatorId>>,
    pub(crate) parameters: Vec<PlanParameter>,
    /// For each rank the bytes of buffers that are neither persistent nor local at the fullest time.
    pub(crate) activation_bytes: Vec<u64>,
}

/// Assembles the programs of all ranks. The schedule must have been checked.
pub(crate) fn assemble(facts: &Facts<'_>, stages: &[StageUnits], schedule: &Schedule) -> Assembled {
    let transfers = transfers(facts, stages, &schedule.rank_of);
    let flow = Flow::new(schedule, &transfers);
    let context = Context { facts, stages, transfers: &transfers, schedule, flow: &flow };
    let mut pool = Pool::default();
    let drafts: Vec<RankDraft> = (0..schedule.ranks.len()).map(|rank| draft(&context, rank, &mut pool)).collect();
    let mut ports: BTreeSet<PortKey> = BTreeSet::new();
    for draft in drafts.iter().flat_map(RankDraft::drafts) {
        if let Lane::Port(port) = &draft.lane {
            ports.insert(port.clone());
        }
    }
    let ports: Vec<PortKey> = ports.into_iter().collect();
    let rank = |rank: &usize| RankId::from_index(*rank);
    let communicators = ports.iter().map(|port| match port {
        PortKey::Pair { from, to, backward: _, stages: _ } => vec![rank(from), rank(to)],
        PortKey::Among(ranks) => ranks.iter().map(rank).collect(),
    });
    let communicators = communicators.collect();
    let inputs = plan_inputs(facts.training);
    let mut assembled = Assembled {
        inputs,
        kernels: Table::new(),
        segments: Table::new(),
        programs: Table::new(),
        communicators,
        ports: Vec::new(),
        parameters: Vec::new(),
        activation_bytes: Vec::new(),
    };
    for (index, mut draft) in drafts.into_iter().enumerate() {
        let settled = settle(&mut draft, &pool, schedule.micro_batches, schedule.ranks.len());
        let ordered = order(&draft);
        let layout = settled.unwrap_or_else(|| layout(&draft, &ordered, &pool, PACKING_STEPS));
        assembled.activation_bytes.push(layout.activation_bytes);
        let mut writer = Writer::new(&assembled.inputs, &draft, &ordered, &layout);
        let stages: Vec<usize> = schedule.stages_of(index).collect();
        let program = writer.program(index, &stages);
        let own = writer.ports.iter().map(|port| {
            CommunicatorId::from_index(ports.binary_search(port).expect("every port of a rank was collected"))
        });
        assembled.ports.push(own.collect());
        assembled.programs.push(program);
    }
    assembled.parameters = parameters(facts.training, &assembled.programs);
    assembled.kernels = pool.kernels;
    assembled.segments = pool.segments;
    assembled
}

/// What the host feeds: data and labels that are read, and the scalars of the update.
fn plan_inputs(training: &TrainingGraph) -> Table<InputId, PlanInput> {
    let users = training.step.users();
    let data = training.step.inputs.iter().filter(|input| match input.role {
        InputRole::Data | InputRole::Label => !users[input.value].is_empty(),
        InputRole::Parameter | InputRole::Buffer | InputRole::State | InputRole::GradientSum | InputRole::Scalar => {
            false
        }
    });
    let data = data.map(|input| (input, training.step.ty(input.value)));
    let scalars = training.update.inputs.iter().filter(|i| i.role == InputRole::Scalar && i.name != "count");
    let scalars = scalars.map(|input| (input, training.update.ty(input.value)));
    data.chain(scalars)
        .map(|(input, ty)| PlanInput { name: input.name.clone(), role: input.role, ty: ty.clone() })
        .collect()
}

/// All weights and tables that programs hold, in the order of the step's inputs.
fn parameters(training: &TrainingGraph, programs: &Table<ProgramId, Program>) -> Vec<PlanParameter> {
    let mut holders: BTreeMap<&str, Vec<Holder>> = BTreeMap::new();
    for (program, data) in programs.iter() {
        for (buffer, facts) in data.buffers.iter().filter(|(_, b)| b.kind == BufferKind::Parameter) {
            holders.entry(&facts.name).or_default().push(Holder { program, buffer });
        }
    }
    let trained: BTreeSet<&str> =
        training.parameters.values().filter(|p| !p.contributions.is_empty()).map(|p| p.name.as_str()).collect();
    let held = training.step.inputs.iter().filter_map(|input| Some((input, holders.remove(input.name.as_str())?)));
    held.map(|(input, holders)| PlanParameter {
        name: input.name.clone(),
        ty: training.step.ty(input.value).clone(),
        trained: trained.contains(input.name.as_str()),
        holders,
    })
    .collect()
}

/// Writes one program.
struct Writer<'w> {
    inputs: &'w Table<InputId, PlanInput>,
    draft: &'w RankDraft,
    ordered: &'w Ordered<'w>,
    layout: &'w Layout,
    lanes: Vec<&'w Lane>,
    ports: Vec<PortKey>,
    buffers: BTreeMap<&'w Key, BufferId>,
    frames: Table<FrameId, Frame>,
    frames_of: BTreeMap<CallKey, Vec<FrameId>>,
    events: BTreeMap<usize, EventId>,
}

impl<'w> Writer<'w> {
    fn new(
        inputs: &'w Table<InputId, PlanInput>,
        draft: &'w RankDraft,
        ordered: &'w Ordered<'w>,
        layout: &'w Layout,
    ) -> Self {
        let mut lanes: Vec<&Lane> = ordered.drafts.iter().map(|d| &d.lane).collect();
        lanes.sort_unstable();
        lanes.dedup();
        let ports = lanes.iter().filter_map(|lane| match lane {
            Lane::Port(port) => Some(port.clone()),
            Lane::Compute | Lane::Load => None,
        });
        let ports = ports.collect();
        let buffers = draft.buffers.keys().enumerate().map(|(i, key)| (key, BufferId::from_index(i))).collect();
        let (frames, frames_of) = frames(draft, ordered, layout);
        let waited = ordered.parts.iter().flat_map(|p| &p.body).flat_map(|i| &i.waits).map(|(draft, _)| *draft);
        let waited: BTreeSet<usize> = waited.collect();
        let events = waited.into_iter().enumerate().map(|(i, draft)| (draft, EventId::from_index(i))).collect();
        Self { inputs, draft, ordered, layout, lanes, ports, buffers, frames, frames_of, events }
    }

    fn program(&mut self, rank: usize, stages: &[usize]) -> Program {
        let mut body = Vec::new();
        for part in &self.ordered.parts {
            let instrs: Vec<Instr> = part.body.iter().map(|placed| self.instr(placed)).collect();
            if part.trips > 1 {
                body.push(Item::Loop { trips: part.trips, body: instrs });
            } else {
                body.extend(instrs.into_iter().map(|instr| Item::Once(at_trip_zero(instr))));
            }
        }
        let outputs = ["loss_sum", "loss_count"].iter().filter_map(|name| {
            // Every rank learns the count, but only the one with the loss gives it out.
            self.buffers.get(&Key::Named("loss_sum".to_owned()))?;
            let buffer = *self.buffers.get(&Key::Named((*name).to_owned()))?;
            Some(ProgramOutput { name: (*name).to_owned(), buffer })
        });
        Program {
            name: format!("{} {}", if stages.len() == 1 { "stage" } else { "stages" }, join(stages)),
            stage: rank as u32,
            arena_bytes: self.layout.arena_bytes,
            arena_lower_bound: self.layout.lower_bound,
            streams: self.lanes.iter().map(|lane| stream(lane)).collect(),
            events: self.events.keys().map(|&draft| self.event_name(draft)).collect(),
            ports: self.ports.iter().map(port_name).collect(),
            buffers: self
                .draft
                .buffers
                .iter()
                .map(|(key, b)| Buffer {
                    name: b.name.clone(),
                    ty: b.ty.clone(),
                    kind: b.kind,
                    offsets: self.layout.buffers[key].clone(),
                })
                .collect(),
            frames: self.frames.clone(),
            body,
            outputs: outputs.collect(),
        }
    }

    fn event_name(&self, draft: usize) -> String {
        let what = match &self.ordered.drafts[draft].act {
            Act::Call { segment, site: _, unit: _ } => format!("{segment}"),
            Act::Load(name) => format!("load {name}"),
            Act::Send => "send".to_owned(),
            Act::Recv => "recv".to_owned(),
            Act::AllReduce => "all_reduce".to_owned(),
            Act::Broadcast { root: _ } => "broadcast".to_owned(),
        };
        format!("{what} #{draft}")
    }

    fn instr(&self, placed: &Placed) -> Instr {
        let draft = self.ordered.drafts[placed.draft];
        let stream = self.lanes.binary_search(&&draft.lane).expect("every lane is listed");
        let waits = placed.waits.iter().map(|&(dep, index)| EventRef { event: self.events[&dep], index });
        let record = self.events.get(&placed.draft).map(|&event| EventRef { event, index: placed.micro_batch });
        Instr {
            stream: StreamId::from_index(stream),
            waits: waits.collect(),
            action: self.action(draft, placed.micro_batch),
            record,
        }
    }

    fn action(&self, draft: &Draft, micro_batch: Index) -> Action {
        let buffer = |key: &Key| {
            let slot = if self.draft.buffers[key].slots > 1 { micro_batch } else { Index::at(0) };
            BufferRef { buffer: self.buffers[key], slot }
        };
        let first = || buffer(&draft.args[0].0);
        match &draft.act {
            Act::Call { segment, site, unit } => Action::Call {
                segment: *segment,
                frames: self.frames_of[&(*segment, *unit)].clone(),
                args: draft.args.iter().map(|(key, _)| buffer(key)).collect(),
                micro_batch,
                site: *site,
            },
            Act::Load(name) => {
                let found = self.inputs.iter().find(|(_, input)| input.name == *name);
                let (input, _) = found.expect("everything loaded is an input of the plan");
                Action::Load { input, buffer: first(), micro_batch }
            }
            Act::Send => Action::Send { port: self.port(draft), buffer: first() },
            Act::Recv => Action::Recv { port: self.port(draft), buffer: first() },
            Act::AllReduce => Action::AllReduce { port: self.port(draft), buffer: first() },
            Act::Broadcast { root } => Action::Broadcast { port: self.port(draft), root: *root, buffer: first() },
        }
    }

    fn port(&self, draft: &Draft) -> PortId {
        let position = match &draft.lane {
            Lane::Port(port) => self.ports.binary_search(port).ok(),
            Lane::Compute | Lane::Load => None,
        };
        PortId::from_index(position.expect("transfers run on the stream of their port"))
    }
}

/// A segment and the unit that calls it, if it is a call of a micro-batch.
type CallKey = (SegmentId, Option<usize>);

/// Every frame once, and those of each call.
fn frames(
    draft: &RankDraft,
    ordered: &Ordered<'_>,
    layout: &Layout,
) -> (Table<FrameId, Frame>, BTreeMap<CallKey, Vec<FrameId>>) {
    let mut frames: Table<FrameId, Frame> = Table::new();
    let mut known: BTreeMap<(SegmentId, Vec<u64>), FrameId> = BTreeMap::new();
    let mut frames_of = BTreeMap::new();
    let calls: BTreeSet<CallKey> = ordered
        .drafts
        .iter()
        .filter_map(|d| match d.act {
            Act::Call { segment, site: _, unit } => Some((segment, unit)),
            Act::Load(_) | Act::Send | Act::Recv | Act::AllReduce | Act::Broadcast { root: _ } => None,
        })
        .collect();
    for key in calls {
        let (segment, unit) = key;
        let turns = draft.turns_of(unit);
        let mut of_call: Vec<FrameId> = Vec::new();
        for turn in 0..turns {
            let offsets = layout.frames.get(&(segment, unit, turn)).cloned().unwrap_or_default();
            let add = || frames.push(Frame { segment, offsets: offsets.clone() });
            of_call.push(*known.entry((segment, offsets.clone())).or_insert_with(add));
        }
        if of_call.iter().all(|frame| *frame == of_call[0]) {
            of_call.truncate(1);
        }
        frames_of.insert(key, of_call);
    }
    (frames, frames_of)
}

fn stream(lane: &Lane) -> Stream {
    match lane {
        Lane::Compute => Stream { name: "compute".to_owned(), kind: StreamKind::Compute },
        Lane::Load => Stream { name: "load".to_owned(), kind: StreamKind::Transfer },
        Lane::Port(port) => Stream { name: port_name(port), kind: StreamKind::Transfer },
    }
}

fn port_name(port: &PortKey) -> String {
    match port {
        PortKey::Pair { from, to, backward, stages } => {
            let what = if *backward { "gradients" } else { "activations" };
            let stages = stages.map_or_else(String::new, |(from, to)| format!(", stages {from} to {to}"));
            format!("{what} {from} to {to}{stages}")
        }
        PortKey::Among(ranks) => format!("ranks {}", join(ranks)),
    }
}

fn join(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
}

/// The instruction of a loop that runs once, as a single one.
fn at_trip_zero(mut instr: Instr) -> Instr {
    let fix = |index: &mut Index| *index = Index::at(index.base);
    for wait in &mut instr.waits {
        fix(&mut wait.index);
    }
    instr.waits.retain(|wait| wait.index.base >= 0);
    if let Some(record) = &mut instr.record {
        fix(&mut record.index);
    }
    match &mut instr.action {
        Action::Call { segment: _, frames: _, args, micro_batch, site: _ } => {
            fix(micro_batch);
            for arg in args {
                fix(&mut arg.slot);
            }
        }
        Action::Load { input: _, buffer, micro_batch } => {
            fix(micro_batch);
            fix(&mut buffer.slot);
        }
        Action::Send { port: _, buffer }
        | Action::Recv { port: _, buffer }
        | Action::AllReduce { port: _, buffer }
        | Action::Broadcast { port: _, root: _, buffer } => fix(&mut buffer.slot),
        Action::Group(_) => {}
    }
    instr
}
