//! Rules of structure: V01 existence, V02 single definition, V03 back links, V05 order, V07 and V08 names.

use super::error::{Entity, Findings, Rule};
use crate::graph::{Def, Graph, ValueId};
use crate::id::SideTable;
use std::collections::BTreeMap;

pub(super) fn check(graph: &Graph, findings: &mut Findings) {
    values_exist(graph, findings);
    defined_once(graph, findings);
    back_links(graph, findings);
    defined_before_use(graph, findings);
    unique_names(graph, findings);
}

/// Every place where a value is defined.
fn definitions(graph: &Graph) -> impl Iterator<Item = (Entity, Def, ValueId)> {
    let inputs = graph.inputs.iter().enumerate().map(|(i, input)| (Entity::Input(i), Def::Input(i), input.value));
    let results = graph.nodes.iter().flat_map(|(node, n)| {
        let result = move |(index, &value)| (Entity::Node(node), Def::Result { node, index }, value);
        n.outputs.iter().enumerate().map(result)
    });
    inputs.chain(results)
}

/// V01.
fn values_exist(graph: &Graph, findings: &mut Findings) {
    let uses = graph.nodes.iter().flat_map(|(id, node)| node.inputs.iter().map(move |&v| (Entity::Node(id), v)));
    let outputs = graph.outputs.iter().enumerate().map(|(i, output)| (Entity::Output(i), output.value));
    let named = definitions(graph).map(|(at, _, value)| (at, value)).chain(uses).chain(outputs);
    for (at, value) in named.filter(|(_, value)| graph.values.get(*value).is_none()) {
        findings.add(Rule::V01, at, format!("{value} does not exist; the graph has {} values", graph.values.len()));
    }
}

/// V02.
fn defined_once(graph: &Graph, findings: &mut Findings) {
    let mut first: SideTable<ValueId, Option<Entity>> = SideTable::new(None);
    for (at, _, value) in definitions(graph).filter(|(_, _, value)| graph.values.get(*value).is_some()) {
        match first[value] {
            Some(other) => findings.add(Rule::V02, at, format!("{value} is already defined by {other}")),
            None => first.set(value, Some(at)),
        }
    }
    for value in graph.values.ids().filter(|&value| first[value].is_none()) {
        findings.add(Rule::V02, Entity::Graph, format!("{value} is defined by no input and no node"));
    }
}

/// V03.
fn back_links(graph: &Graph, findings: &mut Findings) {
    for (id, value) in graph.values.iter() {
        let (place, found) = match value.def {
            Def::Input(position) => {
                (format!("input {position}"), graph.inputs.get(position).is_some_and(|input| input.value == id))
            }
            Def::Result { node, index } => {
                let result = graph.nodes.get(node).and_then(|node| node.outputs.get(index));
                (format!("result {index} of {node}"), result == Some(&id))
            }
        };
        if !found {
            findings.add(Rule::V03, Entity::Graph, format!("{id} calls {place} its definition, which is not so"));
        }
    }
}

/// V05. A value that does not exist is left to V01.
fn defined_before_use(graph: &Graph, findings: &mut Findings) {
    let mut defined = SideTable::new(false);
    for input in &graph.inputs {
        defined.set(input.value, true);
    }
    for (id, node) in graph.nodes.iter() {
        for (operand, &value) in node.inputs.iter().enumerate() {
            if graph.values.get(value).is_some() && !defined[value] {
                let message = format!("operand {operand} ({value}) is used before it is defined");
                findings.add(Rule::V05, Entity::Node(id), message);
            }
        }
        for &value in node.outputs.iter().filter(|&&value| graph.values.get(value).is_some()) {
            defined.set(value, true);
        }
    }
}

/// V07 and V08.
fn unique_names(graph: &Graph, findings: &mut Findings) {
    let inputs = graph.inputs.iter().map(|input| input.name.as_str());
    repeated(inputs, |i, first, name| {
        findings.add(Rule::V07, Entity::Input(i), format!("the name {name:?} is already that of input {first}"));
    });
    let outputs = graph.outputs.iter().map(|output| output.name.as_str());
    repeated(outputs, |i, first, name| {
        findings.add(Rule::V08, Entity::Output(i), format!("the name {name:?} is already that of output {first}"));
    });
}

/// Reports every name that was there before, with the position of the first.
fn repeated<'a>(names: impl Iterator<Item = &'a str>, mut report: impl FnMut(usize, usize, &str)) {
    let mut seen = BTreeMap::new();
    for (i, name) in names.enumerate() {
        let first = *seen.entry(name).or_insert(i);
        if first != i {
            report(i, first, name);
        }
    }
}
