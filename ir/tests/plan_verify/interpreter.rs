//! Runs plans on bytes under random interleavings. An operator is a pseudo-random function of its attributes, types and
//! operand bytes, so that two runs agree only where they compute the same thing; undefined bytes differ in every run.
//! Written apart from the verifier, which it is the judge of.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use trainc_ir::id::Id;
use trainc_ir::op::{Creation, Elementwise, Literal, Op, Optimizer, Random};
use trainc_ir::plan::{Action, BufferKind, BufferRef, Instr, Item, Operand, Plan, Program, frame_of};
use trainc_ir::{Def, Graph, InputRole, Output, OutputRole, TrainingGraph, Type, ValueId};

type Bytes = Vec<u8>;

/// Pseudo-random numbers (SplitMix64).
pub(crate) struct Random64(pub(crate) u64);

impl Random64 {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub(crate) fn bytes(&mut self, n: u64) -> Bytes {
        let words = (0..n.div_ceil(8)).flat_map(|_| self.next().to_le_bytes());
        words.take(n as usize).collect()
    }
}

fn seeded(key: impl Hash) -> Random64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    Random64(hasher.finish())
}

/// What an operator makes of bytes; `draw` is the micro-batch and the site that a call adds.
fn apply(op: &Op, inputs: &[Type], outputs: &[Type], operands: &[Bytes], draw: (u64, u64)) -> Vec<Bytes> {
    if op.is_alias() {
        return vec![operands[0].clone()];
    }
    let (op, draw) = match op {
        Op::Random(Random::Dropout { p, site }) => {
            (Random::Dropout { p: *p, site: 0 }.into(), Some((draw.0, draw.1.wrapping_add(*site))))
        }
        Op::Random(Random::DropoutGrad { p, site }) => {
            (Random::DropoutGrad { p: *p, site: 0 }.into(), Some((draw.0, draw.1.wrapping_add(*site))))
        }
        op => (op.clone(), None),
    };
    let key = (op, inputs, outputs, operands, draw);
    outputs.iter().enumerate().map(|(index, ty)| seeded((&key, index)).bytes(ty.bytes())).collect()
}

/// The bytes of a leaf of the training graph.
fn leaf(role: InputRole, name: &str, batch: u64, ty: &Type) -> Bytes {
    let batch = if matches!(role, InputRole::Data | InputRole::Label) { batch } else { 0 };
    seeded(("leaf", name, batch)).bytes(ty.bytes())
}

/// What a step leaves behind, by name: weights, states, running averages, loss sum and count.
pub(crate) type Outcome = BTreeMap<String, Bytes>;

/// The outcome that the training graph asks for.
pub(crate) fn expected(training: &TrainingGraph, micro_batches: u64) -> Outcome {
    let mut sums: BTreeMap<String, (ValueId, Type, Bytes)> = BTreeMap::new();
    let zero = |ty: &Type| {
        let op: Op = Creation::Constant { value: Literal::splat_i64(ty.clone(), 0) }.into();
        apply(&op, &[], std::slice::from_ref(ty), &[], (0, 0)).remove(0)
    };
    let updated = |output: &&Output| output.role == OutputRole::Updated;
    let mut averages = Outcome::new();
    for output in training.step.outputs.iter().filter(|output| !updated(output)) {
        let gradient = training.update.input(&output.name).map(|input| training.update.ty(input.value));
        let ty = gradient.unwrap_or_else(|| training.step.ty(output.value)).clone();
        let start = zero(&ty);
        sums.insert(output.name.clone(), (output.value, ty, start));
    }
    for batch in 0..micro_batches {
        let step = &training.step;
        let before = |name: &str, role, ty: &Type| match averages.get(name) {
            Some(average) => average.clone(),
            None => leaf(role, name, batch, ty),
        };
        let values = evaluate(step, batch, before);
        for output in step.outputs.iter().filter(updated) {
            averages.insert(output.name.clone(), values[output.value.index()].clone());
        }
        for (value, ty, sum) in sums.values_mut() {
            let types = [ty.clone(), step.ty(*value).clone()];
            let operands = [sum.clone(), values[value.index()].clone()];
            *sum = apply(&Optimizer::Accumulate.into(), &types, std::slice::from_ref(ty), &operands, (0, 0)).remove(0);
        }
    }
    let values = evaluate(&training.update, 0, |name, role, ty| match (role, name) {
        (InputRole::Scalar, "count") => sums["loss_count"].2.clone(),
        (InputRole::GradientSum, _) => sums[name].2.clone(),
        _ => leaf(role, name, 0, ty),
    });
    let updated =
        training.update.outputs.iter().map(|output| (output.name.clone(), values[output.value.index()].clone()));
    let losses = ["loss_sum", "loss_count"].map(|name| (name.to_owned(), sums[name].2.clone()));
    updated.chain(losses).chain(averages).collect()
}

