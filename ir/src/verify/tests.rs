//! Tests of the rules that no text can break; the others have golden files.

use super::{Entity, Rule, VerifyError, verify};
use crate::id::Id;
use crate::op::{Creation, Elementwise, Literal, Movement, Op, Random, Real};
use crate::{DType, Def, Graph, GraphBuilder, InputRole, NodeId, Type, Value};

fn graph() -> GraphBuilder {
    let mut b = GraphBuilder::new("g");
    let x = b.input("x", InputRole::Data, Type::new(DType::F32, [2]));
    b.one(Elementwise::Exp, &[x]).expect("exp takes floats");
    b
}

fn errors(graph: Graph) -> Vec<VerifyError> {
    verify(graph).expect_err("a rule is broken").1
}

#[test]
fn a_valid_graph_passes() {
    assert_eq!(verify(graph().finish()).map(|verified| verified.nodes.len()), Ok(1));
}

#[test]
fn v02_value_without_definition() {
    let mut graph = graph().finish();
    graph.values.push(Value { ty: Type::scalar(DType::F32), def: Def::Input(0) });
    let errors = errors(graph);
    assert_eq!((errors[0].rule, errors[0].at), (Rule::V02, Entity::Graph));
    assert_eq!(errors[0].message, "v2 is defined by no input and no node");
}

#[test]
fn v03_wrong_back_link() {
    for def in [Def::Input(0), Def::Input(9), Def::Result { node: NodeId::from_index(0), index: 1 }] {
        let mut graph = graph().finish();
        let result = graph.nodes[NodeId::from_index(0)].outputs[0];
        graph.values[result].def = def;
        let errors = errors(graph);
        assert_eq!(errors.iter().map(|error| error.rule).collect::<Vec<_>>(), [Rule::V03], "{def:?}");
    }
}

#[test]
fn v09_attribute_beyond_63_bits() {
    let mut b = graph();
    let x = b.graph().inputs[0].value;
    b.one(Random::Dropout { p: Real::new(0.5), site: u64::MAX }, &[x]).expect("any site is well-typed");
    let errors = errors(b.finish());
    assert_eq!(errors.iter().map(|error| error.rule).collect::<Vec<_>>(), [Rule::V09]);
    assert_eq!(errors[0].at, Entity::Node(NodeId::from_index(1)));
}

#[test]
fn errors_in_sizes_do_not_make_inference_overflow() {
    let huge = Type::new(DType::F32, [u64::MAX, u64::MAX]);
    let mut b = GraphBuilder::new("g");
    b.input("x", InputRole::Data, huge.clone());
    let mut graph = b.finish();
    let x = graph.inputs[0].value;
    let node = graph.nodes.next_id();
    let y = graph.values.push(Value { ty: huge, def: Def::Result { node, index: 0 } });
    let op = Op::from(Movement::Concat { axis: 0 });
    graph.nodes.push(crate::Node { op, inputs: vec![x, x], outputs: vec![y] });
    let errors = errors(graph);
    assert_eq!(errors.iter().map(|error| error.rule).collect::<Vec<_>>(), [Rule::V04, Rule::V04]);
}

#[test]
fn codes_are_the_rules_in_order() {
    let codes: Vec<_> = Rule::ALL.iter().map(|rule| rule.code().to_owned()).collect();
    let expected: Vec<_> = (1..=Rule::ALL.len()).map(|i| format!("V{i:02}")).collect();
    assert_eq!(codes, expected);
}

#[test]
fn a_constant_of_its_own_type_passes() {
    let mut b = GraphBuilder::new("g");
    b.one(Creation::Constant { value: Literal::from_i64s(&[1, 2]) }, &[]).expect("constants are well-typed");
    assert!(verify(b.finish()).is_ok());
}
