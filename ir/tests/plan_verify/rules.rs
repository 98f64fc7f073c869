//! For every rule a plan that breaks it, and nothing else that is found before.

use crate::{model, two_stages};
use trainc_ir::DType;
use trainc_ir::id::Id;
use trainc_ir::op::{Op, Opaque};
use trainc_ir::plan::{
    Action, BufferId, EventRef, FORMAT, FrameId, Index, Instr, Item, KernelId, Plan, PlanRule, Program, ProgramId,
    RankId, SegmentId, verify,
};

/// Breaks the hand-written plan and expects the rule to be named, with this text in its message.
fn check(rule: PlanRule, text: &str, breaks: impl FnOnce(&mut Plan)) {
    let mut plan = two_stages::plan();
    breaks(&mut plan);
    let Err(errors) = verify(&plan, &model::training()) else { panic!("the broken plan was accepted") };
    let shown: Vec<_> = errors.iter().map(ToString::to_string).collect();
    let named = errors.iter().zip(&shown).any(|(error, shown)| error.rule == rule && shown.contains(text));
    assert!(named, "expected [{rule}] and `{text}`, found:\n{}", shown.join("\n"));
}

fn program(plan: &mut Plan, index: usize) -> &mut Program {
    &mut plan.programs[ProgramId::from_index(index)]
}

/// The instruction at a position of a program's body, or of the loop there.
fn at(plan: &mut Plan, index: usize, item: usize, position: usize) -> &mut Instr {
    match &mut program(plan, index).body[item] {
        Item::Once(instr) => instr,
        Item::Loop { trips: _, body } => &mut body[position],
    }
}

fn args(action: &mut Action) -> &mut Vec<trainc_ir::plan::BufferRef> {
    match action {
        Action::Call { args, .. } => args,
        other => panic!("expected a call, found {other:?}"),
    }
}

#[test]
fn every_rule_has_a_test_here() {
    let text = include_str!("rules.rs");
    for (rule, _) in PlanRule::ALL {
        assert!(text.contains(&format!("check(PlanRule::{rule:?}")), "rule {rule} ({rule:?}) has no test");
    }
}

#[test]
fn every_rule_is_listed_in_the_documentation() {
    let text = include_str!("../../src/plan/verify.rs");
    for (rule, _) in PlanRule::ALL {
        assert!(text.contains(&format!("//! - {rule}: ")), "rule {rule} is not listed");
    }
}

#[test]
fn p1_format() {
    check(PlanRule::Format, "expected format 1, found 2", |plan| plan.format = FORMAT + 1);
}

#[test]
fn p2_types() {
    check(PlanRule::Types, "does not fit in 63 bits", |plan| {
        program(plan, 0).buffers[BufferId::from_index(0)].ty.shape = vec![1 << 40, 1 << 40];
    });
}

#[test]
fn p3_references() {
    check(PlanRule::References, "expected one of 12 buffers, found number 99", |plan| {
        args(&mut at(plan, 0, 1, 0).action)[0].buffer = BufferId::from_index(99);
    });
}

#[test]
fn p4_kernels() {
    check(PlanRule::Kernels, "expected results", |plan| {
        let kernel = plan.kernels.iter().find(|(_, kernel)| kernel.op == model::sgd()).unwrap().0;
        plan.kernels[kernel].outputs[0].shape = vec![7];
    });
    check(PlanRule::Kernels, "cannot be executed", |plan| {
        let kernel = &mut plan.kernels[KernelId::from_index(0)];
        kernel.op = Op::from(Opaque::Opaque { name: "mystery".to_owned(), types: kernel.outputs.clone() });
    });
}

#[test]
fn p5_segments() {
    check(PlanRule::Segments, "declared as read only", |plan| {
        let body = &mut plan.segments[SegmentId::from_index(1)].body;
        body[2].outputs[0] = body[2].inputs[1];
    });
}

#[test]
fn p6_calls() {
    check(PlanRule::Calls, "expected a frame of s0", |plan| {
        let Action::Call { frames, .. } = &mut at(plan, 0, 1, 0).action else { panic!() };
        frames[0] = FrameId::from_index(1);
    });
    check(PlanRule::Calls, "at least one frame", |plan| {
        let Action::Call { frames, .. } = &mut at(plan, 0, 1, 0).action else { panic!() };
        frames.clear();
    });
    check(PlanRule::Calls, "actual 0: expected the bytes of", |plan| {
        args(&mut at(plan, 0, 1, 0).action)[0].buffer = BufferId::from_index(2);
    });
}

#[test]
fn p7_offsets() {
    check(PlanRule::Offsets, "a multiple of 4", |plan| {
        program(plan, 0).buffers[BufferId::from_index(0)].offsets[0] = 2;
    });
    check(PlanRule::Offsets, "ends after the arena", |plan| {
        program(plan, 0).buffers[BufferId::from_index(0)].offsets[0] = 1 << 62;
    });
}

#[test]
fn p8_persistent() {
    check(PlanRule::Persistent, "inside of b0", |plan| {
        program(plan, 0).buffers[BufferId::from_index(1)].offsets[0] = 8;
    });
}

#[test]
fn p9_ranks() {
    check(PlanRule::Ranks, "is taken by another rank", |plan| plan.ranks[RankId::from_index(1)].index = 0);
}

#[test]
fn p10_interface() {
    check(PlanRule::Interface, "is trained, found not trained", |plan| plan.parameters[0].trained = false);
    check(PlanRule::Interface, "expected the holders", |plan| {
        plan.parameters[1].holders.pop();
    });
}

