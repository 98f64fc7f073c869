//! Tests of assembled plans on small training graphs; the plan verifier is the judge.

mod schedules;

use super::build::{PlacedStage, build};
use super::crossing::StageUnits;
use super::facts::Facts;
use super::measure::profiles;
use super::partition::{RecomputePolicy, Stages};
use super::planner::{PlanOptions, plan as plan_for};
use crate::pass::PassEvent;
use crate::pipeline::{Lowering, TrainingOptions, lower_to_training};
use crate::schedule::{Generator, ScheduleKind, Shape};
use crate::transform::LossSpec;
use trainc_ir::id::Id;
use trainc_ir::op::{
    BatchNorm, Contraction, Convolution, Elementwise, Indexing, Literal, Movement, Real, ReduceKind, Reduction,
};
use trainc_ir::plan::{Header, Plan};
use trainc_ir::{Cluster, DType, GraphBuilder, InputRole, NodeGroupId, OutputRole, TrainingGraph, Type};

/// A residual language model: lookup, `layers` times `x + relu(x w1) w2`, a head tied to the table, cross entropy.
pub(crate) fn language_model(layers: usize, width: u64) -> TrainingGraph {
    let mut b = GraphBuilder::new("residual");
    let ids = b.input("ids", InputRole::Data, Type::new(DType::I64, [2, width / 2]));
    let table = b.input("table", InputRole::Parameter, Type::new(DType::F32, [width + 2, width]));
    let mut x = b.one(Indexing::Gather { axis: 0 }, &[table, ids]).unwrap();
    let product = |transpose_b| Contraction::MatMul { transpose_a: false, transpose_b };
    for layer in 0..layers {
        let w1 = b.input(format!("w1.{layer}"), InputRole::Parameter, Type::new(DType::F32, [width, 2 * width]));
        let w2 = b.input(format!("w2.{layer}"), InputRole::Parameter, Type::new(DType::F32, [2 * width, width]));
        let h = b.one(product(false), &[x, w1]).unwrap();
        let h = b.one(Elementwise::Relu, &[h]).unwrap();
        let h = b.one(product(false), &[h, w2]).unwrap();
        x = b.one(Elementwise::Add, &[x, h]).unwrap();
    }
    let logits = b.one(product(true), &[x, table]).unwrap();
    b.output("logits", OutputRole::Prediction, logits);
    train(b, &TrainingOptions::default())
}

/// A residual network: a convolution, `layers` times `relu(x + norm(conv(x)))` with batch statistics and running averages, the
/// mean of each channel, cross entropy.
pub(crate) fn residual_network(layers: usize) -> TrainingGraph {
    let mut b = GraphBuilder::new("residual");
    let image = b.input("image", InputRole::Data, Type::new(DType::F32, [2, 3, 6, 6]));
    let parameter = |b: &mut GraphBuilder, name: String, shape: &[u64]| {
        b.input(name, InputRole::Parameter, Type::new(DType::F32, shape))
    };
    let conv =
        Convolution::Conv { strides: vec![1, 1], low: vec![1, 1], high: vec![1, 1], dilations: vec![1, 1], groups: 1 };
    let stem = parameter(&mut b, "stem".to_owned(), &[4, 3, 3, 3]);
    let mut x = b.one(conv.clone(), &[image, stem]).unwrap();
    for layer in 0..layers {
        let w = parameter(&mut b, format!("w.{layer}"), &[4, 4, 3, 3]);
        let scale = parameter(&mut b, format!("scale.{layer}"), &[4]);
        let shift = parameter(&mut b, format!("shift.{layer}"), &[4]);
        let h = b.one(conv.clone(), &[x, w]).unwrap();
        let norm = b.add(BatchNorm::BatchNorm { eps: Real::new(1e-5) }, &[h, scale, shift]).unwrap();
        for (name, &statistic) in ["mean", "var"].iter().zip(&norm[1..]) {
            let name = format!("{name}.{layer}");
            let average = b.input(name.clone(), InputRole::Buffer, Type::new(DType::F32, [4]));
            let op = BatchNorm::RunningAverage { momentum: Real::new(0.9) };
            let next = b.one(op, &[average, statistic]).unwrap();
            b.output(name, OutputRole::Updated, next);
        }
        let sum = b.one(Elementwise::Add, &[x, norm[0]]).unwrap();
        x = b.one(Elementwise::Relu, &[sum]).unwrap();
    }
    let mean = Reduction::Reduce { kind: ReduceKind::Mean, axes: vec![2, 3], keep: false };
    let logits = b.one(mean, &[x]).unwrap();
    b.output("logits", OutputRole::Prediction, logits);
    let loss = LossSpec::Sum("logits".to_owned());
    train(b, &TrainingOptions { loss, ..TrainingOptions::default() })
}

/// Data normalized by the batch before the first parameter: all but the running average depends on data alone, and may be
/// computed wherever it is needed.
#[test]
fn averages_of_data_are_updated_once() {
    let mut b = GraphBuilder::new("normal");
    let x = b.input("x", InputRole::Data, Type::new(DType::F32, [4, 3]));
    let one = b.constant(Literal::splat_f64(Type::new(DType::F32, [3]), 1.0));
    let zero = b.constant(Literal::splat_f64(Type::new(DType::F32, [3]), 0.0));
    let norm = b.add(BatchNorm::BatchNorm { eps: Real::new(1e-5) }, &[x, one, zero]).unwrap();
    let average = b.input("mean", InputRole::Buffer, Type::new(DType::F32, [3]));
    let next = b.one(BatchNorm::RunningAverage { momentum: Real::new(0.9) }, &[average, norm[1]]).unwrap();
    b.output("mean", OutputRole::Updated, next);
    let mut y = norm[0];
    for layer in 0..4 {
        let w = b.input(format!("w.{layer}"), InputRole::Parameter, Type::new(DType::F32, [3, 3]));
        y = b.one(Contraction::MatMul { transpose_a: false, transpose_b: false }, &[y, w]).unwrap();
        y = b.one(Elementwise::Add, &[y, norm[0]]).unwrap();
    }
    b.output("y", OutputRole::Prediction, y);
    let loss = LossSpec::Sum("y".to_owned());
    let training = train(b, &TrainingOptions { loss, ..TrainingOptions::default() });
    for cuts in [&[][..], &[2]] {
        for recompute in [false, true] {
            let plan = plan(&training, cuts, 3, recompute);
            if let Err(errors) = trainc_ir::plan::verify(&plan, &training) {
                panic!("{cuts:?}, {recompute}: {errors:#?}");
            }
        }
    }
}

