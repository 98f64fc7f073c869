//! Messages to plans: everything that a message can hold and a plan cannot is an error with its place.

use super::super::json::bad_plan;
use super::super::read::truncated;
use super::{MAGIC, messages as pb};
use prost::Message;
use trainc_ir::id::{Id, Table};
use trainc_ir::op::{Attr, Literal, LiteralData, Op, Real};
use trainc_ir::plan::{
    Access, Action, BlockClass, Breakdown, Buffer, BufferKind, BufferRef, Digests, EventRef, Formal, Frame, Header,
    Holder, Index, Instr, Item, Kernel, KernelCall, Locality, Operand, PlacementGroup, Plan, PlanInput, PlanParameter,
    Prediction, Program, ProgramOutput, Rank, RankPrediction, RecomputePrediction, Segment, Stream, StreamKind,
};
use trainc_ir::{DType, Diagnostic, InputRole, Phase, Type};

/// What is wrong, with the place in front: `programs[1].body[2]: ..`.
type Read<T> = Result<T, String>;

/// The format of a plan, where the bytes begin as one.
pub(in super::super) fn version(bytes: &[u8]) -> Option<u32> {
    // The magic and the format come first, so the beginning of a file that is cut off still tells what it was.
    let head = &bytes[..bytes.len().min(2 + MAGIC.len() + 6)];
    let (tag, rest) = head.split_at_checked(2)?;
    if tag != [0x0a, MAGIC.len() as u8] || !rest.starts_with(MAGIC.as_bytes()) {
        return None;
    }
    let mut rest = &rest[MAGIC.len()..];
    if rest.first() != Some(&0x10) {
        return if rest.is_empty() { Some(trainc_ir::plan::FORMAT) } else { None };
    }
    rest = &rest[1..];
    prost::encoding::decode_varint(&mut rest).map_or(Some(trainc_ir::plan::FORMAT), |format| u32::try_from(format).ok())
}

/// Reads a plan from a message of the right format.
pub(in super::super) fn plan_from_protobuf(bytes: &[u8]) -> Result<Plan, Diagnostic> {
    let message = pb::Plan::decode(bytes).map_err(|error| {
        let text = error.to_string();
        if text.contains("buffer underflow") || text.contains("unexpected end") { truncated() } else { bad_plan(text) }
    })?;
    plan(message).map_err(bad_plan)
}

fn plan(message: pb::Plan) -> Read<Plan> {
    Ok(Plan {
        format: message.format,
        header: header(need(message.header, "header")?)?,
        micro_batches: message.micro_batches,
        inputs: table(message.inputs, "inputs", input)?,
        groups: table(message.groups, "groups", |group| {
            let locality = Locality { nodes: group.nodes, gpus_per_node: group.gpus_per_node };
            Ok(PlacementGroup { name: group.name, gpu: group.gpu, count: group.count, locality })
        })?,
        ranks: table(message.ranks, "ranks", |message| rank(&message))?,
        communicators: table(message.communicators, "communicators", |communicator| ids(&communicator.ranks))?,
        kernels: table(message.kernels, "kernels", kernel)?,
        segments: table(message.segments, "segments", segment)?,
        programs: table(message.programs, "programs", program)?,
        parameters: list(message.parameters, "parameters", parameter)?,
        prediction: prediction(need(message.prediction, "prediction")?)?,
    })
}

fn need<T>(value: Option<T>, name: &str) -> Read<T> {
    value.ok_or_else(|| format!("`{name}` is missing"))
}

fn list<M, T>(messages: Vec<M>, name: &str, read: impl Fn(M) -> Read<T>) -> Read<Vec<T>> {
    let entries = messages.into_iter().enumerate();
    entries.map(|(index, message)| read(message).map_err(|error| format!("{name}[{index}]: {error}"))).collect()
}

fn table<I: Id, M, T>(messages: Vec<M>, name: &str, read: impl Fn(M) -> Read<T>) -> Read<Table<I, T>> {
    list(messages, name, read).map(|rows| rows.into_iter().collect())
}

fn id<I: Id>(index: u32) -> Read<I> {
    if index == u32::MAX {
        return Err("an id is out of range".to_owned());
    }
    Ok(I::from_index(index as usize))
}

