//! `plan.json`: written from the plan's own serde form, read with the place of everything that is wrong.

use super::codes::BAD_PLAN;
use super::layout::PlanFormatter;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use trainc_ir::Diagnostic;
use trainc_ir::plan::Plan;

/// The JSON form of a plan, with one instruction, buffer or kernel per line.
pub fn plan_to_json(plan: &Plan) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, PlanFormatter::default());
    plan.serialize(&mut serializer).expect("a plan holds nothing that JSON cannot spell");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

/// Reads a plan from text that is known to be JSON of the right format.
pub(super) fn plan_from_json(text: &[u8], document: &Value) -> Result<Plan, Diagnostic> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut deserializer, &mut track);
    let plan = Plan::deserialize(tracked).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(before, _)| before);
        bad_plan(format!("at `{}`, line {line}, column {column}: {message}", track.path()))
    })?;
    let written = serde_json::to_value(&plan).expect("a plan holds nothing that JSON cannot spell");
    match unknown_field(document, &written, String::new()) {
        Some(path) => Err(bad_plan(format!("at `{}`: unknown field", path.trim_start_matches('.')))),
        None => Ok(plan),
    }
}

pub(super) fn bad_plan(what: String) -> Diagnostic {
    Diagnostic::error(BAD_PLAN, what).with_help("compile the model again; a plan is not meant to be edited by hand")
}

/// The first field of a document that reading it did not understand: it is missing when written again. Some of the
/// plan's forms hold their fields beside those of others, where serde cannot refuse unknown ones.
fn unknown_field(read: &Value, written: &Value, path: String) -> Option<String> {
    match (read, written) {
        (Value::Object(read), Value::Object(written)) => read.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            match written.get(name) {
                Some(written) => unknown_field(value, written, path),
                // What is left out where it says nothing may also be spelled out.
                None if value.is_null() || value.as_array().is_some_and(Vec::is_empty) => None,
                None if value.as_object().is_some_and(serde_json::Map::is_empty) => None,
                None => Some(path),
            }
        }),
        (Value::Array(read), Value::Array(written)) => {
            let pairs = read.iter().zip(written).enumerate();
            pairs.into_iter().find_map(|(index, (a, b))| unknown_field(a, b, format!("{path}[{index}]")))
        }
        (Value::Object(_) | Value::Array(_), _) => Some(path),
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => None,
    }
}
