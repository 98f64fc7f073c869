//! Tests of lowering on whole models: both GPT-2 exports, the loss inside the model, bindings that cannot be.

use super::{Bindings, ModelBytes, OnnxModel};
use std::collections::BTreeMap;
use std::path::PathBuf;
use trainc_ir::op::Creation;
use trainc_ir::{Diagnostics, Graph, InputRole, Lowered, ModelSource, Op, OutputRole, Severity};

fn model(name: &str, bindings: &str) -> OnnxModel {
    let testdata = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    // Exported models, or small ones made by hand.
    let path = ["models", "frontend/onnx"].map(|folder| testdata.join(folder).join(name));
    let path = path.iter().find(|path| path.exists()).expect("the model is there");
    OnnxModel::open(path, Bindings::parse(bindings).unwrap()).unwrap()
}

fn lower(name: &str, bindings: &str) -> Result<Lowered, Diagnostics> {
    model(name, bindings).lower(None)
}

/// A graph that the IR's verifier accepts, lowered without any remark.
fn clean(name: &str, bindings: &str) -> Graph {
    let lowered = lower(name, bindings).unwrap();
    assert_eq!(lowered.diagnostics, []);
    trainc_ir::verify(lowered.graph).map_err(|(_, errors)| errors).unwrap().into_inner()
}

fn census(graph: &Graph) -> BTreeMap<&'static str, usize> {
    let mut census = BTreeMap::new();
    for (_, node) in graph.nodes.iter() {
        *census.entry(node.op.spelling()).or_insert(0) += 1;
    }
    census
}

fn inputs(graph: &Graph, role: InputRole) -> Vec<&str> {
    graph.inputs.iter().filter(|input| input.role == role).map(|input| input.name.as_str()).collect()
}

/// What of each operator must be there; shapes, masks and positions must be gone.
fn assert_gpt2(graph: &Graph, name: &str) {
    let census = census(graph);
    for op in ["cumsum", "eq", "le", "and", "not", "slice", "concat", "broadcast", "cast", "max", "gather_elements"] {
        assert_eq!(census.get(op), None, "{name}: {op} in {census:?}");
    }
    // Four layers: 2 norms and one at the end; 4 projections and 2 products of attention each, and the head.
    assert_eq!((census["layer_norm"], census["matmul"], census["softmax"]), (9, 25, 4), "{name}");
    assert_eq!((census["gather"], census["tanh"], census["pow"]), (2, 4, 4), "{name}");
    assert!(graph.values.iter().all(|(_, value)| value.ty.dtype.is_float() || value.ty.bytes() <= 64 * 64 * 8));
}

#[test]
fn gpt2_lowers_without_shape_arithmetic() {
    for name in ["gpt2.onnx", "gpt2_torchscript.onnx"] {
        let graph = clean(name, "batch=2,seq=64");
        assert_gpt2(&graph, name);
        assert_eq!(inputs(&graph, InputRole::Data), ["input_ids"]);
        // 12 tensors a layer, two embeddings (the head is tied to one), the last norm.
        assert_eq!(inputs(&graph, InputRole::Parameter).len(), 4 * 12 + 4, "{name}");
        assert_eq!(inputs(&graph, InputRole::Buffer), [""; 0]);
        let logits = graph.output("logits").unwrap();
        assert_eq!((logits.role, graph.ty(logits.value).to_string()), (OutputRole::Prediction, "f32[2,64,256]".into()));
    }
}

#[test]
fn the_causal_mask_is_one_constant_for_all_samples() {
    // Both exporters write the lowest single for a hidden position.
    let below = f64::from(f32::MIN);
    for name in ["gpt2.onnx", "gpt2_torchscript.onnx"] {
        let graph = clean(name, "batch=3,seq=12");
        let masks: Vec<_> = graph
            .nodes
            .iter()
            .filter_map(|(_, node)| match &node.op {
                Op::Creation(Creation::Constant { value }) if value.ty.shape == [1, 1, 12, 12] => Some(value),
                _ => None,
            })
            .collect();
        assert_eq!(masks.len(), 1, "{name}");
        let expected = (0..144).map(|i| if i % 12 <= i / 12 { 0.0 } else { below });
        assert_eq!(masks[0].to_f64s(), expected.collect::<Vec<f64>>(), "{name}");
    }
}

