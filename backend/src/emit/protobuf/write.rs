//! Plans to messages. Every structure is taken apart by name, so that a field cannot be forgotten.

use super::{MAGIC, messages as pb};
use prost::Message;
use trainc_ir::id::Id;
use trainc_ir::op::{Attr, Literal, LiteralData, Op};
use trainc_ir::plan::{
    Access, Action, BlockClass, Breakdown, Buffer, BufferKind, BufferRef, Digests, EventRef, Formal, Frame, Header,
    Holder, Index, Instr, Item, Kernel, KernelCall, Locality, Operand, PlacementGroup, Plan, PlanInput, PlanParameter,
    Prediction, Program, ProgramOutput, Rank, RankPrediction, RecomputePrediction, Segment, Stream, StreamKind,
};
use trainc_ir::{DType, InputRole, Phase, Type};

/// The protobuf form of a plan.
pub fn plan_to_protobuf(plan: &Plan) -> Vec<u8> {
    let Plan {
        format,
        header,
        micro_batches,
        inputs,
        groups,
        ranks,
        communicators,
        kernels,
        segments,
        programs,
        parameters,
        prediction: expected,
    } = plan;
    let communicators = communicators.values().map(|ranks| pb::Communicator { ranks: ids(ranks) });
    let message = pb::Plan {
        magic: MAGIC.to_owned(),
        format: *format,
        header: Some(self::header(header)),
        micro_batches: *micro_batches,
        inputs: inputs.values().map(input).collect(),
        groups: groups.values().map(group).collect(),
        ranks: ranks.values().map(rank).collect(),
        communicators: communicators.collect(),
        kernels: kernels.values().map(kernel).collect(),
        segments: segments.values().map(segment).collect(),
        programs: programs.values().map(program).collect(),
        parameters: parameters.iter().map(parameter).collect(),
        prediction: Some(prediction(expected)),
    };
    message.encode_to_vec()
}

fn id(id: impl Id) -> u32 {
    id.index() as u32
}

fn ids<I: Id>(list: &[I]) -> Vec<u32> {
    list.iter().map(|&entry| id(entry)).collect()
}

fn header(header: &Header) -> pb::Header {
    let Header { compiler, model, cluster, digests, bindings, options } = header;
    let Digests { model: model_digest, training_graph, cluster: cluster_digest } = digests;
    let bindings = bindings.iter().map(|(name, value)| pb::Binding { name: name.clone(), value: *value });
    let options = options.iter().map(|(name, value)| pb::Setting { name: name.clone(), value: value.clone() });
    pb::Header {
        compiler: compiler.clone(),
        model: model.clone(),
        cluster: cluster.clone(),
        digests: Some(pb::Digests {
            model: model_digest.clone(),
            training_graph: training_graph.clone(),
            cluster: cluster_digest.clone(),
        }),
        bindings: bindings.collect(),
        options: options.collect(),
    }
}

fn ty(ty: &Type) -> pb::Type {
    let Type { dtype, shape } = ty;
    let dtype = match dtype {
        DType::Bool => pb::ElementType::Bool,
        DType::U8 => pb::ElementType::U8,
        DType::I8 => pb::ElementType::I8,
        DType::I32 => pb::ElementType::I32,
        DType::I64 => pb::ElementType::I64,
        DType::F16 => pb::ElementType::F16,
        DType::BF16 => pb::ElementType::Bf16,
        DType::F32 => pb::ElementType::F32,
        DType::F64 => pb::ElementType::F64,
    };
    pb::Type { dtype: dtype.into(), shape: shape.clone() }
}

fn types(list: &[Type]) -> Vec<pb::Type> {
    list.iter().map(ty).collect()
}

