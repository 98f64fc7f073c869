//! Mutants of plans that the planner makes: each is rejected, or computes the same as the plan, whatever the
//! order. Two judges run what is accepted: an interpreter on pseudo-random functions, and the host device on numbers.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails, and says what it tried")]

#[path = "../../../ir/tests/plan_verify/interpreter.rs"]
mod interpreter;
#[path = "../../../ir/tests/plan_verify/mutants.rs"]
mod mutants;

mod averages;

use interpreter::{Outcome, Random64, expected, run};
use mutants::mutants;
use std::collections::BTreeMap;
use std::path::Path;
use trainc_backend::{Batches, Interleaving, Job, JobOptions, RunError, Tensor};
use trainc_ir::op::{BatchNorm, Contraction, Elementwise, Indexing, Random, Real};
use trainc_ir::plan::{BufferKind, Header, Plan, PlanInput, verify};
use trainc_ir::{Cluster, DType, GraphBuilder, InputRole, OutputRole, TrainingGraph, Type};
use trainc_passes::plan::partition::{RecomputePolicy, Stages};
use trainc_passes::plan::{PlanOptions, ScheduleChoice, plan};
use trainc_passes::schedule::ScheduleKind;
use trainc_passes::{Lowering, PassEvent, TrainingOptions, lower_to_training};

/// How many mutants of each plan are judged; a prime step through all of them finds them everywhere in the plan.
const SAMPLED: usize = 1000;

