//! Fused and unfused graphs give equal losses and gradients, in double precision: for every family of models, and for every
//! golden graph of the transforms.

use crate::models::{Golden, lower, open, testdata, weights};
use std::collections::BTreeMap;
use std::path::Path;
use trainc_backend::{Context, Tensor, interpret};
use trainc_ir::op::{Creation, Elementwise, Literal, ReduceKind, Reduction};
use trainc_ir::text::parse;
use trainc_ir::{Copier, DType, Graph, GraphBuilder, InputRole, Op, OutputRole, Type};
use trainc_passes::transform::{Step, Trainable, differentiate};
use trainc_passes::{TrainingOptions, pass, passes};

/// Fused operators hold constants such as the root of two exactly, which the files round to single precision.
const TOLERANCE: (f64, f64) = (1e-7, 1e-3);

/// The same graph in double precision where it is in single precision.
fn widened(graph: &Graph) -> Graph {
    let mut b = GraphBuilder::new(graph.name.clone());
    let mut copier = Copier::new(graph);
    for input in &graph.inputs {
        let value = b.input(input.name.clone(), input.role, wide(graph.ty(input.value)));
        copier.set(input.value, value);
    }
    for node in graph.nodes.values() {
        let op = match &node.op {
            Op::Creation(Creation::Constant { value }) if value.ty.dtype == DType::F32 => {
                let bytes = value.to_f64s().into_iter().flat_map(f64::to_le_bytes).collect();
                let value = Literal::from_bytes(wide(&value.ty), bytes).expect("as many elements");
                Creation::Constant { value }.into()
            }
            Op::Elementwise(Elementwise::Cast { to: DType::F32 }) => Elementwise::Cast { to: DType::F64 }.into(),
            op => op.clone(),
        };
        let results = b.add(op, &copier.all(&node.inputs)).expect("wide operands fit as narrow ones do");
        for (&from, &to) in node.outputs.iter().zip(&results) {
            copier.set(from, to);
        }
    }
    copier.outputs(&mut b);
    b.finish()
}

fn wide(ty: &Type) -> Type {
    if ty.dtype == DType::F32 { ty.with_dtype(DType::F64) } else { ty.clone() }
}

fn wide_tensor(tensor: &Tensor) -> Tensor {
    if tensor.ty().dtype != DType::F32 {
        return tensor.clone();
    }
    let bytes: Vec<u8> = tensor.to_f64s().into_iter().flat_map(f64::to_le_bytes).collect();
    Tensor::from_bytes(wide(tensor.ty()), &bytes).expect("as many elements")
}

/// Results of the outputs by name, contributions to one gradient summed.
fn results(graph: &Graph, inputs: &BTreeMap<String, Tensor>) -> BTreeMap<String, Vec<f64>> {
    let name = &graph.name;
    let results = interpret(graph, inputs, Context::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut out: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (output, result) in graph.outputs.iter().zip(results) {
        let name = match output.role {
            OutputRole::Gradient => output.name.rsplit_once('.').map_or("", |(name, _)| name).to_owned(),
            _ => output.name.clone(),
        };
        let found = result.to_f64s();
        match out.get_mut(&name) {
            Some(total) => total.iter_mut().zip(found).for_each(|(total, g)| *total += g),
            None => drop(out.insert(name, found)),
        }
    }
    out
}

/// What differs by more than the tolerance, relative to the largest number of the value, or to the least that counts.
fn differences(
    a: &BTreeMap<String, Vec<f64>>,
    b: &BTreeMap<String, Vec<f64>>,
    (tolerance, least): (f64, f64),
) -> Vec<String> {
    let names: Vec<_> = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name))).collect();
    let mut out = Vec::new();
    for name in names {
        let (Some(a), Some(b)) = (a.get(name), b.get(name)) else {
            out.push(format!("`{name}` is there once only"));
            continue;
        };
        let scale = a.iter().filter(|v| v.is_finite()).fold(least, |m: f64, v| m.max(v.abs()));
        let far = a.iter().zip(b).map(|(a, b)| if a == b || a.is_nan() && b.is_nan() { 0.0 } else { (a - b).abs() });
        let far = far.fold(0.0, |m: f64, v| if v > m || v.is_nan() { v } else { m });
        if far > tolerance * scale || far.is_nan() {
            out.push(format!("`{name}` moved by {far} of {scale}"));
        }
    }
    out
}

