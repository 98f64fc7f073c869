//! The loss of a model that computes none, where there is only one that its user can mean: a language model's.

use super::attach::{cross_entropy, next_tokens};
use super::{Terms, codes, integer_data};
use trainc_ir::{Diagnostic, Diagnostics, Graph, Output};

/// Attaches the next token's cross-entropy to the one output of logits.
pub(super) fn take(graph: &mut Graph, notes: &mut Vec<Diagnostic>) -> Result<Terms, Diagnostics> {
    let is_logits = |o: &&Output| {
        let shape = &graph.ty(o.value).shape;
        graph.ty(o.value).dtype.is_float() && shape.len() == 3 && next_tokens(graph, &shape[..2]).is_some()
    };
    let candidates: Vec<&Output> = graph.outputs.iter().filter(is_logits).collect();
    let named: Vec<&Output> = candidates.iter().copied().filter(|o| o.name.ends_with("logits")).collect();
    let name = match (&named[..], &candidates[..]) {
        ([only], _) | ([], [only]) => only.name.clone(),
        _ => return Err(vec![missing(graph)]),
    };
    let tokens = integer_data(graph).next().map(|input| input.name.clone()).unwrap_or_default();
    let message = format!("the loss is the cross-entropy of `{name}` against the next token of `{tokens}`");
    notes.push(
        Diagnostic::note(codes::ASSUMED_LOSS, message)
            .with_help(format!("say so with `--loss cross-entropy:{name}`, or name another loss")),
    );
    cross_entropy(graph, &name, notes)
}

fn missing(graph: &Graph) -> Diagnostic {
    let floats = graph.outputs.iter().filter(|o| graph.ty(o.value).dtype.is_float());
    let mut options = Vec::new();
    for output in floats {
        let (name, ty) = (&output.name, graph.ty(output.value));
        if ty.rank() >= 2 {
            options.push(format!("--loss cross-entropy:{name}"));
        }
        options.push(format!("--loss mse:{name}"));
        options.push(format!("--loss sum:{name}"));
    }
    let outputs: Vec<_> = graph.outputs.iter().map(|o| format!("`{}` ({})", o.name, graph.ty(o.value))).collect();
    let problem =
        Diagnostic::error(codes::MISSING_LOSS, "the model computes no loss, and it is not clear which one is meant")
            .with_note(format!("outputs of the model: {}", outputs.join(", ")));
    match options.is_empty() {
        true => problem.with_help("export the model with an output of floats that can be trained"),
        false => problem.with_help(format!("give one of: {}", options.join(", "))),
    }
}
