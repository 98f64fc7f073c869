//! The last step of lowering: what no output depends on goes, inputs come first, and get their roles.

use super::code;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use trainc_ir::op::Elementwise;
use trainc_ir::{Copier, Def, Diagnostic, Diagnostics, Graph, GraphBuilder, Input, InputRole, Op, OutputRole, ValueId};

/// Roles of inputs that lowering found out, by value.
pub(super) type Roles = BTreeMap<ValueId, InputRole>;

/// The graph without dead nodes and inputs: data first, then labels, then weights in order of first use.
pub(super) fn finish(graph: &Graph, roles: &Roles) -> Graph {
    let mut live_values: HashSet<ValueId> = graph.outputs.iter().map(|output| output.value).collect();
    let mut live_nodes = Vec::new();
    for (id, node) in graph.nodes.iter().rev() {
        if node.outputs.iter().any(|output| live_values.contains(output)) {
            live_nodes.push(id);
            live_values.extend(&node.inputs);
        }
    }
    let mut builder = GraphBuilder::new(graph.name.clone());
    let mut copier = Copier::new(graph);
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

/// Parameters that only feed sines and cosines: frequency tables of rotary embeddings, which no framework trains.
pub(super) fn frequency_tables(graph: &Graph) -> Vec<usize> {
    let users = graph.users();
    let is_table = |position: &usize| {
        let mut stack = vec![graph.inputs[*position].value];
        let mut seen = HashSet::new();
        let mut reaches_wave = false;
        while let Some(value) = stack.pop() {
            if !seen.insert(value) {
                continue;
            }
            for &user in &users[value] {
                match &graph.nodes[user].op {
                    Op::Elementwise(Elementwise::Sin | Elementwise::Cos) => reaches_wave = true,
                    Op::Elementwise(Elementwise::Mul | Elementwise::Cast { to: _ }) => {}
                    Op::Movement(_) | Op::Contraction(_) => {}
                    _ => return false,
                }
                if !matches!(graph.nodes[user].op, Op::Elementwise(Elementwise::Sin | Elementwise::Cos)) {
                    stack.extend(&graph.nodes[user].outputs);
                }
            }
        }
        reaches_wave
    };
    let parameters = (0..graph.inputs.len()).filter(|&i| graph.inputs[i].role == InputRole::Parameter);
    parameters.filter(is_table).collect()
}

/// Turns parameters into buffers, with a note on each.
pub(super) fn as_buffers(mut graph: Graph, positions: &[usize], diagnostics: &mut Vec<Diagnostic>) -> Graph {
    for &position in positions {
        let input = &mut graph.inputs[position];
        input.role = InputRole::Buffer;
        let text = format!("`{}` only feeds sines and cosines: it is taken as a table and not trained", input.name);
        diagnostics.push(Diagnostic::note(code::NOT_TRAINED, text));
    }
    graph
}

/// Running averages that something else than their own update reads: what it would see depends on when it runs.
/// `names` are those that several nodes update.
pub(super) fn shared_averages(graph: &Graph, mut names: BTreeSet<String>) -> Diagnostics {
    let users = graph.users();
    let updated = graph.outputs.iter().filter(|output| output.role == OutputRole::Updated);
    let shared = updated.filter(|output| {
        let own = graph.producer(output.value);
        let is_other = |input: &Input| users[input.value].iter().any(|&user| Some(user) != own);
        graph.input(&output.name).is_some_and(is_other) || !users[output.value].is_empty()
    });
    names.extend(shared.map(|output| output.name.clone()));
    let problem = |name: String| {
        let text = format!("the running average `{name}` is read or updated by more than one node");
        let help = "give every batch normalization of the model statistics of its own, and let nothing else read them";
        Diagnostic::error(code::UNSUPPORTED_FORM, text).with_help(help)
    };
    names.into_iter().map(problem).collect()
}

/// What to know of batch normalizations that do not use the batch's statistics.
pub(super) fn frozen_statistics(count: u64) -> Option<Diagnostic> {
    let text = match count {
        0 => return None,
        1 => "one batch normalization is in inference mode".to_owned(),
        n => format!("{n} batch normalizations are in inference mode"),
    };
    let text = format!("{text}: the stored statistics are used, and stay as they are");
    let help = "to train with the statistics of each micro-batch, export the model in training mode \
                (`torch.onnx.export(.., dynamo=False, training=TrainingMode.TRAINING)`)";
    Some(Diagnostic::note(code::FROZEN_STATISTICS, text).with_help(help))
}

/// The inputs that a value is a rearrangement of.
pub(super) fn roots(graph: &Graph, value: ValueId) -> Vec<ValueId> {
    let mut roots = Vec::new();
    let mut stack = vec![value];
    let mut seen = HashSet::new();
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
