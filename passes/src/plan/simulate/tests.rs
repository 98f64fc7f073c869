//! Tests of the replay on small plans written by hand, against formulas and times added up by hand.

use super::*;
use crate::plan::cost::{HardwareSpec, all_reduce, transfer};
use crate::plan::partition::{RecomputePolicy, Stages};
use crate::plan::profile::Work;
use crate::plan::tests::language_model;
use crate::plan::{self, PlanOptions};
use trainc_ir::id::Id;
use trainc_ir::op::{Contraction, Elementwise};
use trainc_ir::plan::{
    Action, Buffer, BufferId, BufferKind, BufferRef, EventRef, FORMAT, FrameId, GroupId, Header, Index, InputId, Instr,
    Item, Kernel, KernelCall, KernelId, Locality, Operand, PlacementGroup, PlanInput, PortId, Prediction, Program,
    ProgramId, Rank, Segment, Stream, StreamKind,
};
use trainc_ir::{Contention, DType, InputRole, Op, Phase, Slowdown, Type};

/// What the streams of a rank do, one line each: see `instr`.
type Lines = Vec<String>;

const FORWARD: usize = 0;
const BACKWARD: usize = 1;
const RECOMPUTE: usize = 2;

fn cluster() -> Cluster {
    let text = "name = \"test\"\n[[group]]\nname = \"a\"\ngpu = \"A100-SXM-80GB\"\nnodes = 8\ngpus_per_node = 1\n\
        [network]\nbandwidth_gbps = 100\nlatency_us = 2\n";
    let mut cluster = Cluster::from_toml("test.toml", text).unwrap();
    cluster.contention = Contention::NONE;
    cluster
}

fn link() -> trainc_ir::Link {
    let cluster = cluster();
    let group = cluster.group("a").unwrap();
    cluster.link(group, group, false).unwrap()
}

/// A plan of one program per rank. Segments: forward is one product, backward two of it, recompute one.
fn hand_written(ranks: &[Lines], communicators: &[&[usize]]) -> Plan {
    let square = Type::new(DType::F32, [1024, 1024]);
    let op = Op::from(Contraction::MatMul { transpose_a: false, transpose_b: false });
    let kernel = Kernel { op, inputs: vec![square.clone(), square.clone()], outputs: vec![square.clone()] };
    let kernels: Table<KernelId, Kernel> = [kernel].into_iter().collect();
    let call = |_| KernelCall {
        kernel: KernelId::from_index(0),
        inputs: vec![Operand::Local(0), Operand::Local(1)],
        outputs: vec![Operand::Local(2)],
    };
    let segment = |(phase, n)| Segment {
        name: String::new(),
        phase,
        formals: Vec::new(),
        locals: vec![square.clone(); 3],
        body: (0..n).map(call).collect(),
    };
    let phases = [(Phase::Forward, 1), (Phase::InputGrad, 2), (Phase::Recompute, 1)];
    let locality = Locality { nodes: ranks.len() as u32, gpus_per_node: 1 };
    let group = PlacementGroup { name: "a".into(), gpu: String::new(), count: ranks.len() as u32, locality };
    let rank = |r: usize| Rank {
        group: GroupId::from_index(0),
        index: r as u32,
        program: ProgramId::from_index(r),
        stage: r as u32,
        data: 0,
        tensor: 0,
        communicators: (0..communicators.len()).map(CommunicatorId::from_index).collect(),
    };
    let members = |of: &&[usize]| of.iter().map(|&r| RankId::from_index(r)).collect();
    let input = PlanInput { name: "x".into(), role: InputRole::Data, ty: Type::new(DType::F32, [1 << 20]) };
    Plan {
        format: FORMAT,
        header: Header::default(),
        micro_batches: 1,
        inputs: [input].into_iter().collect(),
        groups: [group].into_iter().collect(),
        ranks: (0..ranks.len()).map(rank).collect(),
        communicators: communicators.iter().map(members).collect(),
        kernels,
        segments: phases.map(segment).into_iter().collect(),
        programs: ranks.iter().map(program).collect(),
        parameters: Vec::new(),
        prediction: Prediction::default(),
    }
}

