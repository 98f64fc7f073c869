//! A plan of two stages and a few micro-batches, written by hand: 1F1B, groups, an all-reduce, updates in place.

use crate::assembler::{COMPUTE, Code, ProgramBuilder, TRANSFER, first, instr, port, slot};
use crate::model::{broadcast, constant, dropout, dropout_grad, f32, matmul, sgd, sum};
use trainc_ir::id::{Id, Table};
use trainc_ir::op::{Literal, Op, Optimizer};
use trainc_ir::plan::{
    Access, Action, BufferKind, BufferRef, CommunicatorId, Digests, FORMAT, FrameId, GroupId, Header, Holder, Index,
    InputId, Locality, PlacementGroup, Plan, PlanInput, PlanParameter, Prediction, Program, ProgramId, Rank, RankId,
    RankPrediction, SegmentId,
};
use trainc_ir::{DType, InputRole, Phase, Type};

const LR: usize = 0;
const X: usize = 1;

fn count() -> Type {
    Type::scalar(DType::I64)
}

fn accumulate() -> Op {
    Optimizer::Accumulate.into()
}

fn zeros(code: &mut Code, name: &str, types: &[Type]) -> SegmentId {
    let mut segment = code.segment(name, Phase::Forward);
    for ty in types {
        let to = segment.formal(ty.clone(), Access::Write);
        segment.kernel(constant(Literal::splat_i64(ty.clone(), 0)), &[], &[to]);
    }
    segment.finish()
}

/// `(w, m, g) .. lr, count`: updates in place.
fn update(code: &mut Code, name: &str, types: &[Type]) -> SegmentId {
    let mut segment = code.segment(name, Phase::Update);
    let formals: Vec<_> = types
        .iter()
        .map(|ty| {
            let [w, m] = [Access::Update; 2].map(|access| segment.formal(ty.clone(), access));
            (w, m, segment.formal(ty.clone(), Access::Read))
        })
        .collect();
    let lr = segment.formal(f32(&[]), Access::Read);
    let n = segment.formal(count(), Access::Read);
    for (w, m, g) in formals {
        segment.kernel(sgd(), &[w, g, m, lr, n], &[w, m]);
    }
    segment.finish()
}

fn forward0(code: &mut Code) -> SegmentId {
    let mut s = code.segment("stage0.forward", Phase::Forward);
    let x = s.formal(f32(&[2, 3]), Access::Read);
    let w1 = s.formal(f32(&[3, 4]), Access::Read);
    let t = s.formal(f32(&[4, 4]), Access::Read);
    let d = s.formal(f32(&[2, 4]), Access::Write);
    let a = s.formal(f32(&[2, 4]), Access::Write);
    let h = s.local(f32(&[2, 4]));
    s.kernel(matmul(false, false), &[x, w1], &[h]);
    s.kernel(dropout(), &[h], &[d]);
    s.kernel(matmul(false, false), &[d, t], &[a]);
    s.finish()
}

fn backward0(code: &mut Code) -> SegmentId {
    let mut s = code.segment("stage0.backward", Phase::InputGrad);
    let x = s.formal(f32(&[2, 3]), Access::Read);
    let t = s.formal(f32(&[4, 4]), Access::Read);
    let d = s.formal(f32(&[2, 4]), Access::Read);
    let da = s.formal(f32(&[2, 4]), Access::Read);
    let gw1 = s.formal(f32(&[3, 4]), Access::Update);
    let gt = s.formal(f32(&[4, 4]), Access::Update);
    let dt = s.local(f32(&[4, 4]));
    let dd = s.local(f32(&[2, 4]));
    let dh = s.local(f32(&[2, 4]));
    let dw1 = s.local(f32(&[3, 4]));
    s.kernel(matmul(true, false), &[d, da], &[dt]);
    s.kernel(accumulate(), &[gt, dt], &[gt]);
    s.kernel(matmul(false, true), &[da, t], &[dd]);
    s.kernel(dropout_grad(), &[dd], &[dh]);
    s.kernel(matmul(true, false), &[x, dh], &[dw1]);
    s.kernel(accumulate(), &[gw1, dw1], &[gw1]);
    s.finish()
}