#[test]
fn the_tied_embedding_is_one_parameter_with_two_uses() {
    for (name, weight) in [("gpt2.onnx", "lm_head.weight"), ("gpt2_torchscript.onnx", "transformer.wte.weight")] {
        let graph = clean(name, "batch=1,seq=8");
        let value = graph.input(weight).unwrap().value;
        assert_eq!(graph.users()[value].len(), 2, "{name}");
    }
}

#[test]
fn a_loss_inside_the_model_becomes_a_sum_and_a_count() {
    let graph = clean("gpt2_loss.onnx", "batch=2,seq=16");
    assert_eq!(inputs(&graph, InputRole::Label), ["labels"]);
    let roles: Vec<_> = graph.outputs.iter().map(|output| (output.name.as_str(), output.role)).collect();
    let expected =
        [("loss_sum", OutputRole::LossSum), ("loss_count", OutputRole::LossCount), ("logits", OutputRole::Prediction)];
    assert_eq!(roles, expected);
    assert_eq!(graph.ty(graph.outputs[1].value).to_string(), "i64[]");
    assert_eq!(census(&graph)["cross_entropy"], 1);
    assert_eq!(census(&graph).get("div"), None, "the mean itself is not computed");
}

#[test]
fn a_micro_batch_replaces_the_bound_batch() {
    let model = model("gpt2.onnx", "batch=2,seq=8");
    assert_eq!(
        model.lower(Some(6)).unwrap().graph,
        self::model("gpt2.onnx", "batch=6,seq=8").lower(None).unwrap().graph
    );
}

#[test]
fn lowering_is_deterministic_and_the_digest_ignores_weights() {
    let (a, b) = (model("gpt2.onnx", "*=4"), model("gpt2.onnx", "*=4"));
    assert_eq!(a.lower(None).unwrap().graph, b.lower(None).unwrap().graph);
    assert_eq!(a.digest(), b.digest());
    assert_eq!(a.digest().len(), 64);
    assert_ne!(a.digest(), model("gpt2_torchscript.onnx", "*=4").digest());
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/models/gpt2.onnx");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = a.weight("transformer.h.0.ln_1.weight").unwrap().read_bytes().unwrap();
    let position = bytes.windows(at.len()).position(|window| window == at).unwrap();
    bytes[position] ^= 1;
    let retrained = OnnxModel::from_bytes(ModelBytes::from_vec(path, bytes), Bindings::default()).unwrap();
    assert_eq!(a.digest(), retrained.digest());
}

#[test]
fn a_model_without_its_weights_lowers_and_names_the_missing_file_on_reading() {
    let model = model("gpt2_12l_768_noweights.onnx", "batch=1,seq=128");
    let lowered = model.lower(None).unwrap();
    assert_eq!(inputs(&lowered.graph, InputRole::Parameter).len(), 12 * 12 + 4);
    let problem = model.weight("transformer.wpe.weight").unwrap().read_bytes().unwrap_err();
    assert_eq!(problem.code, "E0113");
    assert!(problem.message.contains("gpt2_12l_768.weights"), "{problem}");
}

#[test]
fn impossible_bindings_name_the_symbol_and_both_numbers() {
    for name in ["gpt2.onnx", "gpt2_torchscript.onnx"] {
        let problems = lower(name, "batch=2,seq=129").unwrap_err();
        assert_eq!(problems.len(), 1, "{name}: {problems:?}");
        assert_eq!(problems[0].code, "E0119", "{name}: {problems:?}");
        let message = &problems[0].message;
        assert!(message.contains("`seq` (axis 1 of input `input_ids`) is bound to 129"), "{message}");
        assert!(message.contains("`transformer.wpe.weight` has 128 entries"), "{message}");
    }
    let open = lower("gpt2.onnx", "batch=2").unwrap_err();
    assert_eq!(open[0].message, "dimension `seq` (axis 1 of input `input_ids`) is not bound");
    assert!(open[0].help.as_deref().unwrap().contains("--bind seq=N"));
}

