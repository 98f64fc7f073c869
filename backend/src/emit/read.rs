//! Reads plans in either form; whatever the bytes are, it answers with a plan or with what is wrong.

use super::codes::{NOT_A_PLAN, TOO_LARGE, TRUNCATED, UNKNOWN_FORMAT};
use super::json::plan_from_json;
use super::protobuf::{plan_from_protobuf, version};
use serde_json::Value;
use serde_json::error::Category;
use trainc_ir::plan::{FORMAT, Plan};
use trainc_ir::{Diagnostic, Diagnostics};

/// Plans are a few megabytes; this bounds what reading one may cost.
const MAX_BYTES: usize = 1 << 30;

/// Reads a plan. `name` is the file as the user named it; the form is told from the content.
///
/// # Errors
/// What is wrong with the file.
pub fn read_plan(bytes: &[u8], name: &str) -> Result<Plan, Diagnostics> {
    let read = if bytes.len() > MAX_BYTES {
        let message = format!("expected at most {MAX_BYTES} bytes, found {}", bytes.len());
        Err(Diagnostic::error(TOO_LARGE, message))
    } else if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{') {
        json(bytes)
    } else {
        protobuf(bytes)
    };
    read.map_err(|mut diagnostic| {
        diagnostic.message = format!("cannot read the plan `{name}`: {}", diagnostic.message);
        vec![diagnostic]
    })
}

fn json(bytes: &[u8]) -> Result<Plan, Diagnostic> {
    let document: Value = serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        Category::Eof => truncated(),
        Category::Syntax | Category::Data | Category::Io => not_a_plan(&error.to_string()),
    })?;
    match document.get("format") {
        Some(Value::Number(number)) => format(number.as_u64().unwrap_or(0))?,
        Some(_) | None => return Err(not_a_plan("it does not say its format")),
    }
    plan_from_json(bytes, &document)
}

fn protobuf(bytes: &[u8]) -> Result<Plan, Diagnostic> {
    match version(bytes) {
        Some(found) => format(u64::from(found))?,
        None => return Err(not_a_plan("it does not begin as one")),
    }
    plan_from_protobuf(bytes)
}

fn format(found: u64) -> Result<(), Diagnostic> {
    let known = u64::from(FORMAT);
    if found == known {
        return Ok(());
    }
    let message = if found > known {
        format!("it was written by a newer trainc, format {found}; this one reads up to {known}")
    } else {
        format!("expected format {known}, found {found}")
    };
    let help = if found > known { "update trainc, or compile the model again" } else { "compile the model again" };
    Err(Diagnostic::error(UNKNOWN_FORMAT, message).with_help(help))
}

fn not_a_plan(why: &str) -> Diagnostic {
    let help = "give the plan.json or plan.pb of an output directory of `trainc compile`";
    Diagnostic::error(NOT_A_PLAN, format!("it is no plan: {why}")).with_help(help)
}

/// The file ends too early.
pub(super) fn truncated() -> Diagnostic {
    Diagnostic::error(TRUNCATED, "the file ends too early").with_help("compile the model again")
}