/// Runs the passes over the graph, with or without fusion, and differentiates it.
fn step(mut graph: Graph, fuse: bool) -> Step {
    for (pass, _) in passes(&TrainingOptions::default()) {
        if fuse || pass.name() != "fuse" {
            pass.run(&mut graph, &mut Vec::new()).unwrap_or_else(|errors| panic!("{errors:?}"));
        }
    }
    differentiate(graph, &Trainable::all(), &mut Vec::new()).unwrap_or_else(|errors| panic!("{errors:?}"))
}

#[test]
fn fusion_keeps_losses_and_gradients() {
    for (family, model, bind) in [
        ("gpt2", "gpt2.onnx", "batch=1,seq=64"),
        ("gpt2", "gpt2_loss.onnx", "batch=1,seq=64"),
        ("gpt2", "gpt2_torchscript.onnx", "batch=1,seq=64"),
        ("gpt2", "gpt2_opset13.onnx", "batch=1,seq=64"),
        ("bert", "bert.onnx", "*=24,batch=2"),
        ("bert", "bert_torchscript.onnx", "*=24,batch=2"),
        ("bert_cls", "bert_cls.onnx", "*=24,batch=2"),
        ("bert_cls", "bert_cls_torchscript.onnx", "*=24,batch=2"),
        ("llama", "llama.onnx", "*=24,batch=2"),
        ("llama", "llama_torchscript.onnx", "*=24,batch=2"),
        ("vit", "vit.onnx", "*=2"),
        ("vit", "vit_torchscript.onnx", "*=2"),
        ("t5", "t5.onnx", "*=24,batch=2,target=16"),
        ("t5", "t5_torchscript.onnx", "*=24,batch=2,target=16"),
        ("mixtral", "mixtral.onnx", "*=24,batch=2"),
        ("mixtral", "mixtral_torchscript.onnx", "*=24,batch=2"),
    ] {
        let golden = Golden::open(family);
        let source = open(model, bind);
        let graph = lower(&source);
        let mut inputs = weights(&source, &graph);
        let (fused, apart) = (step(widened(&graph), true), step(widened(&graph), false));
        for input in apart.graph.inputs.iter().filter(|i| matches!(i.role, InputRole::Data | InputRole::Label)) {
            let narrow = graph.input(&input.name).map_or(apart.graph.ty(input.value), |i| graph.ty(i.value));
            let tensor = golden.input(&input.name, narrow);
            inputs.insert(input.name.clone(), tensor.unwrap_or_else(|| panic!("no input `{}`", input.name)));
        }
        let inputs = inputs.iter().map(|(name, tensor)| (name.clone(), wide_tensor(tensor))).collect();
        assert!(fused.graph.nodes.len() < apart.graph.nodes.len(), "{model}: nothing is fused");
        let failures = differences(&results(&apart.graph, &inputs), &results(&fused.graph, &inputs), TOLERANCE);
        assert!(failures.is_empty(), "{model}:\n{}", failures.join("\n"));
    }
}

