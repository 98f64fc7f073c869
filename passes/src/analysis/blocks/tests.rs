//! Tests of the division into units.

use super::blocks;
use trainc_ir::op::{Contraction, Elementwise, Indexing};
use trainc_ir::{DType, Graph, GraphBuilder, InputRole, OutputRole, Type, ValueId};

const MATMUL: Contraction = Contraction::MatMul { transpose_a: false, transpose_b: false };

/// A residual network: lookup, `layers` times `x + relu(x w1) w2`, a product.
fn residual(layers: usize) -> Graph {
    let mut b = GraphBuilder::new("residual");
    let ids = b.input("ids", InputRole::Data, Type::new(DType::I64, [4]));
    let table = b.input("table", InputRole::Parameter, Type::new(DType::F32, [10, 8]));
    let mut x = b.one(Indexing::Gather { axis: 0 }, &[table, ids]).unwrap();
    for layer in 0..layers {
        let w1 = b.input(format!("w1.{layer}"), InputRole::Parameter, Type::new(DType::F32, [8, 8]));
        let w2 = b.input(format!("w2.{layer}"), InputRole::Parameter, Type::new(DType::F32, [8, 8]));
        let h = b.one(MATMUL, &[x, w1]).unwrap();
        let h = b.one(Elementwise::Relu, &[h]).unwrap();
        let h = b.one(MATMUL, &[h, w2]).unwrap();
        x = b.one(Elementwise::Add, &[x, h]).unwrap();
    }
    let logits: ValueId = b.one(Contraction::MatMul { transpose_a: false, transpose_b: true }, &[x, table]).unwrap();
    b.output("logits", OutputRole::Prediction, logits);
    b.finish()
}

#[test]
fn residual_layers_are_blocks_between_embedding_and_head() {
    let graph = residual(3);
    let found = blocks(&graph, graph.nodes.len());
    let names: Vec<&str> = found.units.iter().map(|u| u.name.as_str()).collect();
    assert_eq!(names, ["embedding", "block 0", "block 1", "block 2", "head"]);
    assert_eq!(found.classes.len(), 1);
    assert_eq!(found.classes[0].instances, [1, 2, 3]);
    let total: usize = found.units.iter().map(|u| u.nodes.len()).sum();
    assert_eq!(total, graph.nodes.len(), "every main node belongs to one unit");
}

#[test]
fn a_single_layer_repeats_nothing() {
    let graph = residual(1);
    assert!(blocks(&graph, graph.nodes.len()).classes.is_empty());
}

/// A stack whose layers all read the lookup: its value is live at every cut.
#[test]
fn a_value_that_every_layer_reads_hides_no_blocks() {
    let mut b = GraphBuilder::new("hub");
    let ids = b.input("ids", InputRole::Data, Type::new(DType::I64, [4]));
    let table = b.input("table", InputRole::Parameter, Type::new(DType::F32, [10, 8]));
    let hub = b.one(Indexing::Gather { axis: 0 }, &[table, ids]).unwrap();
    let mut x = hub;
    for layer in 0..6 {
        let w = b.input(format!("w.{layer}"), InputRole::Parameter, Type::new(DType::F32, [8, 8]));
        let h = b.one(MATMUL, &[x, w]).unwrap();
        let h = b.one(Elementwise::Relu, &[h]).unwrap();
        x = b.one(Elementwise::Mul, &[h, hub]).unwrap();
    }
    b.output("y", OutputRole::Prediction, x);
    let graph = b.finish();
    let found = blocks(&graph, graph.nodes.len());
    assert_eq!(found.classes.len(), 1);
    assert!(found.classes[0].instances.len() >= 5, "{:?}", found.classes);
}

/// 1,300 layers are 433 units of three and one of a single layer.
#[test]
fn very_many_layers_are_joined() {
    let graph = residual(1300);
    let found = blocks(&graph, graph.nodes.len());
    assert_eq!(found.units.len(), 433 + 1 + 2);
    let instances: Vec<usize> = found.classes.iter().map(|class| class.instances.len()).collect();
    assert_eq!(instances, [433, 1]);
    assert_eq!([found.units[1].nodes.len(), found.units[434].nodes.len()], [12, 4]);
    let total: usize = found.units.iter().map(|u| u.nodes.len()).sum();
    assert_eq!(total, graph.nodes.len(), "every main node belongs to one unit");
}
