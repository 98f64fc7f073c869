//! Other families of models at one and two stages: gradients equal to the bit, and PyTorch's loss.

use super::{Golden, bits, check_gradients, compiled, gradients, job};
use std::collections::BTreeMap;
use trainc::Recompute;
use trainc_backend::{Interleaving, Job};

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

/// Batch normalization in training mode, in one micro-batch and in two, which have statistics of their own. The running
/// averages are those that ONNX Runtime leaves, to rounding, and equal to the bit under every plan.
#[test]
fn resnet() {
    let golden = Golden::open("resnet");
    for model in ["resnet.onnx", "resnet_torchscript.onnx"] {
        for (micro_batches, case) in [(1, "micro_batch"), (2, "two_micro_batches")] {
            let loss = golden.json["losses"][case].as_f64().expect("a loss");
            let expected = golden.json["onnx_statistics_after"][model][case].as_object().expect("a table");
            let mut first: Option<[BTreeMap<String, Vec<f32>>; 3]> = None;
            for stages in [1, 2, 3] {
                for recompute in [Recompute::None, Recompute::Full] {
                    let what = format!("{model}, {micro_batches} micro-batches, {stages} stages, {recompute:?}");
                    let compiled = compiled(model, &[("batch", 4 / micro_batches)], micro_batches, stages, recompute);
                    let plan = compiled.plan.plan();
                    let mut job = job(model, plan, true);
                    let report = job.step(&mut &golden, 1e-3, Interleaving::Threads);
                    let report = report.unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert!((report.loss() - loss).abs() < 1e-5 * loss, "{what}: loss {}", report.loss());
                    let averages = |job: &Job<'_>| -> BTreeMap<String, Vec<f32>> {
                        let floats = |name: &String| {
                            let held = job.parameter(name).unwrap_or_else(|| panic!("{what}: nobody holds {name}"));
                            held.bytes().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
                        };
                        expected.keys().map(|name| (name.clone(), floats(name))).collect()
                    };
                    let after_one = [gradients(plan, &job), averages(&job)];
                    // The second step goes on from where the first left the averages.
                    job.step(&mut &golden, 1e-3, Interleaving::Threads).expect("the second step runs as the first");
                    let [gradients, first_averages] = after_one;
                    let found = [gradients, first_averages, averages(&job)];
                    assert!(found[1] != found[2], "{what}: the second step leaves the averages alone");
                    let Some(first) = &first else {
                        check_averages(&golden, &found[1], expected, &what);
                        check_gradients(&golden, &found[0], report.loss_count, (model, case));
                        first = Some(found);
                        continue;
                    };
                    for (first, found) in first.iter().zip(&found) {
                        assert!(bits(first) == bits(found), "{what}: differs from one stage's");
                    }
                }
            }
        }
    }
}

fn check_averages(
    golden: &Golden,
    found: &BTreeMap<String, Vec<f32>>,
    expected: &serde_json::Map<String, serde_json::Value>,
    what: &str,
) {
    // 12 batch normalizations have two each.
    assert_eq!(found.len(), 24);
    for (name, entry) in expected {
        let expected = golden.slice(entry).chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
        for (found, expected) in found[name].iter().zip(expected) {
            assert!((found - expected).abs() <= 2e-6 * expected.abs().max(1.0), "{what}: {name}: {found}, {expected}");
        }
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
