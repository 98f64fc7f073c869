//! Other families of models at one and two stages: gradients equal to the bit, and PyTorch's loss.

use super::{Golden, bits, compiled, gradients, job};
use std::collections::BTreeMap;
use trainc::Recompute;
use trainc_backend::Interleaving;

/// Trains one step of every plan of a model and compares them.
fn check(family: &str, model: &str, bind: &[(&str, u64)], micro_batches: u64) {
    let golden = Golden::open(family);
    let expected = golden.json["losses"]["micro_batch"].as_f64().expect("a loss");
    let mut first: Option<BTreeMap<String, Vec<f32>>> = None;
    for (stages, recompute) in [(1, Recompute::None), (1, Recompute::Full), (2, Recompute::None), (2, Recompute::Full)]
    {
        let what = format!("{model}, {stages} stages, {recompute:?}");
        let compiled = compiled(model, bind, micro_batches, stages, recompute);
        let plan = compiled.plan.plan();
        let mut job = job(model, plan, false);
        let report =
            job.step(&mut &golden, 1e-3, Interleaving::Threads).unwrap_or_else(|error| panic!("{what}: {error}"));
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
