//! Rules of types: V04 sizes, V06 inference, V09 attributes, V10 constant data.

use super::error::{Entity, Findings, Rule};
use crate::graph::{Def, Graph, Node, NodeId, ValueId};
use crate::op::{Attr, Literal, LiteralData, Op};
use crate::ty::{DType, Type};

pub(super) fn check(graph: &Graph, findings: &mut Findings) {
    sizes(graph, findings);
    for (id, node) in graph.nodes.iter() {
        inferred_types(graph, id, node, findings);
        attributes(id, &node.op, findings);
    }
}

/// Whether the size in bytes fits in 63 bits.
fn fits(ty: &Type) -> bool {
    let bytes = ty.checked_elements().and_then(|n| n.checked_mul(ty.dtype.bytes()));
    bytes.is_some_and(|bytes| i64::try_from(bytes).is_ok()) && ty.shape.iter().all(|&dim| i64::try_from(dim).is_ok())
}

/// V04.
fn sizes(graph: &Graph, findings: &mut Findings) {
    for (id, value) in graph.values.iter().filter(|(_, value)| !fits(&value.ty)) {
        let at = match value.def {
            Def::Input(position) => Entity::Input(position),
            Def::Result { node, index: _ } => Entity::Node(node),
        };
        findings.add(
            Rule::V04,
            at,
            format!("{id} has the type {}, whose dimensions or size in bytes do not fit in 63 bits", value.ty),
        );
    }
}

/// The types of values that exist and fit.
fn known_types<'a>(graph: &'a Graph, values: &[ValueId]) -> Option<Vec<&'a Type>> {
    values.iter().map(|&v| graph.values.get(v).map(|value| &value.ty).filter(|ty| fits(ty))).collect()
}

/// V06. Where operands break V01 or V04 there is nothing to infer from; the same holds for attributes and V09.
fn inferred_types(graph: &Graph, id: NodeId, node: &Node, findings: &mut Findings) {
    let (Some(inputs), Some(found)) = (known_types(graph, &node.inputs), known_types(graph, &node.outputs)) else {
        return;
    };
    if !reads_back(&node.op) {
        return;
    }
    let name = node.op.spelling();
    match node.op.infer(&inputs) {
        Err(message) => findings.add(Rule::V06, Entity::Node(id), format!("`{name}`: {message}")),
        Ok(expected) if expected.len() != found.len() => {
            let message = format!("results of `{name}`: expected {}, found {}", expected.len(), found.len());
            findings.add(Rule::V06, Entity::Node(id), message);
        }
        Ok(expected) => {
            for (value, (expected, found)) in node.outputs.iter().zip(expected.iter().zip(found)) {
                if expected != found {
                    let message = format!("{value} has the type {found}, but `{name}` gives {expected}");
                    findings.add(Rule::V06, Entity::Node(id), message);
                }
            }
        }
    }
}

fn reads_back(op: &Op) -> bool {
    let attrs = op.attrs();
    Op::from_attrs(op.spelling(), attrs.iter().map(|(name, attr)| (*name, attr))).as_ref() == Ok(op)
}

/// V09 and V10.
fn attributes(id: NodeId, op: &Op, findings: &mut Findings) {
    if !reads_back(op) {
        let message = format!("an attribute of `{}` holds a whole number of 2^63 or more", op.spelling());
        findings.add(Rule::V09, Entity::Node(id), message);
    }
    for (name, attr) in op.attrs() {
        if let Attr::Literal(literal) = &attr
            && let Some(message) = wrong_data(literal)
        {
            findings.add(Rule::V10, Entity::Node(id), format!("`{name}`: {message}"));
        }
    }
}

fn wrong_data(literal: &Literal) -> Option<String> {
    let element = literal.ty.dtype.bytes();
    let (data, expected) = match &literal.data {
        LiteralData::Splat(data) => (data, Some(element)),
        LiteralData::Dense(data) => (data, literal.ty.checked_elements().and_then(|n| n.checked_mul(element))),
    };
    if Some(data.len() as u64) != expected {
        let expected = expected.map_or("more than 2^64".to_owned(), |n| n.to_string());
        return Some(format!("{} needs {expected} bytes of data, found {}", literal.ty, data.len()));
    }
    let bad = data.iter().find(|&&byte| literal.ty.dtype == DType::Bool && byte > 1)?;
    Some(format!("a bool is 0 or 1, found {bad}"))
}