#[test]
fn other_families_lower_from_both_exporters() {
    let names = ["bert", "bert_cls", "llama", "mixtral", "t5", "vit"];
    for name in names.iter().flat_map(|name| [format!("{name}.onnx"), format!("{name}_torchscript.onnx")]) {
        let lowered = lower(&name, "*=4").unwrap();
        assert!(!lowered.diagnostics.iter().any(|remark| remark.severity > Severity::Note), "{name}");
        let graph = trainc_ir::verify(lowered.graph).map_err(|(_, errors)| errors).unwrap();
        // All but LLaMA were exported with their loss.
        let labels: &[&str] = if name.starts_with("llama") { &[] } else { &["labels"] };
        assert_eq!(inputs(&graph, InputRole::Label), labels, "{name}");
    }
}

#[test]
fn frequency_tables_are_not_trained() {
    let lowered = lower("llama.onnx", "batch=1,seq=8").unwrap();
    assert_eq!(inputs(&lowered.graph, InputRole::Buffer), ["model.rotary_emb.inv_freq"]);
    assert_eq!(lowered.diagnostics.len(), 1);
    assert_eq!(lowered.diagnostics[0].code, "E0129");
}

#[test]
fn unknown_operators_are_reported_all_at_once_with_counts() {
    let problems = lower("unsupported.onnx", "*=4").unwrap_err();
    let found: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert!(found.contains(&"operator `LRN` is not supported (nodes: 2)"), "{found:?}");
    assert!(found.contains(&"operator `MeanVarianceNormalization` is not supported (nodes: 1)"), "{found:?}");
    assert!(problems.iter().all(|problem| problem.code == "E0120" && problem.notes[0].starts_with("at `/")));
}

#[test]
fn batch_norms_in_training_mode_update_their_averages() {
    for name in ["resnet.onnx", "resnet_torchscript.onnx"] {
        let graph = clean(name, "*=4");
        let census = census(&graph);
        assert_eq!((census["conv"], census["max_pool"], census["batch_norm"]), (12, 1, 12), "{name}");
        let updated = graph.outputs.iter().filter(|output| output.role == OutputRole::Updated);
        let mut updated: Vec<&str> = updated.map(|output| output.name.as_str()).collect();
        updated.sort_unstable();
        let mut buffers = inputs(&graph, InputRole::Buffer);
        buffers.sort_unstable();
        assert_eq!((buffers.len(), &buffers), (24, &updated), "{name}");
        for output in graph.outputs.iter().filter(|output| output.role == OutputRole::Updated) {
            let node = &graph.nodes[graph.producer(output.value).unwrap()];
            assert_eq!(graph.input_of(node.inputs[0]).unwrap().name, output.name);
        }
    }
}

/// Before operator set 14 the number of results tells the mode.
#[test]
fn batch_norms_of_older_operator_sets() {
    let graph = clean("batch_norm_opset13.onnx", "batch=2");
    let attributes: Vec<_> = graph.nodes.values().map(|node| (node.op.spelling(), node.op.attrs())).collect();
    let real = |x: f64| trainc_ir::op::Attr::Real(x.into());
    assert_eq!(attributes[1], ("batch_norm", vec![("eps", real(1e-3))]));
    assert_eq!(attributes[2], ("running_average", vec![("momentum", real(0.75))]));
}

#[test]
fn batch_norms_in_inference_mode_are_frozen() {
    let lowered = lower("frozen_batch_norm.onnx", "batch=2").unwrap();
    assert_eq!(inputs(&lowered.graph, InputRole::Buffer), ["norm.running_mean", "norm.running_var"]);
    assert!(lowered.graph.outputs.iter().all(|output| output.role == OutputRole::Prediction));
    assert_eq!(lowered.diagnostics.len(), 1);
    assert_eq!((lowered.diagnostics[0].code, lowered.diagnostics[0].severity), ("N0130", Severity::Note));
}

#[test]
fn batch_norms_do_not_share_averages() {
    let problems = lower("shared_batch_norm.onnx", "batch=2").unwrap_err();
    let names: Vec<_> = problems.iter().map(|problem| problem.message.split('`').nth(1).unwrap()).collect();
    assert_eq!(names, ["norm.running_mean", "norm.running_var"]);
    assert!(problems.iter().all(|problem| problem.code == "E0124"));
}
