//! The last step of lowering: what no output depends on goes, inputs come first, and get their roles.

use std::collections::BTreeMap;
use trainc_ir::{Copier, Def, Graph, GraphBuilder, InputRole, ValueId};

/// Roles of inputs that lowering found out, by value.
pub(super) type Roles = BTreeMap<ValueId, InputRole>;

/// The graph without dead nodes and inputs: data first, then labels, then weights in order of first use.
pub(super) fn finish(graph: Graph, roles: &Roles) -> Graph {
    let mut live_values: std::collections::HashSet<ValueId> = graph.outputs.iter().map(|output| output.value).collect();
    let mut live_nodes = Vec::new();
    for (id, node) in graph.nodes.iter().rev() {
        if node.outputs.iter().any(|output| live_values.contains(output)) {
            live_nodes.push(id);
            live_values.extend(&node.inputs);
        }
    }
    let mut builder = GraphBuilder::new(graph.name.clone());
    let mut copier = Copier::new(&graph);
    let role = |position: usize| {
        let input = &graph.inputs[position];
        roles.get(&input.value).copied().unwrap_or(input.role)
    };
    let mut order: Vec<usize> =
        (0..graph.inputs.len()).filter(|&i| live_values.contains(&graph.inputs[i].value)).collect();
    order.sort_by_key(|&position| role(position) >= InputRole::Parameter);
    for position in order {
        let input = &graph.inputs[position];
        let value = builder.input(input.name.clone(), role(position), graph.ty(input.value).clone());
        copier.set(input.value, value);
    }
    for &node in live_nodes.iter().rev() {
        copier.node(node, &mut builder);
    }
    copier.outputs(&mut builder);
    builder.finish()
}

/// The inputs that a value is a rearrangement of.
pub(super) fn roots(graph: &Graph, value: ValueId) -> Vec<ValueId> {
    let mut roots = Vec::new();
    let mut stack = vec![value];
    let mut seen = std::collections::HashSet::new();
    while let Some(value) = stack.pop() {
        if !seen.insert(value) {
            continue;
        }
        match graph.values[value].def {
            Def::Input(_) => roots.push(value),
            Def::Result { node, index: _ } => stack.extend(&graph.nodes[node].inputs),
        }
    }
    roots.sort_unstable();
    roots
}