fn train(b: GraphBuilder, options: &TrainingOptions) -> TrainingGraph {
    let lowered = lower_to_training(b.finish(), options, None, &mut |_: PassEvent<'_>| {}, &mut Vec::new()).unwrap();
    match lowered {
        Lowering::Done(training) => *training,
        Lowering::Stopped { .. } => unreachable!("nothing was asked to stop"),
    }
}

pub(crate) fn cluster() -> Cluster {
    let text = "name = \"test\"\n[[group]]\nname = \"a\"\ngpu = \"A100-SXM-80GB\"\nnodes = 4\ngpus_per_node = 8\n[network]\nbandwidth_gbps = 100\n";
    Cluster::from_toml("test.toml", text).unwrap()
}

fn plan(training: &TrainingGraph, cuts: &[usize], micro_batches: u64, recompute: bool) -> Plan {
    let facts = Facts::new(training);
    let profiles = profiles(&facts);
    let mut placed = Vec::new();
    let mut start = 0;
    for &end in cuts.iter().chain(&[facts.forward.len()]) {
        let stage = StageUnits { units: start..end, recompute: vec![recompute; end - start] };
        placed.push(PlacedStage { stage, group: NodeGroupId::from_index(0) });
        start = end;
    }
    let shape = Shape { ranks: placed.len(), loops: 1, micro_batches };
    let schedule = ScheduleKind::OneFOneB.generate(&shape).unwrap();
    build(&facts, &profiles, &cluster(), &placed, &schedule, Header::default())
}

#[test]
fn plans_of_every_cut_verify() {
    let training = language_model(4, 8);
    for cuts in [&[][..], &[1], &[3], &[1, 3], &[2, 3, 4], &[1, 2, 3, 4, 5]] {
        for micro_batches in [1, 2, 3, 8] {
            for recompute in [false, true] {
                let plan = plan(&training, cuts, micro_batches, recompute);
                if let Err(errors) = trainc_ir::plan::verify(&plan, &training) {
                    panic!("cuts {cuts:?}, {micro_batches} micro-batches, recompute {recompute}: {errors:#?}");
                }
            }
        }
    }
}

#[test]
fn arenas_are_within_two_percent_of_the_liveness_bound() {
    let training = language_model(6, 64);
    for cuts in [&[][..], &[4], &[2, 4, 6]] {
        for recompute in [false, true] {
            for program in plan(&training, cuts, 8, recompute).programs.values() {
                let (arena, bound) = (program.arena_bytes, program.arena_lower_bound);
                assert!(arena * 100 <= bound * 102, "{cuts:?} {recompute} {}: {arena} against {bound}", program.name);
            }
        }
    }
}

#[test]
fn a_toy_model_gets_one_gpu_unless_more_are_asked_for() {
    let training = language_model(4, 8);
    let of = |stages| {
        let options = PlanOptions::new(4, stages, RecomputePolicy::Fit);
        plan_for(&training, &cluster(), &options, &Header::default()).unwrap().plan.ranks.len()
    };
    assert_eq!(of(Stages::Best { max: u32::MAX }), 1);
    assert_eq!(of(Stages::Forced(3)), 3);
}

/// A gradient that depends on no activation, of a parameter that only a reshape in front of a later unit reads.
#[test]
fn constant_gradients_are_summed_where_the_parameter_is_held() {
    let mut b = GraphBuilder::new("constants");
    let ty = |shape: &[u64]| Type::new(DType::F32, shape);
    let x = b.input("x", InputRole::Data, ty(&[4, 4]));
    let w = b.input("w", InputRole::Parameter, ty(&[4, 4]));
    let shift = b.input("shift", InputRole::Parameter, ty(&[4]));
    let row = b.one(Movement::Reshape { shape: vec![1, 4] }, &[shift]).unwrap();
    let h = b.one(Contraction::MatMul { transpose_a: false, transpose_b: false }, &[x, w]).unwrap();
    let h = b.one(Elementwise::Relu, &[h]).unwrap();
    let y = b.one(Elementwise::Add, &[h, row]).unwrap();
    let y = b.one(Movement::Reshape { shape: vec![16] }, &[y]).unwrap();
    b.output("y", OutputRole::Prediction, y);
    let options = TrainingOptions { loss: "sum:y".parse().unwrap(), ..TrainingOptions::default() };
    let training = train(b, &options);
    let n_units = Facts::new(&training).forward.len();
    assert!(n_units > 2, "there is something to cut");
    for cut in 1..n_units {
        for micro_batches in [1, 3] {
            let plan = plan(&training, &[cut], micro_batches, true);
            if let Err(errors) = trainc_ir::plan::verify(&plan, &training) {
                panic!("cut {cut}, {micro_batches} micro-batches: {errors:#?}");
            }
        }
    }
}