#[test]
fn p11_indices() {
    check(PlanRule::Indices, "expected a micro-batch below 3, found 3", |plan| {
        let Action::Call { micro_batch, .. } = &mut at(plan, 0, 5, 1).action else { panic!() };
        *micro_batch = Index::counter(2);
    });
}

#[test]
fn p12_size() {
    check(PlanRule::Size, "instructions and kernels", |plan| {
        let Item::Loop { trips, body: _ } = &mut program(plan, 0).body[5] else { panic!() };
        *trips = u64::MAX;
    });
}

#[test]
fn p13_groups() {
    check(PlanRule::Groups, "only sends and receives", |plan| {
        let call = at(plan, 0, 1, 0).action.clone();
        let Action::Group(actions) = &mut at(plan, 0, 5, 2).action else { panic!() };
        actions.push(call);
    });
}

#[test]
fn p14_bytes() {
    check(PlanRule::Bytes, "its device has 10", |plan| plan.prediction.ranks[1].capacity_bytes = 10);
}

#[test]
fn p15_events() {
    check(PlanRule::Events, "which is recorded before", |plan| {
        let record = at(plan, 0, 5, 3).record.as_mut().unwrap();
        record.index = Index::at(0);
    });
}

/// A call on another stream between two transfers of one communicator would let either come first.
#[test]
fn p16_order() {
    check(PlanRule::Order, "nothing orders this after", |plan| {
        let instr = at(plan, 0, 4, 0);
        instr.stream = trainc_ir::plan::StreamId::from_index(0);
        let group = at(plan, 0, 5, 2);
        group.waits.retain(|wait| wait.event.index() != 1);
    });
}

#[test]
fn p17_transfers() {
    check(PlanRule::Transfers, "meets", |plan| {
        let Action::AllReduce { port, buffer } = at(plan, 1, 7, 0).action.clone() else { panic!() };
        at(plan, 1, 7, 0).action = Action::Broadcast { port, root: 0, buffer };
    });
}

/// Without groups, both stages send before they receive.
#[test]
fn p18_deadlock() {
    check(PlanRule::Deadlock, "it waits for rank r1 on c0", |plan| {
        for (index, item, position) in [(0, 5, 2), (1, 3, 2)] {
            let Item::Loop { trips: _, body } = &mut program(plan, index).body[item] else { panic!() };
            let Action::Group(actions) = body[position].action.clone() else { panic!() };
            let send = Instr { action: actions[0].clone(), record: None, ..body[position].clone() };
            let recv = Instr { action: actions[1].clone(), ..body[position].clone() };
            body.splice(position..=position, [send, recv]);
        }
    });
}

/// The load of micro-batch 2 overwrites the data that the backward of micro-batch 0 still reads.
#[test]
fn p19_races() {
    check(PlanRule::Races, "without waiting for rank r0, program p0, item 5", |plan| {
        at(plan, 0, 5, 0).waits.clear();
    });
}

#[test]
fn p20_in_place() {
    check(PlanRule::InPlace, "shares bytes with operand 0", |plan| {
        let body = &mut plan.segments[SegmentId::from_index(2)].body;
        // dd and dh are of one type; a dropout may not work in place.
        body[3].outputs[0] = body[3].inputs[0];
        body[4].inputs[1] = body[3].inputs[0];
    });
}

#[test]
fn p21_reads() {
    check(PlanRule::Reads, "found undefined bytes", |plan| {
        program(plan, 0).body.remove(1);
    });
    check(PlanRule::Reads, "is read before it is written", |plan| {
        plan.segments[SegmentId::from_index(2)].body.swap(0, 1);
    });
}

#[test]
fn p22_computation() {
    check(
        PlanRule::Computation,
        "expected a value of the training graph, found `dropout` (random, micro-batch 0",
        |plan| {
            let Action::Call { site, .. } = &mut at(plan, 0, 3, 0).action else { panic!() };
            *site = 1;
        },
    );
    check(PlanRule::Computation, "`accumulate`", |plan| {
        // The second micro-batch's backward is fed with the first one's saved activations.
        args(&mut at(plan, 0, 5, 3).action)[2].slot = Index::counter(1);
    });
}

#[test]
fn p23_updates() {
    check(PlanRule::Updates, "`w1` must end as a result of `sgd_momentum`, found `w1` before the step", |plan| {
        program(plan, 0).body.pop();
    });
}

#[test]
fn p24_losses() {
    check(PlanRule::Losses, "`loss_sum` must end as", |plan| {
        let segment = &mut plan.segments[SegmentId::from_index(5)];
        segment.body.remove(3);
    });
}

#[test]
fn errors_are_bounded() {
    let mut plan = two_stages::plan();
    let p = program(&mut plan, 0);
    let extra = p.body[1].clone();
    let Item::Once(instr) = extra else { panic!() };
    let missing = EventRef { event: trainc_ir::plan::EventId::from_index(4), index: Index::at(9) };
    let waiting = Instr { waits: vec![missing], ..instr };
    p.body.splice(0..0, (0..1000).map(|_| Item::Once(waiting.clone())));
    let Err(errors) = verify(&plan, &model::training()) else { panic!("the broken plan was accepted") };
    assert_eq!(errors.len(), 64);
}

#[test]
fn a_value_and_its_reshape_are_one() {
    // The hand-written plan has no reshape kernels, the training graph has two.
    let training = model::training();
    let reshapes = training.step.nodes.values().filter(|node| node.op.is_alias()).count();
    assert_eq!(reshapes, 2);
    let plan = two_stages::plan();
    assert!(plan.kernels.values().all(|kernel| !kernel.op.is_alias()));
    assert!(plan.kernels.values().all(|kernel| kernel.outputs.iter().all(|ty| ty.dtype != DType::F64)));
    assert!(verify(&plan, &training).is_ok());
}
