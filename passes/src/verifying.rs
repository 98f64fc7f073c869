//! Verification between passes, as diagnostics that say whose fault it is.

use trainc_ir::{Diagnostic, Diagnostics, Graph, Place};

/// The code of a pass that breaks its graph: a bug of trainc.
pub(crate) const BROKEN_PASS: &str = "E0590";
/// The code of a graph that is not valid to begin with.
pub(crate) const BROKEN_INPUT: &str = "E0591";

/// Verifies the graph that a pipeline starts from.
pub(crate) fn input(graph: &mut Graph) -> Result<(), Diagnostics> {
    check(graph).map_err(|errors| {
        let message = |(at, text)| {
            Diagnostic::error(BROKEN_INPUT, format!("the graph is not valid: {text}")).at(Place::Entity(at), "here")
        };
        errors.into_iter().map(message).collect()
    })
}

/// Verifies what a pass has made.
pub(crate) fn output(pass: &str, graph: &mut Graph) -> Result<(), Diagnostics> {
    check(graph).map_err(|errors| {
        let message = |(at, text)| {
            Diagnostic::error(BROKEN_PASS, format!("the pass `{pass}` left a graph that is not valid: {text}"))
                .at(Place::Entity(at), "here")
                .with_help(format!("this is a bug of trainc; `--print-after {pass}` shows the graph"))
        };
        errors.into_iter().map(message).collect()
    })
}

/// Every violation: where and what.
fn check(graph: &mut Graph) -> Result<(), Vec<(String, String)>> {
    let mut errors = Vec::new();
    for (id, node) in graph.nodes.iter() {
        match node.op.infer(&graph.types(&node.inputs)) {
            Ok(types) if types.iter().eq(graph.types(&node.outputs)) => {}
            Ok(_) => errors.push((id.to_string(), "the results have other types than the operator's rule".to_owned())),
            Err(text) => errors.push((id.to_string(), text)),
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}