/// A residual language model with a head tied to the table: lookup, four times `x + norm(dropout(relu(x w1)) w2)`, cross
/// entropy; the norm is over the batch, with running averages. Small, so that thousands of mutants can be run.
fn training() -> TrainingGraph {
    let mut b = GraphBuilder::new("residual");
    let ids = b.input("ids", InputRole::Data, Type::new(DType::I64, [2, 4]));
    let table = b.input("table", InputRole::Parameter, Type::new(DType::F32, [10, 8]));
    let mut x = b.one(Indexing::Gather { axis: 0 }, &[table, ids]).unwrap();
    let product = |transpose_b| Contraction::MatMul { transpose_a: false, transpose_b };
    for layer in 0..4 {
        let w1 = b.input(format!("w1.{layer}"), InputRole::Parameter, Type::new(DType::F32, [8, 16]));
        let w2 = b.input(format!("w2.{layer}"), InputRole::Parameter, Type::new(DType::F32, [16, 8]));
        let h = b.one(product(false), &[x, w1]).unwrap();
        let h = b.one(Elementwise::Relu, &[h]).unwrap();
        let h = b.one(Random::Dropout { p: Real::new(0.25), site: layer }, &[h]).unwrap();
        let h = b.one(product(false), &[h, w2]).unwrap();
        let channel = || Type::new(DType::F32, [4]);
        let scale = b.input(format!("scale.{layer}"), InputRole::Parameter, channel());
        let shift = b.input(format!("shift.{layer}"), InputRole::Parameter, channel());
        let normal = b.add(BatchNorm::BatchNorm { eps: Real::new(1e-3) }, &[h, scale, shift]).unwrap();
        for (name, &statistic) in ["mean", "var"].iter().zip(&normal[1..]) {
            let name = format!("{name}.{layer}");
            let average = b.input(name.clone(), InputRole::Buffer, channel());
            let next = BatchNorm::RunningAverage { momentum: Real::new(0.75) };
            let next = b.one(next, &[average, statistic]).unwrap();
            b.output(name, OutputRole::Updated, next);
        }
        x = b.one(Elementwise::Add, &[x, normal[0]]).unwrap();
    }
    let logits = b.one(product(true), &[x, table]).unwrap();
    b.output("logits", OutputRole::Prediction, logits);
    let options = TrainingOptions::default();
    let lowered = lower_to_training(b.finish(), &options, None, &mut |_: PassEvent<'_>| {}, &mut Vec::new());
    match lowered.expect("the model is good") {
        Lowering::Done(training) => *training,
        Lowering::Stopped { .. } => unreachable!("nothing was asked to stop"),
    }
}

fn planned(training: &TrainingGraph, options: &PlanOptions) -> Plan {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/clusters/mixed.toml")).unwrap();
    let cluster = Cluster::from_toml("mixed.toml", &text).unwrap();
    plan(training, &cluster, options, &Header::default()).expect("a small model fits").plan
}

/// Whether the interpreter finds in every order what the training graph asks for.
fn interpreted(plan: &Plan, expected: &Outcome, orders: u64) -> Result<(), String> {
    for seed in 0..orders {
        let outcome = run(plan, seed).ok_or_else(|| format!("order {seed} does not end"))?;
        for ((rank, name), bytes) in &outcome {
            if expected.get(name).is_some_and(|expected| expected != bytes) {
                return Err(format!("order {seed}: `{name}` of rank {rank} is wrong"));
            }
        }
        if let Some(name) = expected.keys().find(|name| !outcome.keys().any(|(_, held)| held == *name)) {
            return Err(format!("order {seed}: nobody holds `{name}`"));
        }
    }
    Ok(())
}

/// Tokens that depend on the step, the micro-batch and the input's name alone.
struct Tokens;

impl Batches for Tokens {
    fn batch(&mut self, step: u32, micro_batch: u64, input: &PlanInput) -> Result<Tensor, RunError> {
        let first = input.name.bytes().next().map_or(0, u64::from);
        let mut random = Random64(first + 1000 * u64::from(step) + micro_batch);
        let elements = (0..input.ty.elements()).map(|_| (random.next() % 10) as i64);
        let bytes: Vec<u8> = elements.flat_map(|token| trainc_ir::op::encode_i64(input.ty.dtype, token)).collect();
        Ok(Tensor::from_bytes(input.ty.clone(), &bytes).expect("one token for each place"))
    }
}

/// The losses of two steps, and by name everything that lasts after them.
type Lasting = (Vec<f64>, BTreeMap<String, Vec<u8>>);

/// Runs two steps on the host device.
fn executed(plan: &Plan, interleaving: Interleaving) -> Result<Lasting, String> {
    let mut load = |parameter: &trainc_ir::plan::PlanParameter| {
        let seed = parameter.name.bytes().fold(7u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let mut random = Random64(seed);
        let element = |_| match parameter.ty.dtype.is_float() {
            true => trainc_ir::op::encode_f64(parameter.ty.dtype, (random.next() % 1000) as f64 * 1e-3 - 0.5),
            false => trainc_ir::op::encode_i64(parameter.ty.dtype, (random.next() % 2) as i64),
        };
        assert_ne!(parameter.ty.dtype, DType::F64);
        Ok(Some((0..parameter.ty.elements()).flat_map(element).collect()))
    };
    let options = JobOptions { seed: 5, checked: true };
    let mut job = Job::new(plan, options, &mut load).map_err(|error| error.to_string())?;
    let mut losses = Vec::new();
    for _ in 0..2 {
        let report = job.step(&mut Tokens, 0.01, interleaving).map_err(|error| error.to_string())?;
        losses.push(report.loss_sum);
    }
    let mut held = BTreeMap::new();
    for rank in 0..plan.ranks.len() {
        for kind in [BufferKind::Parameter, BufferKind::State] {
            let values = job.held(rank, kind).into_iter();
            held.extend(values.map(|(name, value)| (format!("{name} of rank {rank}"), value.bytes().to_vec())));
        }
    }
    Ok((losses, held))
}

/// Judges a sample of the mutants of a plan.
fn judge(options: &PlanOptions) {
    let training = training();
    let micro_batches = options.micro_batches;
    let plan = planned(&training, options);
    if let Err(errors) = verify(&plan, &training) {
        panic!("{errors:#?}");
    }
    let wanted = expected(&training, micro_batches);
    assert_eq!(interpreted(&plan, &wanted, 3), Ok(()));
    let truth = executed(&plan, Interleaving::Threads).unwrap();

    let document = serde_json::to_value(&plan).unwrap();
    let all = mutants(&document);
    let (mut refused, mut harmless, mut wrong) = (0, 0, Vec::new());
    for index in 0..SAMPLED {
        let mutant = &all[index * 7919 % all.len()];
        let changed = serde_json::from_value::<Plan>(mutant.apply(&document)).ok();
        let Some(changed) = changed.filter(|changed| verify(changed, &training).is_ok()) else {
            refused += 1;
            continue;
        };
        let mut found = interpreted(&changed, &wanted, 2);
        if found.is_ok() {
            let order = Interleaving::Drawn { seed: index as u64 };
            found = executed(&changed, order).and_then(|got| match got == truth {
                true => Ok(()),
                false => Err("the host device computes something else".to_owned()),
            });
        }
        match found {
            Ok(()) => harmless += 1,
            Err(message) => wrong.push(format!("{}: {message}", mutant.describe())),
        }
    }
    println!("{} mutants, of {SAMPLED} {refused} refused, {harmless} harmless", all.len());
    assert!(wrong.is_empty(), "accepted, but wrong:\n{}", wrong.join("\n"));
    assert!(refused * 2 > SAMPLED, "only {refused} of {SAMPLED} mutants were refused");
}

#[test]
fn mutants_of_two_stages() {
    judge(&PlanOptions::new(3, Stages::Forced(2), RecomputePolicy::None));
}

#[test]
fn mutants_of_four_stages_with_recompute() {
    judge(&PlanOptions::new(4, Stages::Forced(4), RecomputePolicy::Full));
}

/// Two stages on each of two ranks, in rounds.
#[test]
fn mutants_of_looped_stages() {
    let schedule = ScheduleChoice::Kind(ScheduleKind::Interleaved);
    judge(&PlanOptions { schedule, loops: Some(2), ..PlanOptions::new(4, Stages::Forced(2), RecomputePolicy::None) });
}

/// Both halves of a backward, with what they read recomputed, on ranks that hold the first and last stage.
#[test]
fn mutants_of_divided_backwards() {
    let schedule = ScheduleChoice::Kind(ScheduleKind::ZbV);
    judge(&PlanOptions { schedule, ..PlanOptions::new(4, Stages::Forced(2), RecomputePolicy::Full) });
}