fn forward1(code: &mut Code) -> SegmentId {
    let mut s = code.segment("stage1.forward", Phase::Forward);
    let a = s.formal(f32(&[2, 4]), Access::Read);
    let t = s.formal(f32(&[4, 4]), Access::Read);
    let w2 = s.formal(f32(&[4, 5]), Access::Read);
    let y = s.formal(f32(&[2, 4]), Access::Write);
    let loss_sum = s.formal(f32(&[]), Access::Update);
    let loss_count = s.formal(count(), Access::Update);
    let z = s.local(f32(&[2, 5]));
    let loss = s.local(f32(&[]));
    let n = s.local(count());
    s.kernel(matmul(false, false), &[a, t], &[y]);
    s.kernel(matmul(false, false), &[y, w2], &[z]);
    s.kernel_as(sum(), &[z], vec![f32(&[10])], &[loss]);
    s.kernel(accumulate(), &[loss_sum, loss], &[loss_sum]);
    s.kernel(constant(Literal::splat_i64(count(), 2)), &[], &[n]);
    s.kernel(accumulate(), &[loss_count, n], &[loss_count]);
    s.finish()
}

fn backward1(code: &mut Code) -> SegmentId {
    let mut s = code.segment("stage1.backward", Phase::InputGrad);
    let a = s.formal(f32(&[2, 4]), Access::Read);
    let y = s.formal(f32(&[2, 4]), Access::Read);
    let t = s.formal(f32(&[4, 4]), Access::Read);
    let w2 = s.formal(f32(&[4, 5]), Access::Read);
    let da = s.formal(f32(&[2, 4]), Access::Write);
    let gt = s.formal(f32(&[4, 4]), Access::Update);
    let gw2 = s.formal(f32(&[4, 5]), Access::Update);
    let seed = s.local(f32(&[]));
    let dz = s.local(f32(&[2, 5]));
    let dw2 = s.local(f32(&[4, 5]));
    let dy = s.local(f32(&[2, 4]));
    let dt = s.local(f32(&[4, 4]));
    s.kernel(constant(Literal::splat_f64(f32(&[]), 1.0)), &[], &[seed]);
    s.kernel(broadcast(&[10]), &[seed], &[dz]);
    s.kernel(matmul(true, false), &[y, dz], &[dw2]);
    s.kernel(accumulate(), &[gw2, dw2], &[gw2]);
    s.kernel(matmul(false, true), &[dz, w2], &[dy]);
    s.kernel(matmul(true, false), &[a, dy], &[dt]);
    s.kernel(accumulate(), &[gt, dt], &[gt]);
    s.kernel(matmul(false, true), &[dy, t], &[da]);
    s.finish()
}

/// The segments name the site of the model's dropout, so the call adds nothing to it.
fn call(segment: SegmentId, frame: FrameId, args: Vec<BufferRef>, micro_batch: Index) -> Action {
    Action::Call { segment, frames: vec![frame], args, micro_batch, site: 0 }
}

fn load(input: usize, buffer: BufferRef, micro_batch: Index) -> Action {
    Action::Load { input: InputId::from_index(input), buffer, micro_batch }
}

