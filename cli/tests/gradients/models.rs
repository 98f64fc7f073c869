//! Loss and gradients of whole models against PyTorch's (`testdata/goldens`, made by `testdata/scripts`).

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use trainc_backend::{Context, Tensor, interpret};
use trainc_frontend::{Bindings, OnnxModel};
use trainc_ir::op::decode_f64;
use trainc_ir::{DType, Graph, InputRole, ModelSource, OutputRole, TrainingGraph, Type};
use trainc_passes::{Lowering, TrainingOptions, lower_to_training, passes};

/// Largest distance of a gradient from PyTorch's, relative to the larger of its norm and a thousandth of the norm of
/// all gradients.
const TOLERANCE: f64 = 1e-4;

/// One family of models with its numbers.
pub(crate) struct Golden {
    json: Value,
    bytes: Vec<u8>,
}

impl Golden {
    pub(crate) fn open(family: &str) -> Self {
        let folder = testdata().join("goldens").join(family);
        let text = std::fs::read_to_string(folder.join("golden.json")).expect("the golden is there");
        let bytes = std::fs::read(folder.join("golden.bin")).expect("the golden is there");
        Self { json: serde_json::from_str(&text).expect("the golden is JSON"), bytes }
    }

    fn tensor(&self, entry: &Value) -> (Type, &[u8]) {
        let int = |value: &Value| value.as_u64().expect("a number");
        let dtype = entry["dtype"].as_str().and_then(DType::from_name).expect("an element type");
        let shape: Vec<u64> = entry["shape"].as_array().expect("a shape").iter().map(int).collect();
        let start = int(&entry["offset"]) as usize;
        (Type::new(dtype, shape), &self.bytes[start..start + int(&entry["bytes"]) as usize])
    }

    /// The model input of this name, its first rows where the model takes fewer.
    pub(crate) fn input(&self, name: &str, wanted: &Type) -> Option<Tensor> {
        // The labels of a language model are its tokens where the golden has none of their own (the shift is the model's).
        let inputs = &self.json["inputs"];
        let labels = inputs.get("input_ids").filter(|_| name == "labels");
        let (ty, bytes) = self.tensor(inputs.get(name).or(labels)?);
        assert_eq!(ty.shape[1..], wanted.shape[1..], "{name}");
        Tensor::from_bytes(wanted.clone(), &bytes[..wanted.bytes() as usize])
    }

    /// Name of the initializer of a parameter, and whether it is transposed.
    fn initializer(&self, model: &str, parameter: &str) -> (String, bool) {
        let name = self.json["renamed_initializers"][model].get(parameter);
        let name = name.and_then(Value::as_str).unwrap_or(parameter);
        name.strip_suffix("^T").map_or_else(|| (name.to_owned(), false), |name| (name.to_owned(), true))
    }
}

pub(crate) fn testdata() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the workspace").join("testdata")
}

pub(crate) fn open(model: &str, bind: &str) -> OnnxModel {
    let bindings = Bindings::parse(bind).expect("a list of bindings");
    OnnxModel::open(&testdata().join("models").join(model), bindings).unwrap_or_else(|errors| panic!("{errors:?}"))
}

pub(crate) fn lower(model: &OnnxModel) -> Graph {
    model.lower(None).unwrap_or_else(|errors| panic!("{errors:?}")).graph
}

fn training(graph: Graph) -> TrainingGraph {
    match lower_to_training(graph, &TrainingOptions::default(), None, &mut |_| {}, &mut Vec::new()) {
        Ok(Lowering::Done(training)) => *training,
        Ok(Lowering::Stopped { after, graph: _ }) => panic!("stopped after {after}"),
        Err(errors) => panic!("{errors:?}"),
    }
}

pub(crate) fn weights(model: &OnnxModel, graph: &Graph) -> BTreeMap<String, Tensor> {
    let weights = graph.inputs.iter().filter(|i| matches!(i.role, InputRole::Parameter | InputRole::Buffer));
    weights
        .map(|input| {
            let weight = model.weight(&input.name).unwrap_or_else(|error| panic!("{error}"));
            let bytes = weight.read_bytes().unwrap_or_else(|error| panic!("{error}"));
            let tensor = Tensor::from_bytes(graph.ty(input.value).clone(), &bytes).expect("bytes of its type");
            (input.name.clone(), tensor)
        })
        .collect()
}

