//! Running averages are updated once by the forward of each micro-batch: plans that do it twice, again in a recompute, or
//! not at all are refused.

use super::{planned, training};
use trainc_ir::op::BatchNorm;
use trainc_ir::plan::{
    Access, Action, BufferRef, Formal, Index, Item, KernelCall, Operand, Plan, PlanRule, SegmentId, verify,
};
use trainc_ir::{Op, Phase};
use trainc_passes::plan::PlanOptions;
use trainc_passes::plan::partition::{RecomputePolicy, Stages};

/// The rules that a changed plan breaks.
fn broken(change: impl Fn(&mut Plan)) -> Vec<PlanRule> {
    let training = training();
    let mut plan = planned(&training, &PlanOptions::new(3, Stages::Forced(4), RecomputePolicy::Full));
    assert!(verify(&plan, &training).is_ok());
    change(&mut plan);
    let mut rules: Vec<_> = verify(&plan, &training).expect_err("the plan is wrong").iter().map(|e| e.rule).collect();
    rules.dedup();
    rules
}

fn is_average(plan: &Plan, call: &KernelCall) -> bool {
    matches!(plan.kernels[call.kernel].op, Op::BatchNorm(BatchNorm::RunningAverage { momentum: _ }))
}

/// The first segment of a phase with a batch normalization.
fn normalizing(plan: &Plan, phase: Phase) -> SegmentId {
    let is_norm =
        |call: &KernelCall| matches!(plan.kernels[call.kernel].op, Op::BatchNorm(BatchNorm::BatchNorm { eps: _ }));
    let mut segments = plan.segments.iter();
    let found = segments.find(|(_, segment)| segment.phase == phase && segment.body.iter().any(is_norm));
    found.expect("there is such a segment").0
}

#[test]
fn forwards_alone_update() {
    let plan = planned(&training(), &PlanOptions::new(3, Stages::Forced(4), RecomputePolicy::Full));
    let updating = plan.segments.values().filter(|segment| segment.body.iter().any(|call| is_average(&plan, call)));
    let phases: Vec<_> = updating.map(|segment| segment.phase).collect();
    assert!(!phases.is_empty() && phases.iter().all(|&phase| phase == Phase::Forward), "{phases:?}");
    // The recompute runs the normalization again, for its result.
    normalizing(&plan, Phase::Recompute);
}

#[test]
fn twice_in_a_forward() {
    let rules = broken(|plan| {
        let segment = normalizing(plan, Phase::Forward);
        let call = plan.segments[segment].body.iter().find(|call| is_average(plan, call)).expect("it has two").clone();
        plan.segments[segment].body.push(call);
    });
    assert_eq!(rules[0], PlanRule::Computation);
}

#[test]
fn never() {
    let rules = broken(|plan| {
        let segment = normalizing(plan, Phase::Forward);
        let at = plan.segments[segment].body.iter().position(|call| is_average(plan, call)).expect("it has two");
        let Operand::Formal(formal) = plan.segments[segment].body.remove(at).outputs[0] else { panic!("not in place") };
        plan.segments[segment].formals[formal as usize].access = Access::Read;
    });
    assert_eq!(rules, [PlanRule::Updates]);
}

#[test]
fn again_in_a_recompute() {
    let rules = broken(|plan| {
        let forward = normalizing(plan, Phase::Forward);
        let (kernel, average) = {
            let call = plan.segments[forward].body.iter().find(|call| is_average(plan, call)).expect("it has two");
            let Operand::Formal(formal) = call.outputs[0] else { panic!("not in place") };
            (call.kernel, formal as usize)
        };
        let ty = plan.segments[forward].formals[average].ty.clone();
        let recompute = normalizing(plan, Phase::Recompute);
        let segment = &mut plan.segments[recompute];
        let formal = Operand::Formal(segment.formals.len() as u32);
        segment.formals.push(Formal { ty, access: Access::Update });
        let norm = segment.body.iter().find(|call| call.outputs.len() == 3).expect("it has a normalization");
        let inputs = vec![formal, norm.outputs[1]];
        segment.body.push(KernelCall { kernel, inputs, outputs: vec![formal] });
        for id in plan.programs.ids().collect::<Vec<_>>() {
            let program = &mut plan.programs[id];
            let mut means = program.buffers.iter().filter(|(_, buffer)| buffer.name.starts_with("mean."));
            let Some((buffer, _)) = means.next() else { continue };
            for item in &mut program.body {
                let instrs = match item {
                    Item::Once(instr) => std::slice::from_mut(instr),
                    Item::Loop { trips: _, body } => body.as_mut_slice(),
                };
                for instr in instrs {
                    if let Action::Call { segment, args, .. } = &mut instr.action
                        && *segment == recompute
                    {
                        args.push(BufferRef { buffer, slot: Index::at(0) });
                    }
                }
            }
        }
    });
    assert_eq!(rules[0], PlanRule::Computation);
}
