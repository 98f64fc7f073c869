//! The loss that the model computes itself, taken apart into a sum and a count.

use super::attach::{reshape, terms};
use super::{Terms, codes, extend, is_integer};
use trainc_ir::id::SideTable;
use trainc_ir::op::{Elementwise, Loss, Movement, ReduceKind, Reduction};
use trainc_ir::{Def, Diagnostic, Diagnostics, Graph, InputRole, NodeId, Op, Output, OutputRole, Place, ValueId};

/// The model's own loss; `None` where it computes none.
pub(super) fn take(graph: &mut Graph, notes: &mut Vec<Diagnostic>) -> Result<Option<Terms>, Diagnostics> {
    let role = |role| graph.outputs.iter().find(|o| o.role == role).map(|o| o.value);
    if let (Some(sum), Some(count)) = (role(OutputRole::LossSum), role(OutputRole::LossCount)) {
        return Ok(Some(Terms { sum, count }));
    }
    let Some(output) = find(graph)?.cloned() else { return Ok(None) };
    let loss = through(graph, output.value);
    if let Some(terms) = quotient(graph, loss) {
        mark_labels(graph, terms.sum);
        return Ok(Some(terms));
    }
    if let Some((rows, count)) = mean(graph, loss) {
        return Ok(Some(extend(graph, |b| terms(b, rows, count))));
    }
    let place = Place::Model { kind: "output", name: output.name.clone() };
    let message = format!("the loss `{}` is averaged over micro-batches with equal weights", output.name);
    notes.push(
        Diagnostic::note(codes::MEAN_LOSS, message)
            .at(place, "not a quotient of a sum and a count")
            .with_note("the result depends on the number of micro-batches where they hold different numbers of terms"),
    );
    Ok(Some(extend(graph, |b| {
        let scalar = reshape(b, output.value, Vec::new());
        terms(b, scalar, 1)
    })))
}

/// The output that is the loss: a float scalar, the one called so where there are several.
fn find(graph: &Graph) -> Result<Option<&Output>, Diagnostics> {
    let scalar = |o: &&Output| {
        let ty = graph.ty(o.value);
        ty.dtype.is_float() && ty.elements() == 1
    };
    let scalars: Vec<&Output> = graph.outputs.iter().filter(scalar).collect();
    if let Some(named) = scalars.iter().find(|o| o.name == "loss") {
        return Ok(Some(named));
    }
    let alike: Vec<_> = scalars.iter().filter(|o| o.name.to_lowercase().ends_with("loss")).collect();
    match (&alike[..], &scalars[..]) {
        ([only], _) => Ok(Some(only)),
        (_, [only]) => Ok(Some(only)),
        (_, []) => Ok(None),
        (_, several) => {
            let names: Vec<_> = several.iter().map(|o| format!("`--loss sum:{}`", o.name)).collect();
            let message = format!("{} outputs of the model could be the loss", several.len());
            Err(vec![
                Diagnostic::error(codes::AMBIGUOUS_LOSS, message)
                    .with_help(format!("say which one: {}", names.join(" or "))),
            ])
        }
    }
}

/// The value behind casts and reshapes.
fn through(graph: &Graph, mut value: ValueId) -> ValueId {
    while let Some(node) = graph.producer(value) {
        let node = &graph.nodes[node];
        let cast = matches!(node.op, Op::Elementwise(Elementwise::Cast { to: _ }));
        if !cast && !matches!(node.op, Op::Movement(Movement::Reshape { shape: _ })) {
            break;
        }
        value = node.inputs[0];
    }
    value
}

/// `sum / count` of one cross-entropy.
fn quotient(graph: &Graph, loss: ValueId) -> Option<Terms> {
    let node = &graph.nodes[graph.producer(loss)?];
    let Op::Elementwise(Elementwise::Div) = node.op else { return None };
    let (sum, count) = (through(graph, node.inputs[0]), through(graph, node.inputs[1]));
    let (of_sum, of_count) = (result_of(graph, sum)?, result_of(graph, count)?);
    let same = of_sum.0 == of_count.0 && (of_sum.1, of_count.1) == (0, 1);
    let is_loss = matches!(graph.nodes[of_sum.0].op, Op::Loss(Loss::CrossEntropy { ignore_index: _ }));
    (same && is_loss).then_some(Terms { sum, count })
}

fn result_of(graph: &Graph, value: ValueId) -> Option<(NodeId, usize)> {
    match graph.values[value].def {
        Def::Result { node, index } => Some((node, index)),
        Def::Input(_) => None,
    }
}

/// A mean over all elements: what it averages and how many those are.
fn mean(graph: &Graph, loss: ValueId) -> Option<(ValueId, u64)> {
    let node = &graph.nodes[graph.producer(loss)?];
    let Op::Reduction(Reduction::Reduce { kind: ReduceKind::Mean, axes, keep: _ }) = &node.op else { return None };
    let ty = graph.ty(node.inputs[0]);
    (axes.len() == ty.rank()).then(|| (node.inputs[0], ty.elements()))
}

/// Integer inputs that the labels of a cross-entropy depend on, and its logits do not, are labels.
fn mark_labels(graph: &mut Graph, sum: ValueId) {
    let Some((node, _)) = result_of(graph, sum) else { return };
    let (logits, labels) = (graph.nodes[node].inputs[0], graph.nodes[node].inputs[1]);
    let (of_logits, of_labels) = (ancestors(graph, logits), ancestors(graph, labels));
    for i in 0..graph.inputs.len() {
        let (value, role) = (graph.inputs[i].value, graph.inputs[i].role);
        if role == InputRole::Data && is_integer(graph, value) && of_labels[value] && !of_logits[value] {
            graph.inputs[i].role = InputRole::Label;
        }
    }
}

fn ancestors(graph: &Graph, value: ValueId) -> SideTable<ValueId, bool> {
    let mut seen = SideTable::new(false);
    seen.set(value, true);
    for node in graph.nodes.values().rev() {
        if node.outputs.iter().any(|&v| seen[v]) {
            for &input in &node.inputs {
                seen.set(input, true);
            }
        }
    }
    seen
}