/// Buffers: `b0` is 4 bytes, `b1` 4 MiB. Eight streams, and as many events and ports as a test may name.
fn program(lines: &Lines) -> Program {
    let buffer = |ty| Buffer { name: String::new(), ty, kind: BufferKind::Boundary, offsets: vec![0] };
    let stream = |i: usize| Stream { name: format!("{i}"), kind: StreamKind::Compute };
    let buffers = [buffer(Type::scalar(DType::F32)), buffer(Type::new(DType::F32, [1 << 20]))];
    Program {
        name: "program".into(),
        stage: 0,
        arena_bytes: 0,
        arena_lower_bound: 0,
        streams: (0..8).map(stream).collect(),
        events: (0..64).map(|i| i.to_string()).collect(),
        ports: Table::new(),
        buffers: buffers.into_iter().collect(),
        frames: Table::new(),
        body: lines.iter().map(|line| Item::Once(instr(line))).collect(),
        outputs: Vec::new(),
    }
}

/// `<stream> <what> [wait <event>]* [record <event>]`, where what is `call <segment>`, `load`, `send <port>`,
/// `recv <port>`, `reduce <port>`, or `group <send port> <recv port>`.
fn instr(line: &str) -> Instr {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |i: usize| words[i].parse::<usize>().unwrap();
    let port = |i: usize| PortId::from_index(number(i));
    let buffer = |b: usize| BufferRef { buffer: BufferId::from_index(b), slot: Index::at(0) };
    let action = match words[1] {
        "call" => Action::Call {
            segment: SegmentId::from_index(number(2)),
            frames: vec![FrameId::from_index(0)],
            args: Vec::new(),
            micro_batch: Index::at(0),
            site: 0,
        },
        "load" => Action::Load { input: InputId::from_index(0), buffer: buffer(1), micro_batch: Index::at(0) },
        "send" => Action::Send { port: port(2), buffer: buffer(0) },
        "send-large" => Action::Send { port: port(2), buffer: buffer(1) },
        "recv" => Action::Recv { port: port(2), buffer: buffer(0) },
        "recv-large" => Action::Recv { port: port(2), buffer: buffer(1) },
        "reduce" => Action::AllReduce { port: port(2), buffer: buffer(1) },
        "group" => Action::Group(vec![
            Action::Send { port: port(2), buffer: buffer(0) },
            Action::Recv { port: port(3), buffer: buffer(0) },
        ]),
        other => panic!("{other}"),
    };
    let event = |i: usize| -> EventRef { words[i].parse().unwrap() };
    let waits = (0..words.len()).filter(|&i| words[i] == "wait").map(|i| event(i + 1)).collect();
    let record = words.iter().position(|word| *word == "record").map(|i| event(i + 1));
    Instr { stream: StreamId::from_index(number(0)), waits, action, record }
}