fn evaluate(graph: &Graph, batch: u64, leaf: impl Fn(&str, InputRole, &Type) -> Bytes) -> Vec<Bytes> {
    let mut values: Vec<Bytes> = vec![Vec::new(); graph.values.len()];
    for (id, value) in graph.values.iter() {
        if let Def::Input(position) = value.def {
            let input = &graph.inputs[position];
            values[id.index()] = leaf(&input.name, input.role, &value.ty);
        }
    }
    for node in graph.nodes.values() {
        let types = |ids: &[ValueId]| ids.iter().map(|&id| graph.ty(id).clone()).collect::<Vec<_>>();
        let operands: Vec<Bytes> = node.inputs.iter().map(|id| values[id.index()].clone()).collect();
        let results = apply(&node.op, &types(&node.inputs), &types(&node.outputs), &operands, (batch, 0));
        for (output, bytes) in node.outputs.iter().zip(results) {
            values[output.index()] = bytes;
        }
    }
    values
}

/// An instruction that a stream has begun.
struct Running<'p> {
    instr: &'p Instr,
    i: u64,
    /// For calls the next kernel; for transfers which parts are done.
    kernel: usize,
    pending: Option<Vec<(u64, Bytes)>>,
    done: Vec<bool>,
}

struct RankRun<'p> {
    program: &'p Program,
    communicators: &'p [trainc_ir::plan::CommunicatorId],
    arena: Bytes,
    queues: Vec<VecDeque<(&'p Instr, u64)>>,
    running: Vec<Option<Running<'p>>>,
    recorded: HashSet<(usize, i64)>,
}

fn actions(instr: &Instr) -> &[Action] {
    match &instr.action {
        Action::Group(actions) => actions,
        action => std::slice::from_ref(action),
    }
}

impl RankRun<'_> {
    fn place(&self, buffer: BufferRef, i: u64) -> (u64, u64) {
        let entry = &self.program.buffers[buffer.buffer];
        let slot = buffer.slot.value(i).rem_euclid(entry.offsets.len() as i64);
        (entry.offsets[slot as usize], entry.ty.bytes())
    }

    fn read(&self, (start, bytes): (u64, u64)) -> Bytes {
        self.arena[start as usize..(start + bytes) as usize].to_vec()
    }

    fn write(&mut self, start: u64, bytes: &[u8]) {
        self.arena[start as usize..start as usize + bytes.len()].copy_from_slice(bytes);
    }

    fn begin(&mut self, stream: usize) -> bool {
        let Some(&(instr, i)) = self.queues[stream].front() else { return false };
        let open = |index: i64, event: usize| index >= 0 && !self.recorded.contains(&(event, index));
        if self.running[stream].is_some() || instr.waits.iter().any(|w| open(w.index.value(i), w.event.index())) {
            return false;
        }
        self.queues[stream].pop_front();
        let done = vec![false; actions(instr).len()];
        self.running[stream] = Some(Running { instr, i, kernel: 0, pending: None, done });
        true
    }

    fn end(&mut self, stream: usize) {
        let running = self.running[stream].take().expect("an instruction that ends was begun");
        if let Some(record) = &running.instr.record {
            self.recorded.insert((record.event.index(), record.index.value(running.i)));
        }
    }
}