fn ids<I: Id>(list: &[u32]) -> Read<Vec<I>> {
    list.iter().map(|&index| id(index)).collect()
}

fn header(message: pb::Header) -> Read<Header> {
    let digests = need(message.digests, "digests")?;
    let digests = Digests { model: digests.model, training_graph: digests.training_graph, cluster: digests.cluster };
    Ok(Header {
        compiler: message.compiler,
        model: message.model,
        cluster: message.cluster,
        digests,
        bindings: message.bindings.into_iter().map(|binding| (binding.name, binding.value)).collect(),
        options: message.options.into_iter().map(|option| (option.name, option.value)).collect(),
    })
}

fn ty(message: Option<pb::Type>) -> Read<Type> {
    let message = need(message, "type")?;
    let dtype = match message.dtype() {
        pb::ElementType::Bool => DType::Bool,
        pb::ElementType::U8 => DType::U8,
        pb::ElementType::I8 => DType::I8,
        pb::ElementType::I32 => DType::I32,
        pb::ElementType::I64 => DType::I64,
        pb::ElementType::F16 => DType::F16,
        pb::ElementType::Bf16 => DType::BF16,
        pb::ElementType::F32 => DType::F32,
        pb::ElementType::F64 => DType::F64,
        pb::ElementType::Unspecified => return Err(format!("unknown element type {}", message.dtype)),
    };
    Ok(Type { dtype, shape: message.shape })
}

fn types(messages: Vec<pb::Type>, name: &str) -> Read<Vec<Type>> {
    list(messages, name, |message| ty(Some(message)))
}