/// Runs the step of a model and compares loss and gradients with the golden's batch.
fn check(family: &str, model_name: &str, bind: &str, batch: &str) {
    let golden = Golden::open(family);
    let model = open(model_name, bind);
    let mut graph = lower(&model);
    let table = golden.json["gradients"][batch].as_object().expect("a table of gradients");
    // Which tensors are weights is the frontend's to tell, and tested there; here all that PyTorch trains are.
    let trained: Vec<String> = table.keys().map(|name| golden.initializer(model_name, name).0).collect();
    for input in graph.inputs.iter_mut().filter(|input| trained.contains(&input.name)) {
        input.role = InputRole::Parameter;
    }
    let training = training(graph);
    let step = &training.step;
    let mut inputs = weights(&model, step);
    for input in step.inputs.iter().filter(|i| matches!(i.role, InputRole::Data | InputRole::Label)) {
        let tensor = golden.input(&input.name, step.ty(input.value));
        inputs.insert(input.name.clone(), tensor.unwrap_or_else(|| panic!("no input `{}`", input.name)));
    }
    let results = interpret(step, &inputs, Context::default()).unwrap_or_else(|error| panic!("{error}"));
    let output = |role: OutputRole| {
        let position = step.outputs.iter().position(|o| o.role == role).expect("a step has a loss");
        results[position].to_f64s()[0]
    };
    let count = output(OutputRole::LossCount);
    let loss = output(OutputRole::LossSum) / count;
    let expected = golden.json["losses"][batch].as_f64().expect("a loss");
    assert!((loss - expected).abs() < 1e-5 * expected, "{model_name}: loss {loss}, expected {expected}");

    let global = golden.json["gradient_norm"][batch].as_f64().expect("a norm");
    let mut failures = Vec::new();
    for (parameter, entry) in table {
        let (name, transposed) = golden.initializer(model_name, parameter);
        let (ty, bytes) = golden.tensor(entry);
        let expected: Vec<f64> = bytes.chunks_exact(4).map(|b| decode_f64(DType::F32, b)).collect();
        let mut found = vec![0.0; expected.len()];
        let mut n = 0;
        for (output, result) in step.outputs.iter().zip(&results) {
            if output.name.strip_prefix(&format!("grad.{name}.")).is_some_and(|k| k.parse::<usize>().is_ok()) {
                n += 1;
                found.iter_mut().zip(result.to_f64s()).for_each(|(total, g)| *total += g / count);
            }
        }
        if n == 0 {
            failures.push(format!("{parameter} ({name}) has no gradient"));
            continue;
        }
        let found = if transposed { transpose(&found, ty.shape[1]) } else { found };
        let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let difference: Vec<f64> = found.iter().zip(&expected).map(|(a, b)| a - b).collect();
        let bound = TOLERANCE * norm(&expected).max(1e-3 * global);
        if norm(&difference) > bound {
            failures.push(format!("{parameter}: distance {} of {}", norm(&difference), norm(&expected)));
        }
    }
    assert!(failures.is_empty(), "{model_name}:\n{}", failures.join("\n"));
}

/// A matrix of rows of this length, from its transpose.
fn transpose(values: &[f64], width: u64) -> Vec<f64> {
    let width = width as usize;
    let height = values.len() / width;
    (0..values.len()).map(|i| values[i % width * height + i / width]).collect()
}

#[test]
fn gpt2_of_the_newer_exporter() {
    check("gpt2", "gpt2.onnx", "batch=2,seq=64", "first_micro_batch");
}

#[test]
fn gpt2_of_the_older_exporter() {
    check("gpt2", "gpt2_torchscript.onnx", "batch=2,seq=64", "first_micro_batch");
}

