//! Plans of every number of stages run on the host: gradients equal to the bit between plans, and PyTorch's numbers.
//!
//! The truth is in `testdata/goldens/gpt2`, made by PyTorch on the same weights and tokens (`testdata/scripts`).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod families;
mod schedules;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trainc::{CompileOptions, Compiled, ModelOptions, Recompute, compile};
use trainc_backend::{Batches, Interleaving, Job, JobOptions, RunError, Tensor};
use trainc_frontend::{Bindings, OnnxModel};
use trainc_ir::plan::{BufferKind, Plan, PlanInput, PlanParameter};

/// Largest distance of a gradient from PyTorch's, relative to the larger of its norm and a thousandth of the norm of
/// all gradients.
const TOLERANCE: f64 = 1e-4;

const SAMPLES: u64 = 8;
const SEQ: u64 = 64;

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the workspace").join("testdata").join(path)
}

struct Golden {
    json: Value,
    bytes: Vec<u8>,
}

impl Golden {
    fn open(family: &str) -> Self {
        let folder = testdata("goldens").join(family);
        let text = std::fs::read_to_string(folder.join("golden.json")).unwrap();
        let bytes = std::fs::read(folder.join("golden.bin")).unwrap();
        Self { json: serde_json::from_str(&text).unwrap(), bytes }
    }

    fn slice(&self, entry: &Value) -> &[u8] {
        let start = entry["offset"].as_u64().unwrap() as usize;
        &self.bytes[start..start + entry["bytes"].as_u64().unwrap() as usize]
    }
}

/// The golden's inputs, cut into micro-batches of whole samples.
impl Batches for &Golden {
    fn batch(&mut self, _step: u32, micro_batch: u64, input: &PlanInput) -> Result<Tensor, RunError> {
        let all = self.slice(&self.json["inputs"][&input.name]);
        let bytes = input.ty.bytes() as usize;
        let start = bytes * micro_batch as usize;
        Ok(Tensor::from_bytes(input.ty.clone(), &all[start..start + bytes]).expect("bytes of the input's type"))
    }
}

/// A model compiled for the mixed cluster.
fn compiled(model: &str, bind: &[(&str, u64)], micro_batches: u64, stages: u64, recompute: Recompute) -> Compiled {
    let options = CompileOptions { stages: Some(stages), recompute, ..CompileOptions::default() };
    compiled_with(model, bind, micro_batches, options)
}

/// The same with other options of the plan.
fn compiled_with(model: &str, bind: &[(&str, u64)], micro_batches: u64, options: CompileOptions) -> Compiled {
    let model = ModelOptions {
        model: testdata("models").join(model),
        bindings: bind.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect(),
        micro_batches: Some(micro_batches),
        ..ModelOptions::default()
    };
    let options = CompileOptions { model, cluster: testdata("clusters/mixed.toml"), ..options };
    compile(&options).unwrap_or_else(|failure| panic!("{options:?}: {failure}"))
}

fn plan_of(stages: u64, micro_batches: u64, recompute: Recompute) -> Compiled {
    let bind = [("batch", SAMPLES / micro_batches), ("seq", SEQ)];
    compiled("gpt2.onnx", &bind, micro_batches, stages, recompute)
}

fn job<'p>(model: &str, plan: &'p Plan, checked: bool) -> Job<'p> {
    let model = OnnxModel::open(&testdata("models").join(model), Bindings::default()).unwrap();
    let mut load = |parameter: &PlanParameter| {
        let weight = model.weight(&parameter.name).map_err(|e| e.to_string())?;
        weight.read_bytes().map(Some).map_err(|e| e.to_string())
    };
    Job::new(plan, JobOptions { seed: 0, checked }, &mut load).expect("the plan can run")
}

/// The gradient of every trained parameter as a step left it. A rank either holds every sum of its contributions, and adds
/// them up, or one that has been reduced over all holders.
fn gradients(plan: &Plan, job: &Job<'_>) -> BTreeMap<String, Vec<f32>> {
    let floats =
        |sum: &Tensor| sum.bytes().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    let ranks: Vec<BTreeMap<String, Vec<f32>>> = (0..plan.ranks.len())
        .map(|rank| {
            job.held(rank, BufferKind::Gradient).iter().map(|(name, sum)| (name.clone(), floats(sum))).collect()
        })
        .collect();
    let mut gradients: BTreeMap<String, Vec<f32>> = BTreeMap::new();
    for parameter in plan.parameters.iter().filter(|parameter| parameter.trained) {
        let prefix = format!("grad.{}.", parameter.name);
        let is_sum = |name: &str| name.strip_prefix(&prefix).is_some_and(|k| k.parse::<u32>().is_ok());
        for sums in &ranks {
            let of = sums.iter().filter(|(name, _)| is_sum(name)).map(|(_, sum)| sum.clone());
            let add = |total: Vec<f32>, next: Vec<f32>| total.iter().zip(&next).map(|(a, b)| a + b).collect();
            let Some(total) = of.reduce(add) else { continue };
            let known = gradients.entry(parameter.name.clone()).or_insert_with(|| total.clone());
            assert!(*known == total, "holders of {} disagree", parameter.name);
        }
        assert!(gradients.contains_key(&parameter.name), "{} has a gradient", parameter.name);
    }
    gradients
}

