//! Operators that no rule knows: all of them reported at once, and kept as opaque where their types are declared.

use super::bind::Bound;
use super::call::{Call, Fail, Operand};
use super::code;
use super::index::{Dim, IndexedModel, canonical_domain, node_name, subgraphs};
use super::lower::{Lower, MAX_DEPTH};
use super::ops;
use onnx_protobuf::NodeProto;
use std::collections::{BTreeMap, BTreeSet};
use trainc_ir::op::Opaque;
use trainc_ir::{Diagnostic, Diagnostics, Type};

/// How many node names a message shows.
const SHOWN: usize = 3;

#[derive(Default)]
struct Found {
    nodes: Vec<String>,
    typed: bool,
}

/// One diagnostic for every operator that no rule knows: a warning where all its results have declared types.
pub(super) fn unsupported(model: &IndexedModel, bound: &Bound, live: &[bool]) -> Diagnostics {
    let mut found: BTreeMap<(String, String), Found> = BTreeMap::new();
    let mut functions = BTreeSet::new();
    let nodes = &model.raw.proto.graph.node;
    for &position in model.graph.order.iter().filter(|&&position| live[position]) {
        let node = &nodes[position];
        let typed =
            node.output.iter().filter(|name| !name.is_empty()).all(|name| declared_type(model, bound, name).is_some());
        visit(model, node, (&node_name(node, position), 0), typed, &mut found, &mut functions);
    }
    found
        .into_iter()
        .map(|((domain, op), found)| {
            let domain = if domain.is_empty() { String::new() } else { format!(" of domain `{domain}`") };
            let count = found.nodes.len();
            let text = format!("operator `{op}`{domain} is not supported (nodes: {count})");
            let shown: Vec<String> = found.nodes.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
            let more = if count > SHOWN { ", ..." } else { "" };
            let diagnostic = if found.typed {
                Diagnostic::warning(code::OPAQUE_OP, format!("{text}: the model can be estimated but not trained"))
            } else {
                Diagnostic::error(code::UNSUPPORTED_OP, text)
                    .with_help("the model declares no types for its results, so it cannot be estimated either")
            };
            diagnostic.with_note(format!("at {}{more}", shown.join(", ")))
        })
        .collect()
}

/// Looks at a node, and at those of its subgraphs and of the function that it calls. What is nested too deep is left to
/// lowering, which refuses it.
fn visit(
    model: &IndexedModel,
    node: &NodeProto,
    (name, depth): (&str, usize),
    typed: bool,
    found: &mut BTreeMap<(String, String), Found>,
    functions: &mut BTreeSet<usize>,
) {
    if depth > MAX_DEPTH {
        return;
    }
    let domain = canonical_domain(&node.domain);
    let key = (domain.to_owned(), node.op_type.clone(), node.overload.clone());
    if ops::rule(domain, &node.op_type).is_none() {
        match model.functions.get(&key) {
            Some(&function) => {
                if functions.insert(function) {
                    for (position, inner) in model.raw.proto.functions[function].node.iter().enumerate() {
                        let inner_name = format!("{name}/{}", node_name(inner, position));
                        visit(model, inner, (&inner_name, depth + 1), false, found, functions);
                    }
                }
            }
            None => {
                let entry = found
                    .entry((domain.to_owned(), node.op_type.clone()))
                    .or_insert_with(|| Found { nodes: Vec::new(), typed: true });
                entry.nodes.push(name.to_owned());
                entry.typed &= typed;
            }
        }
    }
    for graph in subgraphs(node) {
        for (position, inner) in graph.node.iter().enumerate() {
            let inner_name = format!("{name}/{}", node_name(inner, position));
            visit(model, inner, (&inner_name, depth + 1), false, found, functions);
        }
    }
}

/// The node as an opaque operator with the types that the model declares for its results.
pub(super) fn opaque(lower: &mut Lower<'_>, call: &Call<'_>) -> Result<Vec<Operand>, Fail> {
    let types = call
        .node
        .output
        .iter()
        .filter(|name| !name.is_empty())
        .map(|name| declared_type(lower.model, lower.bound, name))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| Fail::new(code::UNSUPPORTED_OP, "no rule knows it and its results have no declared types"))?;
    let inputs: Vec<&Operand> = call.inputs.iter().flatten().collect();
    let mut results = lower.emit(Opaque::Opaque { name: call.node.op_type.clone(), types }, &inputs)?.into_iter();
    let unnamed = || Operand::from(super::constant::Const::scalar_int(trainc_ir::DType::I64, 0));
    Ok(call
        .node
        .output
        .iter()
        .map(|name| if name.is_empty() { unnamed() } else { results.next().map_or_else(unnamed, Operand::from) })
        .collect())
}

/// The type that the model declares for a value: a hint, used only where no rule gives a type.
fn declared_type(model: &IndexedModel, bound: &Bound, name: &str) -> Option<Type> {
    let declared =
        model.graph.hints.get(name).or_else(|| model.graph.outputs.iter().find(|output| output.name == name))?;
    let dtype = declared.dtype.clone().ok()?;
    let number = |dim: &Dim| match dim {
        Dim::Fixed(value) => Some(*value),
        Dim::Symbol(symbol) => bound.symbols.get(symbol).copied(),
        Dim::Unknown => None,
    };
    Some(Type::new(dtype, declared.dims.as_ref()?.iter().map(number).collect::<Option<Vec<_>>>()?))
}
