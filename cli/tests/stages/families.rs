//! Other families of models at one and two stages: gradients equal to the bit, and PyTorch's loss.

use super::{bits, gradients, testdata};
use serde_json::Value;
use std::collections::BTreeMap;
use trainc::{CompileOptions, ModelOptions, Recompute, compile};
use trainc_backend::{Batches, Interleaving, Job, JobOptions, RunError, Tensor};
use trainc_frontend::{Bindings, OnnxModel};
use trainc_ir::plan::{PlanInput, PlanParameter};

/// The golden's inputs, cut into micro-batches of whole samples.
struct Rows<'g> {
    json: &'g Value,
    bytes: &'g [u8],
}

impl Batches for Rows<'_> {
    fn batch(&mut self, _step: u32, micro_batch: u64, input: &PlanInput) -> Result<Tensor, RunError> {
        let entry = &self.json["inputs"][&input.name];
        let size = input.ty.bytes() as usize;
        let start = entry["offset"].as_u64().expect("the golden has the input") as usize + size * micro_batch as usize;
        Ok(Tensor::from_bytes(input.ty.clone(), &self.bytes[start..start + size]).expect("bytes of the input's type"))
    }
}

/// Trains one step of every plan of a model and compares them.
fn check(family: &str, model: &str, bind: &[(&str, u64)], micro_batches: u64) {
    let golden = testdata("goldens").join(family);
    let json = std::fs::read_to_string(golden.join("golden.json")).expect("the golden is there");
    let json: Value = serde_json::from_str(&json).expect("the golden is JSON");
    let bytes = std::fs::read(golden.join("golden.bin")).expect("the golden is there");
    let path = testdata("models").join(model);
    let source = OnnxModel::open(&path, Bindings::default()).expect("the model is readable");
    let expected = json["losses"]["micro_batch"].as_f64().expect("a loss");
    let mut first: Option<BTreeMap<String, Vec<f32>>> = None;
    for (stages, recompute) in [(1, Recompute::None), (1, Recompute::Full), (2, Recompute::None), (2, Recompute::Full)]
    {
        let what = format!("{model}, {stages} stages, {recompute:?}");
        let options = CompileOptions {
            model: ModelOptions {
                model: path.clone(),
                bindings: bind.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect(),
                micro_batches: Some(micro_batches),
                ..ModelOptions::default()
            },
            cluster: testdata("clusters/mixed.toml"),
            stages: Some(stages),
            recompute,
        };
        let compiled = compile(&options).unwrap_or_else(|failure| panic!("{what}: {failure}"));
        let plan = compiled.plan.plan();
        let mut load = |parameter: &PlanParameter| {
            let weight = source.weight(&parameter.name).map_err(|e| e.to_string())?;
            weight.read_bytes().map(Some).map_err(|e| e.to_string())
        };
        let mut job = Job::new(plan, JobOptions { seed: 0, checked: false }, &mut load).expect("the plan can run");
        let mut rows = Rows { json: &json, bytes: &bytes };
        let report = job.step(&mut rows, 1e-3, Interleaving::Threads).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(
            (report.loss() - expected).abs() < 2e-5 * expected,
            "{what}: loss {}, expected {expected}",
            report.loss()
        );
        let found = gradients(plan, &job);
        match &first {
            None => first = Some(found),
            Some(first) => assert!(bits(first) == bits(&found), "{what}: gradients differ from one stage's"),
        }
    }
}

#[test]
fn bert() {
    for model in ["bert.onnx", "bert_torchscript.onnx"] {
        check("bert", model, &[("batch", 1), ("seq", 24)], 3);
    }
    check("bert_cls", "bert_cls.onnx", &[("batch", 1), ("seq", 24)], 3);
}

#[test]
fn llama() {
    for model in ["llama.onnx", "llama_torchscript.onnx"] {
        check("llama", model, &[("batch", 1), ("seq", 24)], 3);
    }
}

#[test]
fn vit() {
    for model in ["vit.onnx", "vit_torchscript.onnx"] {
        check("vit", model, &[("batch", 1)], 3);
    }
}

#[test]
fn t5() {
    for model in ["t5.onnx", "t5_torchscript.onnx"] {
        check("t5", model, &[("batch", 1), ("source", 24), ("target", 16)], 3);
    }
}

/// The load-balancing loss mixes the samples of a micro-batch, so that the whole batch is one.
#[test]
fn mixtral() {
    for model in ["mixtral.onnx", "mixtral_torchscript.onnx"] {
        check("mixtral", model, &[("batch", 2), ("seq", 24)], 1);
    }
}
