//! Functions and subgraphs: inlined where which of them runs, and how often, is known at compile time.

use super::Rule;
use crate::onnx::call::{Call, Fail, Operand, Results};
use crate::onnx::code;
use crate::onnx::constant::Const;
use crate::onnx::index::{canonical_domain, index_graph};
use crate::onnx::lower::{Body, Lower, output_names};
use onnx_protobuf::{AttributeProto, FunctionProto, GraphProto, NodeProto};
use std::collections::{BTreeMap, HashMap};
use trainc_ir::DType;

/// Longest loop that is unrolled.
const MAX_TRIPS: i64 = 4096;

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "If" => branch,
        "Loop" => repeat,
        _ => return None,
    })
}

fn branch(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let condition = call.known(0, "condition")?.uniform_int().ok_or("its condition is not one value")?;
    let name = if condition != 0 { "then_branch" } else { "else_branch" };
    subgraph(lower, call.graph(name)?, Vec::new(), name.to_owned())
}

/// `v_initial -> carried values, scanned outputs`, unrolled.
fn repeat(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let body = call.graph("body")?;
    let trips = match call.known_if_given(0, "trip count")? {
        Some(known) => known.uniform_int().ok_or("its trip count is not one number")?,
        None => i64::MAX,
    };
    let mut goes_on = match call.known_if_given(1, "condition")? {
        Some(known) => known.uniform_int().ok_or("its condition is not one value")? != 0,
        None => true,
    };
    let mut carried = (2..call.inputs.len()).map(|slot| call.input(slot).cloned()).collect::<Result<Vec<_>, _>>()?;
    let n_carried = carried.len();
    let n_scanned = body.output.len().checked_sub(n_carried + 1).ok_or("its body has too few outputs")?;
    let mut scanned: Vec<Vec<Operand>> = vec![Vec::new(); n_scanned];
    let mut trip = 0;
    while trip < trips && goes_on {
        if trip >= MAX_TRIPS {
            return Err(Fail::form(format!("a loop of more than {MAX_TRIPS} rounds")));
        }
        let mut arguments = vec![Const::scalar_int(DType::I64, trip).into(), Const::scalar_int(DType::Bool, 1).into()];
        arguments.append(&mut carried);
        let mut results = subgraph(lower, body, arguments, format!("body.{trip}"))?;
        let condition = results.remove(0);
        goes_on = condition.known().and_then(Const::uniform_int).ok_or_else(|| {
            Fail::new(code::DATA_DEPENDENT, "the condition of its next round is known only at run time")
        })? != 0;
        for (all, one) in scanned.iter_mut().zip(results.split_off(n_carried)) {
            all.push(one);
        }
        carried = results;
        trip += 1;
    }
    for all in scanned {
        let mut rounds = Vec::new();
        for one in &all {
            let shape = lower.shape(one);
            rounds.push(lower.reshape(one, &[&[1], &shape[..]].concat())?);
        }
        if rounds.is_empty() {
            return Err(Fail::form("a loop of no rounds with scanned outputs"));
        }
        carried.push(lower.concat(&rounds.iter().collect::<Vec<_>>(), 0)?);
    }
    Ok(carried)
}

fn subgraph(lower: &mut Lower<'_>, graph: &GraphProto, arguments: Vec<Operand>, scope: String) -> Results {
    let indexed = index_graph(graph, &|_| true).map_err(|problems| first(&problems))?;
    if indexed.inputs.len() != arguments.len() {
        let (found, expected) = (arguments.len(), indexed.inputs.len());
        return Err(Fail::new(code::BAD_ARITY, format!("its body takes {expected} inputs, found {found}")));
    }
    let names = indexed.inputs.iter().map(|input| input.name.clone());
    let arguments: HashMap<String, Operand> = names.zip(arguments).collect();
    lower.body(Body {
        nodes: &graph.node,
        order: &indexed.order,
        initializers: &graph.initializer,
        arguments,
        outputs: output_names(graph),
        scope,
        opsets: None,
        sees_outer: true,
    })
}

fn first(problems: &[trainc_ir::Diagnostic]) -> Fail {
    match problems.first() {
        Some(problem) => Fail::new(problem.code, problem.message.clone()),
        None => Fail::new(code::MISSING_VALUE, "its body is not a graph"),
    }
}

/// Lowers the body of a function of the model in place of a call.
pub(in crate::onnx) fn inline_function(lower: &mut Lower<'_>, call: &Call<'_>, function: usize, name: &str) -> Results {
    let model = lower.model;
    let function = &model.raw.proto.functions[function];
    let nodes: Vec<NodeProto> = function.node.iter().map(|node| with_attributes(node, function, call.node)).collect();
    let graph = GraphProto { node: nodes, ..Default::default() };
    let indexed = index_graph(&graph, &|name| function.input.iter().any(|input| input == name));
    let indexed = indexed.map_err(|problems| first(&problems))?;
    let arguments = function.input.iter().zip(&call.inputs);
    let arguments = arguments.filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect();
    let opsets: BTreeMap<String, i64> = function
        .opset_import
        .iter()
        .map(|import| (canonical_domain(&import.domain).to_owned(), import.version))
        .collect();
    let short = name.rsplit('/').next().unwrap_or(name);
    lower.body(Body {
        nodes: &graph.node,
        order: &indexed.order,
        initializers: &[],
        arguments,
        outputs: function.output.iter().map(String::as_str).collect(),
        scope: short.to_owned(),
        opsets: Some(opsets),
        sees_outer: false,
    })
}

/// A node of a function body with the call's attributes, or the function's defaults, in place of references to them.
fn with_attributes(node: &NodeProto, function: &FunctionProto, call: &NodeProto) -> NodeProto {
    let mut node = node.clone();
    node.attribute = node.attribute.iter().filter_map(|attribute| resolved(attribute, function, call)).collect();
    node
}

fn resolved(attribute: &AttributeProto, function: &FunctionProto, call: &NodeProto) -> Option<AttributeProto> {
    let mut attribute = if attribute.ref_attr_name.is_empty() {
        attribute.clone()
    } else {
        let wanted = &attribute.ref_attr_name;
        let given = call.attribute.iter().chain(&function.attribute_proto).find(|given| given.name == *wanted)?;
        AttributeProto { name: attribute.name.clone(), ..given.clone() }
    };
    if let Some(graph) = attribute.g.as_mut() {
        for node in &mut graph.node {
            *node = with_attributes(node, function, call);
        }
    }
    Some(attribute)
}