fn lines(lines: &[&str]) -> Lines {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// Duration of the forward: one product of 1024 x 1024 in f32, whatever the cost model says of it.
fn forward_ps() -> u64 {
    let square = Type::new(DType::F32, [1024, 1024]);
    let op = Op::from(Contraction::MatMul { transpose_a: false, transpose_b: false });
    let work = Work::of(&op, &[&square, &square], &[&square]);
    HardwareSpec::of(&cluster().groups.values().next().unwrap().gpu).time(&work).unwrap()
}

/// Stage `s` of `p`: its forwards and backwards in the given order, one stream for each neighbour and direction.
/// Communicator `2 s` goes from stage `s` to the next, `2 s + 1` back.
fn stage(s: usize, p: usize, order: &[(usize, usize)]) -> Lines {
    let mut body = Vec::new();
    for &(what, j) in order {
        let forward = what == FORWARD;
        let (first, last) = if forward { (s == 0, s + 1 == p) } else { (s + 1 == p, s == 0) };
        let (from, to) =
            if forward { (2 * s.saturating_sub(1), 2 * s) } else { (2 * s + 1, 2 * s.saturating_sub(1) + 1) };
        let (came, done) = (4 * what, 4 * what + 1);
        let mut call = format!("0 call {what}");
        if !first {
            body.push(format!("{} recv {from} record e{came}[{j}]", 1 + what));
            call += &format!(" wait e{came}[{j}]");
        }
        body.push(format!("{call} record e{done}[{j}]"));
        if !last {
            body.push(format!("{} send {to} wait e{done}[{j}]", 3 + what));
        }
    }
    body
}

fn pipeline(p: usize, order: impl Fn(usize) -> Vec<(usize, usize)>) -> Timeline {
    let ranks: Vec<Lines> = (0..p).map(|s| stage(s, p, &order(s))).collect();
    let pairs: Vec<[usize; 2]> = (0..p - 1).flat_map(|s| [[s, s + 1], [s + 1, s]]).collect();
    let pairs: Vec<&[usize]> = pairs.iter().map(|pair| &pair[..]).collect();
    simulate(&hand_written(&ranks, &pairs), &cluster()).unwrap()
}

/// All forwards, then all backwards: `(m + p - 1) (f + b)` and twice the way through the pipeline.
#[test]
fn gpipe_takes_what_its_formula_says() {
    for (p, m) in [(1, 3), (2, 4), (4, 8), (8, 3)] {
        let order = |_| (0..m).map(|j| (FORWARD, j)).chain((0..m).map(|j| (BACKWARD, j))).collect();
        let timeline = pipeline(p, order);
        let (f, b, c) = (forward_ps(), 2 * forward_ps(), transfer(link(), 4));
        let ways = 2 * (p as u64 - 1) * c;
        assert_eq!(timeline.step_ps, (m + p - 1) as u64 * (f + b) + ways, "p {p} m {m}");
        for rank in timeline.ranks.values() {
            assert_eq!(rank.busy_ps, m as u64 * (f + b));
            assert_eq!(rank.idle_ps, (p - 1) as u64 * (f + b) + ways);
        }
    }
}

/// The bubble of 1F1B is `(p - 1) / m` of the ideal time where transfers are fast (`papers`: GPipe and PipeDream-Flush).
#[test]
fn one_forward_one_backward_has_the_known_bubble() {
    for (p, m) in [(2, 4), (4, 8), (4, 16), (8, 8)] {
        let order = |s: usize| {
            let warm_up = m.min(p - 1 - s);
            let mut order: Vec<(usize, usize)> = (0..warm_up).map(|j| (FORWARD, j)).collect();
            for j in 0..m {
                order.extend((j + warm_up < m).then_some((FORWARD, j + warm_up)));
                order.push((BACKWARD, j));
            }
            order
        };
        let timeline = pipeline(p, order);
        let work = 3 * forward_ps();
        let ideal = (m + p - 1) as u64 * work;
        let latency = transfer(link(), 4) * 2 * (m + p) as u64;
        assert!((ideal..=ideal + latency).contains(&timeline.step_ps), "p {p} m {m}");
        assert!(latency < work, "else the bubble would not be seen");
    }
}

#[test]
fn streams_share_the_gpu() {
    let f = forward_ps();
    let timeline = simulate(&hand_written(&[lines(&["0 call 0", "1 call 0"])], &[]), &cluster()).unwrap();
    assert_eq!((timeline.step_ps, timeline.ranks.values().next().unwrap().busy_ps), (2 * f, 2 * f));
    // Alone for a forward's time once the shorter is done.
    let timeline = simulate(&hand_written(&[lines(&["0 call 0", "1 call 1"])], &[]), &cluster()).unwrap();
    let ends: Vec<u64> = timeline.ranks.values().next().unwrap().spans.iter().map(|span| span.end_ps).collect();
    assert_eq!(ends, [2 * f, 3 * f]);
}

/// A copy of 4 MiB from the host takes longer than the recomputation, so that is hidden; twice as much is not.
#[test]
fn recomputation_before_the_gradient_comes_is_hidden() {
    let spec = HardwareSpec::of(&cluster().groups.values().next().unwrap().gpu);
    let (f, load) = (forward_ps(), transfer(spec.host, 4 << 20));
    let n = load / f + 1;
    let run = |n: u64| {
        let mut body = vec!["1 load record e0[0]".to_owned()];
        body.extend((0..n).map(|_| format!("0 call {RECOMPUTE}")));
        body.push("0 call 1 wait e0[0]".to_owned());
        simulate(&hand_written(&[body], &[]), &cluster()).unwrap()
    };
    let (hidden, exposed) = (run(n - 1), run(n + 1));
    let of = |t: &Timeline| (t.recompute.total_ps, t.recompute.hidden_ps, t.recompute.exposed_ps);
    assert_eq!((hidden.step_ps, of(&hidden)), (load + 2 * f, ((n - 1) * f, (n - 1) * f, 0)));
    assert_eq!((exposed.step_ps, of(&exposed)), ((n + 3) * f, ((n + 1) * f, load, (n + 1) * f - load)));
    assert_eq!(exposed.ranks.values().next().unwrap().exposed_transfer_ps, 0);
}

#[test]
fn recomputation_on_a_side_stream_waits_for_its_reader() {
    // The load comes after the recomputation is done: hidden. Without it: exposed.
    let with = lines(&["1 load record e0[0]", "2 call 2 record e1[0]", "0 call 1 wait e0[0] wait e1[0]"]);
    let without = lines(&["2 call 2 record e1[0]", "0 call 1 wait e1[0]"]);
    let of = |body: Lines| simulate(&hand_written(&[body], &[]), &cluster()).unwrap().recompute;
    let f = forward_ps();
    assert_eq!(
        of(with),
        RecomputeTime { total_ps: f, hidden_ps: f.min(of_load()), exposed_ps: f.saturating_sub(of_load()) }
    );
    assert_eq!(of(without), RecomputeTime { total_ps: f, hidden_ps: 0, exposed_ps: f });
}

fn of_load() -> u64 {
    transfer(HardwareSpec::of(&cluster().groups.values().next().unwrap().gpu).host, 4 << 20)
}

#[test]
fn collectives_wait_for_the_last_rank() {
    let ranks = [lines(&["0 reduce 0"]), lines(&["0 call 0", "0 reduce 0"])];
    let timeline = simulate(&hand_written(&ranks, &[&[0, 1]]), &cluster()).unwrap();
    let time = all_reduce(link(), 2, 4 << 20);
    assert_eq!(timeline.step_ps, forward_ps() + time);
    let exposed: Vec<u64> = timeline.ranks.values().map(|rank| rank.exposed_transfer_ps).collect();
    assert_eq!(exposed, [time, time]);
}

/// Both ranks send before they receive: without buffering only a group lets that happen.
#[test]
fn only_a_group_may_cross() {
    let crossing = |rank: usize, grouped: bool| match grouped {
        true => lines(&[&format!("0 group {} {}", rank, 1 - rank)]),
        false => lines(&[&format!("0 send {rank}"), &format!("0 recv {}", 1 - rank)]),
    };
    let run = |grouped| {
        simulate(&hand_written(&[crossing(0, grouped), crossing(1, grouped)], &[&[0, 1], &[1, 0]]), &cluster())
    };
    assert_eq!(run(true).unwrap().step_ps, transfer(link(), 4));
    let streams = |rank| (RankId::from_index(rank), StreamId::from_index(0));
    assert_eq!(run(false), Err(SimulateError::Deadlock(vec![streams(0), streams(1)])));
}

/// All times added up by hand.
#[test]
fn what_overlaps_gets_slower() {
    let (f, time) = (forward_ps(), transfer(link(), 4));
    let slowdown = Slowdown { compute_permille: 1500, transfer_permille: 1250 };
    let mut cluster = cluster();
    cluster.contention = Contention::NONE.with(TransferKind::PointToPoint, slowdown);
    let ranks = [lines(&["0 call 0", "1 send 0"]), lines(&["0 recv 0"])];
    let timeline = simulate(&hand_written(&ranks, &[&[0, 1]]), &cluster).unwrap();
    let slow = (time * 1250).div_ceil(1000);
    assert!(slow < f, "the transfer lies within the call");
    let ends: Vec<u64> = timeline.ranks.values().flat_map(|rank| rank.spans.iter().map(|span| span.end_ps)).collect();
    // In the time of the transfer the call does two thirds of that work.
    assert_eq!(ends, [f + slow - slow * 1000 / 1500, slow, slow]);
    let [computes, waits] = [0, 1].map(|r| timeline.ranks[RankId::from_index(r)].clone());
    assert_eq!((computes.busy_ps, computes.exposed_transfer_ps), (timeline.step_ps, 0));
    assert_eq!((waits.busy_ps, waits.exposed_transfer_ps), (0, slow));

    // A transfer that begins alone is slow while the call runs, and fast again after its end.
    let late = [lines(&["0 send-large 0", "1 load record e0[0]", "2 call 0 wait e0[0]"]), lines(&["0 recv-large 0"])];
    let stopped = Slowdown { compute_permille: 1000, transfer_permille: 100_000 };
    cluster.contention = Contention::NONE.with(TransferKind::PointToPoint, stopped);
    let timeline = simulate(&hand_written(&late, &[&[0, 1]]), &cluster).unwrap();
    let time = transfer(link(), 4 << 20);
    assert!(of_load() + f < time, "the call lies within the transfer");
    assert_eq!(timeline.step_ps, time + f - f / 100);
}

#[test]
fn the_critical_path_has_no_gaps() {
    let order = |s: usize| match s {
        0 => vec![(FORWARD, 0), (FORWARD, 1), (BACKWARD, 0), (BACKWARD, 1)],
        _ => vec![(FORWARD, 0), (BACKWARD, 0), (FORWARD, 1), (BACKWARD, 1)],
    };
    let ranks: Vec<Lines> = (0..2).map(|s| stage(s, 2, &order(s))).collect();
    let plan = hand_written(&ranks, &[&[0, 1], &[1, 0]]);
    let (timeline, path) = simulate_critical(&plan, &cluster()).unwrap();
    assert_eq!(path.first().map(|step| step.span.start_ps), Some(0));
    assert_eq!(path.last().map(|step| step.span.end_ps), Some(timeline.step_ps));
    assert!(path.windows(2).all(|pair| pair[0].span.end_ps == pair[1].span.start_ps));
    // The first stage's forward, a transfer, all of the second stage, a transfer, the last backward.
    let ranks: Vec<usize> = path.iter().map(|step| step.rank.index()).collect();
    assert_eq!(ranks, [0, 0, 1, 1, 1, 1, 1, 0]);
    let planned =
        plan::plan(&language_model(6, 512), &plan::tests::cluster(), &options(4), &Header::default()).unwrap();
    let (timeline, path) = simulate_critical(&planned.plan, &plan::tests::cluster()).unwrap();
    let sum: u64 = path.iter().map(|step| step.span.end_ps - step.span.start_ps).sum();
    assert_eq!(sum, timeline.step_ps);
}

fn options(stages: u32) -> PlanOptions {
    PlanOptions::new(8, Stages::Forced(stages), RecomputePolicy::Full)
}

#[test]
fn bad_plans_are_refused() {
    let fault = |ranks: &[Lines], pairs: &[&[usize]]| simulate(&hand_written(ranks, pairs), &cluster()).unwrap_err();
    let one = |body: &[&str]| fault(&[lines(body)], &[]);
    assert!(matches!(one(&["0 call 7"]), SimulateError::Malformed(_)));
    assert!(matches!(one(&["9 call 0"]), SimulateError::Malformed(_)));
    assert!(matches!(one(&["0 send 3"]), SimulateError::Malformed(_)));
    assert!(matches!(one(&["0 call 0 wait e0[0]"]), SimulateError::Deadlock(_)));
    let sizes = [lines(&["0 send-large 0"]), lines(&["0 recv 0"])];
    assert!(matches!(fault(&sizes, &[&[0, 1]]), SimulateError::Mismatch(_)));
    let sides = [lines(&["0 recv 0"]), lines(&["0 recv 0"])];
    assert!(matches!(fault(&sides, &[&[0, 1]]), SimulateError::Mismatch(_)));
    let mut bad = hand_written(&[lines(&["0 call 0"])], &[]);
    for (_, kernel) in bad.kernels.iter_mut() {
        kernel.op = Elementwise::Relu.into();
    }
    assert!(matches!(simulate(&bad, &cluster()), Err(SimulateError::Malformed(_))));
    let mut endless = hand_written(&[lines(&["0 call 0"])], &[]);
    for (_, program) in endless.programs.iter_mut() {
        program.body = vec![Item::Loop { trips: u64::MAX, body: vec![instr("0 call 0")] }];
    }
    assert_eq!(simulate(&endless, &cluster()), Err(SimulateError::TooLong));
}

#[test]
fn loops_run_their_trips() {
    let mut looped = hand_written(&[lines(&["0 call 0"])], &[]);
    for (_, program) in looped.programs.iter_mut() {
        let mut call = instr("0 call 0 record e0[i]");
        call.waits = vec!["e0[i-1]".parse().unwrap()];
        program.body = vec![Item::Loop { trips: 5, body: vec![call] }];
    }
    assert_eq!(simulate(&looped, &cluster()).unwrap().step_ps, 5 * forward_ps());
}

/// Plans of the planner: a rank computes as long as the partition says (which counts the update of the tied table twice
/// where both of its users are on one stage), and a step takes about as long.
#[test]
fn real_plans_run_as_predicted() {
    let training = language_model(6, 512);
    for (p, recompute) in [(1, RecomputePolicy::None), (2, RecomputePolicy::Full), (4, RecomputePolicy::None)] {
        let options = PlanOptions::new(8, Stages::Forced(p), recompute);
        let planned = plan::plan(&training, &plan::tests::cluster(), &options, &Header::default()).unwrap();
        let mut undisturbed = plan::tests::cluster();
        undisturbed.contention = Contention::NONE;
        let timeline = simulate(&planned.plan, &undisturbed).unwrap();
        for (rank, stage) in timeline.ranks.values().zip(&planned.partition.stages) {
            let expected = 8 * (stage.forward_ps + stage.backward_ps) + stage.update_ps;
            match p {
                1 => assert!((expected - stage.update_ps..expected).contains(&rank.busy_ps)),
                _ => assert_eq!(rank.busy_ps, expected),
            }
        }
        let (step, predicted) = (timeline.step_ps, planned.partition.step_ps);
        assert!(step <= predicted + predicted / 50 && step >= predicted - predicted / 8, "{p}: {step} {predicted}");
        let recomputed: u64 = planned.partition.stages.iter().map(|stage| 8 * stage.recompute_ps).sum();
        assert_eq!(timeline.recompute.total_ps, recomputed);
        assert_eq!(timeline.recompute.hidden_ps + timeline.recompute.exposed_ps, recomputed);
    }
}
