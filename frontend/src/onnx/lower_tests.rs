//! Tests of lowering on whole models: both GPT-2 exports, the loss inside the model, bindings that cannot be.

use super::{Bindings, OnnxModel};
use std::collections::BTreeMap;
use std::path::PathBuf;
use trainc_ir::{Diagnostics, Graph, InputRole, Lowered, ModelSource, OutputRole};

fn model(name: &str, bindings: &str) -> OnnxModel {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/models").join(name);
    OnnxModel::open(&path, Bindings::parse(bindings).unwrap()).unwrap()
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

#[test]
fn gpt2_lowers_without_shape_arithmetic() {
    for name in ["gpt2.onnx", "gpt2_torchscript.onnx"] {
        let graph = clean(name, "batch=2,seq=64");
        println!("{}", trainc_ir::text::print(&graph));
    }
}