/// Ports: activations out, gradients in, shared parameters.
fn stage0(code: &mut Code, micro_batches: i64) -> Program {
    let zero = zeros(code, "stage0.zero", &[f32(&[3, 4]), f32(&[4, 4])]);
    let (forward, backward) = (forward0(code), backward0(code));
    let step = update(code, "stage0.update", &[f32(&[3, 4]), f32(&[4, 4])]);
    let mut p = ProgramBuilder::new(
        0,
        &["activations", "gradients", "shared"],
        &["loaded", "forward", "exchanged", "backward", "reduced"],
    );
    let w1 = p.buffer("w1", f32(&[3, 4]), BufferKind::Parameter, 1);
    let w1m = p.buffer("w1.m", f32(&[3, 4]), BufferKind::State, 1);
    let t = p.buffer("t", f32(&[4, 4]), BufferKind::Parameter, 1);
    let tm = p.buffer("t.m", f32(&[4, 4]), BufferKind::State, 1);
    let gw1 = p.buffer("grad.w1.0", f32(&[3, 4]), BufferKind::Gradient, 1);
    let gt = p.buffer("grad.t.0", f32(&[4, 4]), BufferKind::Gradient, 1);
    let lr = p.buffer("lr", f32(&[]), BufferKind::Scalar, 1);
    let n = p.buffer("loss_count", count(), BufferKind::Scalar, 1);
    let x = p.buffer("x", f32(&[2, 3]), BufferKind::Data, 2);
    let d = p.buffer("d", f32(&[2, 4]), BufferKind::Saved, 2);
    let a = p.buffer("a", f32(&[2, 4]), BufferKind::Boundary, 2);
    let da = p.buffer("da", f32(&[2, 4]), BufferKind::Boundary, 1);
    let [zero_f, forward_f, backward_f, update_f] = [zero, forward, backward, step].map(|s| p.frame(code, s));
    let (i, at) = (Index::counter(0), Index::at);
    let run_forward = |j| {
        let args = vec![slot(x, j), first(w1), first(t), slot(d, j), slot(a, j)];
        call(forward, forward_f, args, j)
    };
    let run_backward = |j| {
        let args = vec![slot(x, j), first(t), slot(d, j), first(da), first(gw1), first(gt)];
        call(backward, backward_f, args, j)
    };
    let send = |j| Action::Send { port: port(0), buffer: slot(a, j) };
    let recv = || Action::Recv { port: port(1), buffer: first(da) };
    p.once([
        instr(TRANSFER, &[], load(LR, first(lr), at(0)), None),
        instr(COMPUTE, &[], call(zero, zero_f, vec![first(gw1), first(gt)], at(0)), None),
        instr(TRANSFER, &[], load(X, slot(x, at(0)), at(0)), Some((0, at(0)))),
        instr(COMPUTE, &[(0, at(0))], run_forward(at(0)), Some((1, at(0)))),
        instr(TRANSFER, &[(1, at(0))], send(at(0)), Some((2, at(0)))),
    ]);
    let (next, last) = (Index::counter(1), Index::counter(-1));
    p.repeat(
        micro_batches as u64 - 1,
        vec![
            instr(TRANSFER, &[(3, last)], load(X, slot(x, next), next), Some((0, next))),
            instr(COMPUTE, &[(0, next), (2, last)], run_forward(next), Some((1, next))),
            instr(TRANSFER, &[(1, next), (3, last)], Action::Group(vec![send(next), recv()]), Some((2, next))),
            instr(COMPUTE, &[(2, next)], run_backward(i), Some((3, i))),
        ],
    );
    p.once([
        instr(TRANSFER, &[(3, at(micro_batches - 2))], recv(), Some((2, at(micro_batches)))),
        instr(
            COMPUTE,
            &[(2, at(micro_batches))],
            run_backward(at(micro_batches - 1)),
            Some((3, at(micro_batches - 1))),
        ),
        instr(TRANSFER, &[(3, at(micro_batches - 1))], Action::AllReduce { port: port(2), buffer: first(gt) }, None),
        instr(TRANSFER, &[], Action::Recv { port: port(1), buffer: first(n) }, Some((4, at(0)))),
        instr(
            COMPUTE,
            &[(4, at(0))],
            {
                let args = [w1, w1m, gw1, t, tm, gt, lr, n].map(first).to_vec();
                call(step, update_f, args, at(0))
            },
            None,
        ),
    ]);
    p.program
}

/// Ports: activations in, gradients out, shared parameters.
fn stage1(code: &mut Code, micro_batches: i64) -> Program {
    let zero = zeros(code, "stage1.zero", &[f32(&[4, 4]), f32(&[4, 5]), f32(&[]), count()]);
    let (forward, backward) = (forward1(code), backward1(code));
    let step = update(code, "stage1.update", &[f32(&[4, 4]), f32(&[4, 5])]);
    let mut p = ProgramBuilder::new(1, &["activations", "gradients", "shared"], &["exchanged", "backward", "reduced"]);
    let t = p.buffer("t", f32(&[4, 4]), BufferKind::Parameter, 1);
    let tm = p.buffer("t.m", f32(&[4, 4]), BufferKind::State, 1);
    let w2 = p.buffer("w2", f32(&[4, 5]), BufferKind::Parameter, 1);
    let w2m = p.buffer("w2.m", f32(&[4, 5]), BufferKind::State, 1);
    let gt = p.buffer("grad.t.1", f32(&[4, 4]), BufferKind::Gradient, 1);
    let gw2 = p.buffer("grad.w2.0", f32(&[4, 5]), BufferKind::Gradient, 1);
    let lr = p.buffer("lr", f32(&[]), BufferKind::Scalar, 1);
    let loss = p.buffer("loss_sum", f32(&[]), BufferKind::Scalar, 1);
    let n = p.buffer("loss_count", count(), BufferKind::Scalar, 1);
    let a = p.buffer("a", f32(&[2, 4]), BufferKind::Boundary, 1);
    let y = p.buffer("y", f32(&[2, 4]), BufferKind::Saved, 1);
    let da = p.buffer("da", f32(&[2, 4]), BufferKind::Boundary, 1);
    // Locals live in their call only, so the frames of all calls may share bytes.
    let (start, mut end) = (p.program.arena_bytes, 0);
    let [zero_f, forward_f, backward_f, update_f] = [zero, forward, backward, step].map(|s| {
        p.program.arena_bytes = start;
        let frame = p.frame(code, s);
        end = p.program.arena_bytes.max(end);
        frame
    });
    p.program.arena_bytes = end;
    p.output("loss_sum", loss);
    p.output("loss_count", n);
    let (i, at) = (Index::counter(0), Index::at);
    let run_forward = |j| call(forward, forward_f, [a, t, w2, y, loss, n].map(first).to_vec(), j);
    let run_backward = |j| call(backward, backward_f, [a, y, t, w2, da, gt, gw2].map(first).to_vec(), j);
    let recv = || Action::Recv { port: port(0), buffer: first(a) };
    let send = || Action::Send { port: port(1), buffer: first(da) };
    let next = Index::counter(1);
    p.once([
        instr(TRANSFER, &[], load(LR, first(lr), at(0)), None),
        instr(TRANSFER, &[], recv(), Some((0, at(0)))),
        instr(COMPUTE, &[], call(zero, zero_f, [gt, gw2, loss, n].map(first).to_vec(), at(0)), None),
    ]);
    p.repeat(
        micro_batches as u64 - 1,
        vec![
            instr(COMPUTE, &[(0, i)], run_forward(i), None),
            instr(COMPUTE, &[], run_backward(i), Some((1, i))),
            instr(TRANSFER, &[(1, i)], Action::Group(vec![send(), recv()]), Some((0, next))),
        ],
    );
    p.once([
        instr(COMPUTE, &[(0, at(micro_batches - 1))], run_forward(at(micro_batches - 1)), None),
        instr(COMPUTE, &[], run_backward(at(micro_batches - 1)), Some((1, at(micro_batches - 1)))),
        instr(TRANSFER, &[(1, at(micro_batches - 1))], send(), None),
        instr(TRANSFER, &[], Action::AllReduce { port: port(2), buffer: first(gt) }, None),
        instr(TRANSFER, &[], Action::Send { port: port(1), buffer: first(n) }, Some((2, at(0)))),
        instr(
            COMPUTE,
            &[(2, at(0))],
            {
                let args = [t, tm, gt, w2, w2m, gw2, lr, n].map(first).to_vec();
                call(step, update_f, args, at(0))
            },
            None,
        ),
    ]);
    p.program
}