/// Runs a step; `None` when it does not end. The outcome is that of every holder, by rank and name.
pub(crate) fn run(plan: &Plan, seed: u64) -> Option<BTreeMap<(usize, String), Bytes>> {
    let mut random = Random64(seed);
    let mut ranks: Vec<RankRun<'_>> = plan.ranks.values().map(|rank| start(plan, rank, &mut random)).collect();
    // Favouring one stream at a time for a while finds more orders than picking evenly does.
    loop {
        let mut order: Vec<(usize, usize)> = Vec::new();
        for (rank, run) in ranks.iter().enumerate() {
            order.extend((0..run.queues.len()).map(|stream| (rank, stream)));
        }
        for index in (1..order.len()).rev() {
            order.swap(index, random.below(index + 1));
        }
        let mut moved = false;
        for (rank, stream) in order {
            for _ in 0..=random.below(12) {
                moved |= advance(plan, &mut ranks, rank, stream, &mut random);
            }
        }
        if !moved {
            break;
        }
    }
    if ranks.iter().any(|run| run.queues.iter().any(|q| !q.is_empty()) || run.running.iter().any(Option::is_some)) {
        return None;
    }
    let mut outcome = BTreeMap::new();
    for (rank, run) in ranks.iter().enumerate() {
        let persistent = |kind| matches!(kind, BufferKind::Parameter | BufferKind::State);
        let held = run.program.buffers.iter().filter(|(_, buffer)| persistent(buffer.kind));
        let held = held.map(|(id, buffer)| (id, buffer.name.clone()));
        let given = run.program.outputs.iter().map(|output| (output.buffer, output.name.clone()));
        for (id, name) in held.chain(given) {
            let entry = &run.program.buffers[id];
            outcome.insert((rank, name), run.read((entry.offsets[0], entry.ty.bytes())));
        }
    }
    Some(outcome)
}

fn start<'p>(plan: &'p Plan, rank: &'p trainc_ir::plan::Rank, random: &mut Random64) -> RankRun<'p> {
    let program = &plan.programs[rank.program];
    let mut queues: Vec<VecDeque<(&Instr, u64)>> = vec![VecDeque::new(); program.streams.len()];
    for item in &program.body {
        let (trips, body) = match item {
            Item::Once(instr) => (1, std::slice::from_ref(instr)),
            Item::Loop { trips, body } => (*trips, body.as_slice()),
        };
        for i in 0..trips {
            body.iter().for_each(|instr| queues[instr.stream.index()].push_back((instr, i)));
        }
    }
    let arena = random.bytes(program.arena_bytes);
    let running = queues.iter().map(|_| None).collect();
    let communicators = &rank.communicators;
    let mut run = RankRun { program, communicators, arena, queues, running, recorded: HashSet::new() };
    for buffer in program.buffers.values() {
        let role = match buffer.kind {
            BufferKind::Parameter => InputRole::Parameter,
            BufferKind::State => InputRole::State,
            _ => continue,
        };
        run.write(buffer.offsets[0], &leaf(role, &buffer.name, 0, &buffer.ty));
    }
    run
}