#[test]
fn gpt2_of_an_older_opset() {
    check("gpt2", "gpt2_opset13.onnx", "batch=2,seq=64", "first_micro_batch");
}

#[test]
fn gpt2_full_batch() {
    check("gpt2", "gpt2.onnx", "batch=8,seq=64", "full_batch");
}

#[test]
fn bert() {
    for model in ["bert.onnx", "bert_torchscript.onnx"] {
        check("bert", model, "*=24,batch=3", "micro_batch");
    }
}

#[test]
fn llama() {
    for model in ["llama.onnx", "llama_torchscript.onnx"] {
        check("llama", model, "*=24,batch=3", "micro_batch");
    }
}

#[test]
fn bert_that_classifies() {
    for model in ["bert_cls.onnx", "bert_cls_torchscript.onnx"] {
        check("bert_cls", model, "*=24,batch=3", "micro_batch");
    }
}

#[test]
fn vit() {
    for model in ["vit.onnx", "vit_torchscript.onnx"] {
        check("vit", model, "*=3", "micro_batch");
    }
}

/// Batch normalization in training mode: the batch at once, and its halves by themselves.
#[test]
fn resnet() {
    for model in ["resnet.onnx", "resnet_torchscript.onnx"] {
        check("resnet", model, "*=4", "micro_batch");
    }
}

#[test]
fn t5() {
    for model in ["t5.onnx", "t5_torchscript.onnx"] {
        check("t5", model, "*=24,batch=3,target=16", "micro_batch");
    }
}

#[test]
fn gpt2_with_its_own_loss() {
    check("gpt2", "gpt2_loss.onnx", "batch=2,seq=64", "first_micro_batch");
}

#[test]
fn mixtral_with_its_load_balancing_loss() {
    for model in ["mixtral.onnx", "mixtral_torchscript.onnx"] {
        check("mixtral", model, "*=24,batch=2", "micro_batch");
    }
}

/// What a pass does to a model changes no number by more than rounding.
#[test]
fn transforms_keep_the_numbers() {
    for (model, bind) in [
        ("gpt2.onnx", "batch=2,seq=16"),
        ("gpt2_torchscript.onnx", "batch=2,seq=16"),
        ("gpt2_opset13.onnx", "batch=2,seq=16"),
        ("bert.onnx", "*=8,batch=2"),
        ("bert_torchscript.onnx", "*=8,batch=2"),
        ("llama.onnx", "*=8,batch=2"),
        ("llama_torchscript.onnx", "*=8,batch=2"),
    ] {
        let source = open(model, bind);
        let mut graph = lower(&source);
        let mut inputs = weights(&source, &graph);
        for input in graph.inputs.iter().filter(|i| matches!(i.role, InputRole::Data | InputRole::Label)) {
            let ty = graph.ty(input.value).clone();
            let is_mask = input.name.ends_with("mask");
            let ids = (0..ty.elements()).map(|i| if is_mask { i64::from(i % 8 < 6) } else { i as i64 * 7 % 31 % 29 });
            let ids: Vec<i64> = ids.map(|id| if input.name == "token_type_ids" { id % 2 } else { id }).collect();
            inputs.insert(input.name.clone(), Tensor::from_i64(&ty.shape, &ids).expect("ids for all positions"));
        }
        let run = |graph: &Graph| interpret(graph, &inputs, Context::default()).unwrap_or_else(|e| panic!("{e}"));
        let before = run(&graph);
        for (pass, _) in passes(&TrainingOptions::default()).into_iter().filter(|(pass, _)| pass.name() != "loss") {
            pass.run(&mut graph, &mut Vec::new()).unwrap_or_else(|errors| panic!("{errors:?}"));
            for ((output, a), b) in graph.outputs.iter().zip(&before).zip(run(&graph)) {
                let scale = a.to_f64s().iter().fold(1.0, |m: f64, v| m.max(v.abs()));
                let far = a.to_f64s().iter().zip(b.to_f64s()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(far <= 1e-5 * scale, "{model} after {}: `{}` moved by {far}", pass.name(), output.name);
            }
        }
    }
}
