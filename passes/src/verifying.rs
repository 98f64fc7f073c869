//! Verification between passes, as diagnostics that say whose fault it is.

use trainc_ir::{Diagnostic, Diagnostics, Graph, InputRole, OutputRole, Place, verify};

/// The code of a pass that breaks its graph: a bug of trainc.
pub const BROKEN_PASS: &str = "E0590";
/// The code of a graph that is not valid to begin with.
pub(crate) const BROKEN_INPUT: &str = "E0591";

/// Verifies the graph that a pipeline starts from.
pub(crate) fn input(graph: &mut Graph) -> Result<(), Diagnostics> {
    check(graph).and_then(|()| updates_buffers(graph)).map_err(|errors| {
        let message = |(at, text)| {
            Diagnostic::error(BROKEN_INPUT, format!("the graph is not valid: {text}")).at(Place::Entity(at), "here")
        };
        errors.into_iter().map(message).collect()
    })
}

/// What a step leaves for the next one is known by the name of the buffer that it replaces.
fn updates_buffers(graph: &Graph) -> Result<(), Vec<(String, String)>> {
    let is_buffer = |name: &str| graph.input(name).is_some_and(|input| input.role == InputRole::Buffer);
    let updated = graph.outputs.iter().filter(|output| output.role == OutputRole::Updated);
    let nameless = updated.filter(|output| !is_buffer(&output.name)).map(|output| {
        let text = format!("the updated output `{}` has the name of no buffer among the inputs", output.name);
        (output.value.to_string(), text)
    });
    let nameless: Vec<(String, String)> = nameless.collect();
    if nameless.is_empty() { Ok(()) } else { Err(nameless) }
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
    match verify(std::mem::take(graph)) {
        Ok(verified) => {
            *graph = verified.into_inner();
            Ok(())
        }
        Err((broken, errors)) => {
            *graph = broken;
            Err(errors.into_iter().map(|e| (e.at.to_string(), e.to_string())).collect())
        }
    }
}