/// Makes one small move of a stream; `false` when there is none.
fn advance(plan: &Plan, ranks: &mut [RankRun<'_>], rank: usize, stream: usize, random: &mut Random64) -> bool {
    let run = &mut ranks[rank];
    if run.begin(stream) {
        return true;
    }
    let Some(running) = &run.running[stream] else { return false };
    let (instr, i) = (running.instr, running.i);
    match &instr.action {
        Action::Call { segment, frames, args, micro_batch, site } => {
            let pending = run.running[stream].as_mut().and_then(|running| running.pending.take());
            if let Some(pending) = pending {
                pending.iter().for_each(|(start, bytes)| run.write(*start, bytes));
                return true;
            }
            let segment = &plan.segments[*segment];
            let kernel = run.running[stream].as_ref().map_or(0, |running| running.kernel);
            let Some(call) = segment.body.get(kernel) else {
                run.end(stream);
                return true;
            };
            let frame = &run.program.frames[frame_of(frames, micro_batch.value(i)).expect("a call has frames")];
            let place = |operand: &Operand| match *operand {
                Operand::Formal(index) => run.place(args[index as usize], i),
                Operand::Local(index) => (frame.offsets[index as usize], segment.locals[index as usize].bytes()),
            };
            let code = &plan.kernels[call.kernel];
            let operands: Vec<Bytes> = call.inputs.iter().map(|operand| run.read(place(operand))).collect();
            let draw = (micro_batch.value(i).unsigned_abs(), *site);
            let results = apply(&code.op, &code.inputs, &code.outputs, &operands, draw);
            let writes = call.outputs.iter().map(|operand| place(operand).0).zip(results).collect();
            let running = run.running[stream].as_mut().expect("it is running");
            running.kernel += 1;
            running.pending = Some(writes);
            true
        }
        Action::Load { input, buffer, micro_batch } => {
            let input = &plan.inputs[*input];
            let batch = micro_batch.value(i).unsigned_abs();
            let (start, _) = run.place(*buffer, i);
            run.write(start, &leaf(input.role, &input.name, batch, &input.ty));
            run.end(stream);
            true
        }
        _ => {
            let open: Vec<usize> = (0..running.done.len()).filter(|&part| !running.done[part]).collect();
            let part = open[random.below(open.len())];
            transfer(plan, ranks, rank, &actions(instr)[part])
        }
    }
}

fn port_of(action: &Action) -> Option<(usize, BufferRef)> {
    match action {
        Action::Send { port, buffer } | Action::Recv { port, buffer } => Some((port.index(), *buffer)),
        Action::AllReduce { port, buffer } | Action::Broadcast { port, root: _, buffer } => {
            Some((port.index(), *buffer))
        }
        _ => None,
    }
}

/// Makes a transfer happen when every member has begun its side.
fn transfer(plan: &Plan, ranks: &mut [RankRun<'_>], rank: usize, action: &Action) -> bool {
    let (port, _) = port_of(action).expect("only transfers come here");
    let communicator = ranks[rank].communicators[port];
    let mut sides = Vec::new();
    for member in &plan.communicators[communicator] {
        let run = &ranks[member.index()];
        let side = run.running.iter().enumerate().find_map(|(stream, running)| {
            let running = running.as_ref()?;
            let part = actions(running.instr).iter().enumerate().position(|(part, action)| {
                let port = port_of(action);
                !running.done[part] && port.is_some_and(|(port, _)| run.communicators[port] == communicator)
            })?;
            Some((member.index(), stream, part, running.i))
        });
        match side {
            Some(side) => sides.push(side),
            None => return false,
        }
    }
    let buffers: Vec<BufferRef> = sides
        .iter()
        .map(|&(member, stream, part, _)| {
            let running = ranks[member].running[stream].as_ref().expect("it was just found");
            port_of(&actions(running.instr)[part]).expect("it is a transfer").1
        })
        .collect();
    let read = |side: usize| ranks[sides[side].0].read(ranks[sides[side].0].place(buffers[side], sides[side].3));
    let (value, to): (Bytes, Vec<usize>) = match action {
        Action::Send { .. } | Action::Recv { .. } => (read(0), vec![1]),
        Action::Broadcast { root, .. } => {
            let root = *root as usize;
            (read(root), (0..sides.len()).filter(|&side| side != root).collect())
        }
        _ => {
            let ty = &ranks[sides[0].0].program.buffers[buffers[0].buffer].ty;
            let types = [ty.clone(), ty.clone()];
            let add = |a: Bytes, b: Bytes| {
                apply(&Elementwise::Add.into(), &types, std::slice::from_ref(ty), &[a, b], (0, 0)).remove(0)
            };
            ((1..sides.len()).map(read).fold(read(0), add), (0..sides.len()).collect())
        }
    };
    for side in to {
        let (member, _, _, i) = sides[side];
        let (start, _) = ranks[member].place(buffers[side], i);
        ranks[member].write(start, &value);
    }
    for (member, stream, part, _) in sides {
        let running = ranks[member].running[stream].as_mut().expect("it was just found");
        running.done[part] = true;
        if running.done.iter().all(|&done| done) {
            ranks[member].end(stream);
        }
    }
    true
}