/// The graph with the sum of all its float results as loss, every float input that is no table being trained.
fn trained(mut graph: Graph) -> Graph {
    for i in 0..graph.inputs.len() {
        let is_data = matches!(graph.inputs[i].role, InputRole::Data | InputRole::Label);
        if is_data && graph.ty(graph.inputs[i].value).dtype.is_float() {
            graph.inputs[i].role = InputRole::Parameter;
        }
    }
    let outputs = std::mem::take(&mut graph.outputs);
    let mut b = GraphBuilder::extend(graph);
    let mut total = None;
    for (k, output) in outputs.iter().enumerate() {
        let ty = b.ty(output.value).clone();
        if !ty.dtype.is_float() {
            continue;
        }
        let value = b.one(Elementwise::Cast { to: DType::F64 }, &[output.value]).expect("floats can be cast");
        let weight = |i: u64| 0.5 + ((i * 37 + k as u64 * 11) % 41) as f64 / 41.0;
        let bytes = (0..ty.elements()).flat_map(|i| weight(i).to_le_bytes()).collect();
        let weights = b.constant(Literal::from_bytes(ty.with_dtype(DType::F64), bytes).expect("one for each element"));
        let terms = b.one(Elementwise::Mul, &[value, weights]).expect("equal types");
        let axes = (0..ty.rank() as u64).collect();
        let sum = b.one(Reduction::Reduce { kind: ReduceKind::Sum, axes, keep: false }, &[terms]).expect("all axes");
        total = Some(total.map_or(sum, |t| b.one(Elementwise::Add, &[t, sum]).expect("scalars")));
    }
    b.output("loss_sum", OutputRole::LossSum, total.expect("a graph has float results"));
    b.finish()
}

pub(crate) fn drawn(ty: &Type, salt: usize) -> Tensor {
    let n = ty.elements() as usize;
    let element = |i: usize| {
        let k = (i * 7919 + salt * 104_729 + 12_345) % 10_007;
        match ty.dtype {
            DType::Bool => f64::from(!k.is_multiple_of(3)),
            DType::U8 | DType::I8 | DType::I32 | DType::I64 => (k % 2) as f64,
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => k as f64 / 5_003.5 - 1.0,
        }
    };
    let bytes: Vec<u8> = (0..n).flat_map(|i| trainc_ir::op::encode_f64(ty.dtype, element(i))).collect();
    Tensor::from_bytes(ty.clone(), &bytes).expect("one number for each element")
}

/// What a golden graph gives before and after the pass.
fn check_golden(path: &Path, pass_name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("the golden file is there");
    let input = text.split("; expect:").next().unwrap_or_default();
    let narrow = ["f16[", "bf16["].iter().any(|word| input.contains(word));
    let graph = match parse("golden.ir", input) {
        Ok(graph) if narrow => (*graph).clone(),
        Ok(graph) => widened(&graph),
        Err(errors) => return vec![format!("{errors:?}")],
    };
    let mut after = graph.clone();
    let pass = pass(pass_name, &TrainingOptions::default()).expect("there is such a pass");
    pass.run(&mut after, &mut Vec::new()).unwrap_or_else(|errors| panic!("{errors:?}"));
    let inputs: BTreeMap<_, _> =
        graph.inputs.iter().enumerate().map(|(i, x)| (x.name.clone(), drawn(graph.ty(x.value), i))).collect();
    // In half precision a fused operator rounds once where its parts round several times.
    let tolerance = if narrow { (3e-2, 1.0) } else { TOLERANCE };
    let mut failures = differences(&results(&graph, &inputs), &results(&after, &inputs), tolerance);
    let steps = [graph, after].map(|graph| {
        let floats = |graph: &Graph| graph.outputs.iter().any(|output| graph.ty(output.value).dtype.is_float());
        floats(&graph).then(|| differentiate(trained(graph), &Trainable::all(), &mut Vec::new()).ok()).flatten()
    });
    match steps {
        [Some(before), Some(after)] => {
            let (a, b) = (results(&before.graph, &inputs), results(&after.graph, &inputs));
            failures.extend(differences(&a, &b, tolerance));
        }
        [None, _] => {}
        [Some(_), None] => failures.push("its gradient is lost".to_owned()),
    }
    failures
}

#[test]
fn golden_graphs_keep_their_numbers() {
    let mut failures = Vec::new();
    for name in ["fuse", "canonicalize"] {
        let folder = testdata().join("transform").join(name);
        let mut paths: Vec<_> = std::fs::read_dir(folder)
            .expect("the folder is there")
            .map(|entry| entry.expect("the folder can be listed").path())
            .collect();
        paths.sort();
        assert!(!paths.is_empty());
        for path in paths {
            let file = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
            failures.extend(check_golden(&path, name).into_iter().map(|text| format!("{name}/{file}: {text}")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