/// Bits, so that equality is exact.
fn bits(gradients: &BTreeMap<String, Vec<f32>>) -> BTreeMap<&str, Vec<u32>> {
    gradients.iter().map(|(name, g)| (name.as_str(), g.iter().map(|x| x.to_bits()).collect())).collect()
}

/// Compares with the golden's gradients of a model for a batch.
fn check_gradients(golden: &Golden, gradients: &BTreeMap<String, Vec<f32>>, count: i64, (model, batch): (&str, &str)) {
    let global = golden.json["gradient_norm"][batch].as_f64().unwrap();
    let renamed = &golden.json["renamed_initializers"][model];
    let table = golden.json["gradients"][batch].as_object().unwrap();
    assert_eq!(table.len(), gradients.len(), "every parameter is in the golden");
    for (name, entry) in table {
        let found = &gradients[renamed.get(name).and_then(Value::as_str).unwrap_or(name)];
        let expected =
            golden.slice(entry).chunks_exact(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap())));
        let expected: Vec<f64> = expected.collect();
        let norm = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>().sqrt();
        let delta: Vec<f64> = found.iter().zip(&expected).map(|(&f, e)| f64::from(f) / count as f64 - e).collect();
        let limit = TOLERANCE * norm(&expected).max(1e-3 * global);
        assert!(norm(&delta) <= limit, "{name}: distance {} exceeds {limit}", norm(&delta));
    }
}

#[test]
fn gradients_are_equal_to_the_bit_and_pytorchs_within_tolerance() {
    let golden = Golden::open("gpt2");
    let loss = golden.json["losses"]["full_batch"].as_f64().unwrap();
    for micro_batches in [1, 4, 8] {
        let mut first: Option<BTreeMap<String, Vec<f32>>> = None;
        for stages in [1, 2, 4] {
            for recompute in [Recompute::None, Recompute::Full] {
                let what = format!("{stages} stages, {micro_batches} micro-batches, {recompute:?}");
                let compiled = plan_of(stages, micro_batches, recompute);
                let plan = compiled.plan.plan();
                assert_eq!(plan.ranks.len() as u64, stages);
                let mut free = job("gpt2.onnx", plan, false);
                let report = free.step(&mut &golden, 1e-3, Interleaving::Threads).expect("the step runs");
                assert!((report.loss() - loss).abs() < 1e-5 * loss, "{what}: loss {} against {loss}", report.loss());
                // A checked job poisons what is dead: reading any of it would change the update.
                let mut checked = job("gpt2.onnx", plan, true);
                checked.step(&mut &golden, 1e-3, Interleaving::Threads).expect("the step runs");
                for parameter in &plan.parameters {
                    let [free, checked] = [&free, &checked].map(|job| job.parameter(&parameter.name).unwrap());
                    assert!(free.bytes() == checked.bytes(), "{what}: {} differs when checked", parameter.name);
                }
                let arenas: Vec<u64> = plan.prediction.ranks.iter().map(|r| r.arena_bytes).collect();
                assert_eq!(checked.touched_bytes(), arenas, "{what}: bytes touched against bytes predicted");
                for (rank, program) in plan.programs.iter() {
                    let (arena, bound) = (program.arena_bytes, program.arena_lower_bound);
                    assert!(arena * 100 <= bound * 102, "{what}, {rank}: arena {arena}, lower bound {bound}");
                }
                let found = gradients(plan, &free);
                match &first {
                    None => {
                        check_gradients(&golden, &found, report.loss_count, ("gpt2.onnx", "full_batch"));
                        first = Some(found);
                    }
                    Some(first) => assert!(bits(first) == bits(&found), "{what}: gradients differ from one stage's"),
                }
            }
        }
    }
}

#[test]
fn drawn_interleavings_change_nothing() {
    let golden = Golden::open("gpt2");
    let compiled = plan_of(4, 8, Recompute::Full);
    let run = |interleaving| {
        let mut job = job("gpt2.onnx", compiled.plan.plan(), false);
        job.step(&mut &golden, 1e-3, interleaving).expect("the step runs");
        gradients(compiled.plan.plan(), &job)
    };
    let threads = run(Interleaving::Threads);
    for seed in 0..5 {
        assert!(bits(&threads) == bits(&run(Interleaving::Drawn { seed })), "seed {seed}");
    }
}

#[test]
fn twenty_steps_follow_pytorchs_adamw() {
    let golden = Golden::open("gpt2");
    let expected: Vec<f64> =
        golden.json["adamw"]["losses"].as_array().unwrap().iter().map(|l| l.as_f64().unwrap()).collect();
    let compiled = plan_of(2, 4, Recompute::None);
    let mut job = job("gpt2.onnx", compiled.plan.plan(), false);
    for (step, expected) in expected.iter().enumerate() {
        let report = job.step(&mut &golden, 1e-3, Interleaving::Threads).expect("the step runs");
        let found = report.loss();
        assert!((found - expected).abs() <= 1e-3, "step {step}: loss {found}, expected {expected}");
    }
    assert_eq!(expected.len(), 20);
}