fn input(input: &PlanInput) -> pb::Input {
    let PlanInput { name, role, ty: held } = input;
    let role = match role {
        InputRole::Data => pb::InputRole::Data,
        InputRole::Label => pb::InputRole::Label,
        InputRole::Parameter => pb::InputRole::Parameter,
        InputRole::Buffer => pb::InputRole::Buffer,
        InputRole::State => pb::InputRole::State,
        InputRole::GradientSum => pb::InputRole::GradientSum,
        InputRole::Scalar => pb::InputRole::Scalar,
    };
    pb::Input { name: name.clone(), role: role.into(), r#type: Some(ty(held)) }
}

fn group(group: &PlacementGroup) -> pb::Group {
    let PlacementGroup { name, gpu, count, locality: Locality { nodes, gpus_per_node } } = group;
    let (name, gpu) = (name.clone(), gpu.clone());
    pb::Group { name, gpu, count: *count, nodes: *nodes, gpus_per_node: *gpus_per_node }
}

fn rank(rank: &Rank) -> pb::Rank {
    let Rank { group, index, program, stage, data, tensor, communicators } = rank;
    pb::Rank {
        group: id(*group),
        index: *index,
        program: id(*program),
        stage: *stage,
        data: *data,
        tensor: *tensor,
        communicators: ids(communicators),
    }
}

fn kernel(kernel: &Kernel) -> pb::Kernel {
    let Kernel { op, inputs, outputs } = kernel;
    let attrs = Op::attrs(op).into_iter().map(|(name, value)| pb::Attr {
        name: name.to_owned(),
        value: Some(match value {
            Attr::Bool(flag) => pb::attr::Value::Flag(flag),
            Attr::Int(int) => pb::attr::Value::Int(int),
            Attr::Real(real) => pb::attr::Value::Real(real.get()),
            Attr::Word(word) => pb::attr::Value::Word(word),
            Attr::Text(text) => pb::attr::Value::Text(text),
            Attr::Ints(values) => pb::attr::Value::Ints(pb::Ints { values }),
            Attr::Types(values) => pb::attr::Value::Types(pb::Types { values: types(&values) }),
            Attr::Literal(Literal { ty: held, data }) => pb::attr::Value::Literal(pb::Literal {
                r#type: Some(ty(&held)),
                data: Some(match data {
                    LiteralData::Splat(bytes) => pb::literal::Data::Splat(bytes),
                    LiteralData::Dense(bytes) => pb::literal::Data::Dense(bytes),
                }),
            }),
        }),
    });
    pb::Kernel { op: op.spelling().to_owned(), attrs: attrs.collect(), inputs: types(inputs), outputs: types(outputs) }
}

fn segment(segment: &Segment) -> pb::Segment {
    let Segment { name, phase, formals, locals, body } = segment;
    let phase = match phase {
        Phase::Forward => pb::Phase::Forward,
        Phase::InputGrad => pb::Phase::InputGrad,
        Phase::WeightGrad => pb::Phase::WeightGrad,
        Phase::Recompute => pb::Phase::Recompute,
        Phase::Update => pb::Phase::Update,
    };
    let formals = formals.iter().map(|Formal { ty: held, access }| {
        let access = match access {
            Access::Read => pb::Access::Read,
            Access::Write => pb::Access::Write,
            Access::Update => pb::Access::Update,
        };
        pb::Formal { r#type: Some(ty(held)), access: access.into() }
    });
    let operands = |list: &[Operand]| list.iter().map(operand).collect();
    let body = body.iter().map(|KernelCall { kernel, inputs, outputs }| pb::KernelCall {
        kernel: id(*kernel),
        inputs: operands(inputs),
        outputs: operands(outputs),
    });
    pb::Segment {
        name: name.clone(),
        phase: phase.into(),
        formals: formals.collect(),
        locals: types(locals),
        body: body.collect(),
    }
}

fn operand(operand: &Operand) -> i64 {
    match operand {
        Operand::Formal(index) => i64::from(*index),
        Operand::Local(index) => -1 - i64::from(*index),
    }
}

fn program(program: &Program) -> pb::Program {
    let Program { name, stage, arena_bytes, arena_lower_bound, streams, events, ports, buffers, frames, body, outputs } =
        program;
    let streams = streams.values().map(|Stream { name, kind }| {
        let kind = match kind {
            StreamKind::Compute => pb::StreamKind::Compute,
            StreamKind::Side => pb::StreamKind::Side,
            StreamKind::Transfer => pb::StreamKind::Transfer,
        };
        pb::Stream { name: name.clone(), kind: kind.into() }
    });
    let frames =
        frames.values().map(|Frame { segment, offsets }| pb::Frame { segment: id(*segment), offsets: offsets.clone() });
    let outputs =
        outputs.iter().map(|ProgramOutput { name, buffer }| pb::Output { name: name.clone(), buffer: id(*buffer) });
    pb::Program {
        name: name.clone(),
        stage: *stage,
        arena_bytes: *arena_bytes,
        arena_lower_bound: *arena_lower_bound,
        streams: streams.collect(),
        events: events.values().cloned().collect(),
        ports: ports.values().cloned().collect(),
        buffers: buffers.values().map(buffer).collect(),
        frames: frames.collect(),
        body: body.iter().map(item).collect(),
        outputs: outputs.collect(),
    }
}

fn buffer(buffer: &Buffer) -> pb::Buffer {
    let Buffer { name, ty: held, kind, offsets } = buffer;
    let kind = match kind {
        BufferKind::Parameter => pb::BufferKind::Parameter,
        BufferKind::State => pb::BufferKind::State,
        BufferKind::Gradient => pb::BufferKind::Gradient,
        BufferKind::Scalar => pb::BufferKind::Scalar,
        BufferKind::Data => pb::BufferKind::Data,
        BufferKind::Saved => pb::BufferKind::Saved,
        BufferKind::Boundary => pb::BufferKind::Boundary,
    };
    pb::Buffer { name: name.clone(), r#type: Some(ty(held)), kind: kind.into(), offsets: offsets.clone() }
}

fn item(item: &Item) -> pb::Item {
    let item = match item {
        Item::Once(entry) => pb::item::Item::Once(instr(entry)),
        Item::Loop { trips, body } => {
            pb::item::Item::Loop(pb::Loop { trips: *trips, body: body.iter().map(instr).collect() })
        }
    };
    pb::Item { item: Some(item) }
}

fn instr(instr: &Instr) -> pb::Instr {
    let Instr { stream, waits, action, record } = instr;
    pb::Instr {
        stream: id(*stream),
        waits: waits.iter().map(event_ref).collect(),
        action: Some(self::action(action)),
        record: record.as_ref().map(event_ref),
    }
}

fn index(index: &Index) -> pb::Index {
    let Index { base, stride } = *index;
    pb::Index { base, stride }
}

fn event_ref(event: &EventRef) -> pb::EventRef {
    let EventRef { event, index: instance } = event;
    pb::EventRef { event: id(*event), index: Some(index(instance)) }
}

fn buffer_ref(buffer: &BufferRef) -> pb::BufferRef {
    let BufferRef { buffer, slot } = buffer;
    pb::BufferRef { buffer: id(*buffer), slot: Some(index(slot)) }
}

fn action(action: &Action) -> pb::Action {
    let transfer = |port, buffer| pb::Transfer { port: id(port), buffer: Some(buffer_ref(buffer)) };
    let action = match action {
        Action::Call { segment, frames, args, micro_batch, site } => pb::action::Action::Call(pb::Call {
            segment: id(*segment),
            frames: frames.iter().map(|frame| id(*frame)).collect(),
            args: args.iter().map(buffer_ref).collect(),
            micro_batch: Some(index(micro_batch)),
            site: *site,
        }),
        Action::Load { input, buffer, micro_batch } => pb::action::Action::Load(pb::Load {
            input: id(*input),
            buffer: Some(buffer_ref(buffer)),
            micro_batch: Some(index(micro_batch)),
        }),
        Action::Send { port, buffer } => pb::action::Action::Send(transfer(*port, buffer)),
        Action::Recv { port, buffer } => pb::action::Action::Recv(transfer(*port, buffer)),
        Action::AllReduce { port, buffer } => pb::action::Action::AllReduce(transfer(*port, buffer)),
        Action::Broadcast { port, root, buffer } => pb::action::Action::Broadcast(pb::Broadcast {
            port: id(*port),
            root: *root,
            buffer: Some(buffer_ref(buffer)),
        }),
        Action::Group(actions) => {
            pb::action::Action::Group(pb::ActionGroup { actions: actions.iter().map(self::action).collect() })
        }
    };
    pb::Action { action: Some(action) }
}

fn parameter(parameter: &PlanParameter) -> pb::Parameter {
    let PlanParameter { name, ty: held, trained, holders } = parameter;
    let holders =
        holders.iter().map(|Holder { program, buffer }| pb::Holder { program: id(*program), buffer: id(*buffer) });
    pb::Parameter { name: name.clone(), r#type: Some(ty(held)), trained: *trained, holders: holders.collect() }
}

fn prediction(prediction: &Prediction) -> pb::Prediction {
    let Prediction { step_ps, idle_ps, samples, tokens, ranks, recompute, blocks } = prediction;
    let RecomputePrediction { total_ps, hidden_ps, exposed_ps } = *recompute;
    let blocks = blocks.iter().map(|block| {
        let BlockClass { name, instances, nodes, parameter_bytes, saved_bytes } = block;
        pb::BlockClass {
            name: name.clone(),
            instances: *instances,
            nodes: *nodes,
            parameter_bytes: *parameter_bytes,
            saved_bytes: *saved_bytes,
        }
    });
    pb::Prediction {
        step_ps: *step_ps,
        idle_ps: *idle_ps,
        samples: *samples,
        tokens: *tokens,
        ranks: ranks.iter().map(rank_prediction).collect(),
        recompute: Some(pb::RecomputePrediction { total_ps, hidden_ps, exposed_ps }),
        blocks: blocks.collect(),
    }
}

fn rank_prediction(rank: &RankPrediction) -> pb::RankPrediction {
    let RankPrediction { arena_bytes, device_bytes, capacity_bytes, breakdown, busy_ps, units, recomputed_blocks } =
        rank;
    let Breakdown { parameters, gradients, optimizer, saved, transient, communication, workspace, context } =
        *breakdown;
    pb::RankPrediction {
        arena_bytes: *arena_bytes,
        device_bytes: *device_bytes,
        capacity_bytes: *capacity_bytes,
        breakdown: Some(pb::Breakdown {
            parameters,
            gradients,
            optimizer,
            saved,
            transient,
            communication,
            workspace,
            context,
        }),
        busy_ps: *busy_ps,
        units: units.clone(),
        recomputed_blocks: *recomputed_blocks,
    }
}