/// The whole plan.
pub(crate) fn plan() -> Plan {
    plan_of(3)
}

/// The plan with another number of micro-batches, at least 2.
pub(crate) fn plan_of(micro_batches: u64) -> Plan {
    let mut code = Code::default();
    let programs: Table<ProgramId, Program> =
        [stage0(&mut code, micro_batches as i64), stage1(&mut code, micro_batches as i64)].into_iter().collect();
    let input = |name: &str, role, ty| PlanInput { name: name.to_owned(), role, ty };
    let rank = RankId::from_index;
    let communicators: Table<CommunicatorId, _> =
        [vec![rank(0), rank(1)], vec![rank(1), rank(0)], vec![rank(0), rank(1)]].into_iter().collect();
    let ranks = programs.iter().map(|(program, entry)| Rank {
        group: GroupId::from_index(0),
        index: entry.stage,
        program,
        stage: entry.stage,
        data: 0,
        tensor: 0,
        communicators: communicators.ids().collect(),
    });
    let predicted = programs.values().map(|program| RankPrediction {
        arena_bytes: program.arena_bytes,
        device_bytes: program.arena_bytes + 1000,
        capacity_bytes: program.arena_bytes + 2000,
        breakdown: Default::default(),
        busy_ps: 0,
        units: Vec::new(),
        recomputed_blocks: 0,
    });
    let parameter = |name: &str, ty| {
        let holders = programs.iter().filter_map(|(program, entry)| {
            let found = entry.buffers.iter().find(|(_, buffer)| buffer.name == name);
            found.map(|(buffer, _)| Holder { program, buffer })
        });
        PlanParameter { name: name.to_owned(), ty, trained: true, holders: holders.collect() }
    };
    Plan {
        format: FORMAT,
        header: Header {
            compiler: "test".to_owned(),
            model: "tiny".to_owned(),
            cluster: "test".to_owned(),
            digests: Digests { model: "00".to_owned(), training_graph: "01".to_owned(), cluster: "02".to_owned() },
            bindings: [("batch".to_owned(), 2)].into_iter().collect(),
            options: [("recompute".to_owned(), "none".to_owned())].into_iter().collect(),
        },
        micro_batches,
        inputs: [input("lr", InputRole::Scalar, f32(&[])), input("x", InputRole::Data, f32(&[2, 3]))]
            .into_iter()
            .collect(),
        groups: [PlacementGroup {
            name: "gpus".to_owned(),
            gpu: "T4".to_owned(),
            count: 2,
            locality: Locality { nodes: 1, gpus_per_node: 2 },
        }]
        .into_iter()
        .collect(),
        ranks: ranks.collect(),
        parameters: vec![parameter("w1", f32(&[3, 4])), parameter("t", f32(&[4, 4])), parameter("w2", f32(&[4, 5]))],
        prediction: Prediction { ranks: predicted.collect(), ..Prediction::default() },
        communicators,
        kernels: code.kernels,
        segments: code.segments,
        programs,
    }
}