fn input(message: pb::Input) -> Read<PlanInput> {
    let role = match message.role() {
        pb::InputRole::Data => InputRole::Data,
        pb::InputRole::Label => InputRole::Label,
        pb::InputRole::Parameter => InputRole::Parameter,
        pb::InputRole::Buffer => InputRole::Buffer,
        pb::InputRole::State => InputRole::State,
        pb::InputRole::GradientSum => InputRole::GradientSum,
        pb::InputRole::Scalar => InputRole::Scalar,
        pb::InputRole::Unspecified => return Err(format!("unknown role {}", message.role)),
    };
    Ok(PlanInput { name: message.name, role, ty: ty(message.r#type)? })
}

fn rank(message: &pb::Rank) -> Read<Rank> {
    Ok(Rank {
        group: id(message.group)?,
        index: message.index,
        program: id(message.program)?,
        stage: message.stage,
        data: message.data,
        tensor: message.tensor,
        communicators: ids(&message.communicators)?,
    })
}

fn kernel(message: pb::Kernel) -> Read<Kernel> {
    let attrs = list(message.attrs, "attrs", |attr| Ok((attr.name, self::attr(need(attr.value, "value")?)?)))?;
    let op = Op::from_attrs(&message.op, attrs.iter().map(|(name, attr)| (name.as_str(), attr)))?;
    Ok(Kernel { op, inputs: types(message.inputs, "inputs")?, outputs: types(message.outputs, "outputs")? })
}

fn attr(value: pb::attr::Value) -> Read<Attr> {
    Ok(match value {
        pb::attr::Value::Flag(flag) => Attr::Bool(flag),
        pb::attr::Value::Int(int) => Attr::Int(int),
        pb::attr::Value::Real(real) => Attr::Real(Real::new(real)),
        pb::attr::Value::Word(word) => Attr::Word(word),
        pb::attr::Value::Text(text) => Attr::Text(text),
        pb::attr::Value::Ints(ints) => Attr::Ints(ints.values),
        pb::attr::Value::Types(list) => Attr::Types(types(list.values, "types")?),
        pb::attr::Value::Literal(literal) => Attr::Literal(self::literal(literal)?),
    })
}

fn literal(message: pb::Literal) -> Read<Literal> {
    let ty = ty(message.r#type)?;
    let element = ty.dtype.bytes();
    let (data, expected) = match need(message.data, "data")? {
        pb::literal::Data::Splat(bytes) => (LiteralData::Splat(bytes), Some(element)),
        pb::literal::Data::Dense(bytes) => {
            let expected = ty.checked_elements().and_then(|elements| elements.checked_mul(element));
            (LiteralData::Dense(bytes), expected)
        }
    };
    let (LiteralData::Splat(bytes) | LiteralData::Dense(bytes)) = &data;
    if expected != Some(bytes.len() as u64) {
        return Err(format!("a literal of type {ty} cannot have {} bytes of data", bytes.len()));
    }
    Ok(Literal { ty, data })
}

fn segment(message: pb::Segment) -> Read<Segment> {
    let phase = match message.phase() {
        pb::Phase::Forward => Phase::Forward,
        pb::Phase::InputGrad => Phase::InputGrad,
        pb::Phase::WeightGrad => Phase::WeightGrad,
        pb::Phase::Recompute => Phase::Recompute,
        pb::Phase::Update => Phase::Update,
        pb::Phase::Unspecified => return Err(format!("unknown phase {}", message.phase)),
    };
    let formals = list(message.formals, "formals", |formal| {
        let access = match formal.access() {
            pb::Access::Read => Access::Read,
            pb::Access::Write => Access::Write,
            pb::Access::Update => Access::Update,
            pb::Access::Unspecified => return Err(format!("unknown access {}", formal.access)),
        };
        Ok(Formal { ty: ty(formal.r#type)?, access })
    })?;
    let body = list(message.body, "body", |call| {
        let operands = |list: &[i64]| list.iter().map(|&number| operand(number)).collect::<Read<_>>();
        let (inputs, outputs) = (operands(&call.inputs)?, operands(&call.outputs)?);
        Ok(KernelCall { kernel: id(call.kernel)?, inputs, outputs })
    })?;
    Ok(Segment { name: message.name, phase, formals, locals: types(message.locals, "locals")?, body })
}

fn operand(number: i64) -> Read<Operand> {
    let index = |number: i64| u32::try_from(number).map_err(|_| format!("operand {number} is out of range"));
    if number >= 0 { index(number).map(Operand::Formal) } else { index(-1 - number).map(Operand::Local) }
}

fn program(message: pb::Program) -> Read<Program> {
    let streams = table(message.streams, "streams", |stream| {
        let kind = match stream.kind() {
            pb::StreamKind::Compute => StreamKind::Compute,
            pb::StreamKind::Side => StreamKind::Side,
            pb::StreamKind::Transfer => StreamKind::Transfer,
            pb::StreamKind::Unspecified => return Err(format!("unknown kind {}", stream.kind)),
        };
        Ok(Stream { name: stream.name, kind })
    })?;
    Ok(Program {
        name: message.name,
        stage: message.stage,
        arena_bytes: message.arena_bytes,
        arena_lower_bound: message.arena_lower_bound,
        streams,
        events: message.events.into_iter().collect(),
        ports: message.ports.into_iter().collect(),
        buffers: table(message.buffers, "buffers", buffer)?,
        frames: table(message.frames, "frames", |frame| {
            Ok(Frame { segment: id(frame.segment)?, offsets: frame.offsets })
        })?,
        body: list(message.body, "body", item)?,
        outputs: list(message.outputs, "outputs", |output| {
            Ok(ProgramOutput { name: output.name, buffer: id(output.buffer)? })
        })?,
    })
}

fn buffer(message: pb::Buffer) -> Read<Buffer> {
    let kind = match message.kind() {
        pb::BufferKind::Parameter => BufferKind::Parameter,
        pb::BufferKind::State => BufferKind::State,
        pb::BufferKind::Gradient => BufferKind::Gradient,
        pb::BufferKind::Scalar => BufferKind::Scalar,
        pb::BufferKind::Data => BufferKind::Data,
        pb::BufferKind::Saved => BufferKind::Saved,
        pb::BufferKind::Boundary => BufferKind::Boundary,
        pb::BufferKind::Unspecified => return Err(format!("unknown kind {}", message.kind)),
    };
    Ok(Buffer { name: message.name, ty: ty(message.r#type)?, kind, offsets: message.offsets })
}

fn item(message: pb::Item) -> Read<Item> {
    Ok(match need(message.item, "item")? {
        pb::item::Item::Once(entry) => Item::Once(instr(entry)?),
        pb::item::Item::Loop(pb::Loop { trips, body }) => Item::Loop { trips, body: list(body, "body", instr)? },
    })
}

fn instr(message: pb::Instr) -> Read<Instr> {
    Ok(Instr {
        stream: id(message.stream)?,
        waits: list(message.waits, "waits", event_ref)?,
        action: action(need(message.action, "action")?)?,
        record: message.record.map(event_ref).transpose()?,
    })
}

fn index(message: Option<pb::Index>) -> Read<Index> {
    let pb::Index { base, stride } = need(message, "index")?;
    Ok(Index { base, stride })
}

fn event_ref(message: pb::EventRef) -> Read<EventRef> {
    Ok(EventRef { event: id(message.event)?, index: index(message.index)? })
}

fn buffer_ref(message: Option<pb::BufferRef>) -> Read<BufferRef> {
    let message = need(message, "buffer")?;
    Ok(BufferRef { buffer: id(message.buffer)?, slot: index(message.slot)? })
}

fn action(message: pb::Action) -> Read<Action> {
    Ok(match need(message.action, "action")? {
        pb::action::Action::Call(call) => Action::Call {
            segment: id(call.segment)?,
            frames: list(call.frames, "frames", id)?,
            args: list(call.args, "args", |arg| buffer_ref(Some(arg)))?,
            micro_batch: index(call.micro_batch)?,
            site: call.site,
        },
        pb::action::Action::Load(load) => Action::Load {
            input: id(load.input)?,
            buffer: buffer_ref(load.buffer)?,
            micro_batch: index(load.micro_batch)?,
        },
        pb::action::Action::Send(send) => Action::Send { port: id(send.port)?, buffer: buffer_ref(send.buffer)? },
        pb::action::Action::Recv(recv) => Action::Recv { port: id(recv.port)?, buffer: buffer_ref(recv.buffer)? },
        pb::action::Action::AllReduce(sum) => {
            Action::AllReduce { port: id(sum.port)?, buffer: buffer_ref(sum.buffer)? }
        }
        pb::action::Action::Broadcast(broadcast) => {
            Action::Broadcast { port: id(broadcast.port)?, root: broadcast.root, buffer: buffer_ref(broadcast.buffer)? }
        }
        pb::action::Action::Group(group) => Action::Group(list(group.actions, "group", action)?),
    })
}

fn parameter(message: pb::Parameter) -> Read<PlanParameter> {
    let holders = list(message.holders, "holders", |holder| {
        Ok(Holder { program: id(holder.program)?, buffer: id(holder.buffer)? })
    })?;
    Ok(PlanParameter { name: message.name, ty: ty(message.r#type)?, trained: message.trained, holders })
}

fn prediction(message: pb::Prediction) -> Read<Prediction> {
    let pb::RecomputePrediction { total_ps, hidden_ps, exposed_ps } = need(message.recompute, "recompute")?;
    Ok(Prediction {
        step_ps: message.step_ps,
        idle_ps: message.idle_ps,
        samples: message.samples,
        tokens: message.tokens,
        ranks: list(message.ranks, "ranks", rank_prediction)?,
        recompute: RecomputePrediction { total_ps, hidden_ps, exposed_ps },
        blocks: list(message.blocks, "blocks", |block| {
            Ok(BlockClass {
                name: block.name,
                instances: block.instances,
                nodes: block.nodes,
                parameter_bytes: block.parameter_bytes,
                saved_bytes: block.saved_bytes,
            })
        })?,
    })
}

fn rank_prediction(message: pb::RankPrediction) -> Read<RankPrediction> {
    let pb::Breakdown { parameters, gradients, optimizer, saved, transient, communication, workspace, context } =
        need(message.breakdown, "breakdown")?;
    Ok(RankPrediction {
        arena_bytes: message.arena_bytes,
        device_bytes: message.device_bytes,
        capacity_bytes: message.capacity_bytes,
        breakdown: Breakdown { parameters, gradients, optimizer, saved, transient, communication, workspace, context },
        busy_ps: message.busy_ps,
        units: message.units,
        recomputed_blocks: message.recomputed_blocks,
    })
}
