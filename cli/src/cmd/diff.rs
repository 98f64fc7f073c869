//! `trainc diff`: what differs between two plans, and whether that is more than allowed.

use crate::args::DiffArgs;
use crate::output::Output;
use trainc::{Condition, Failure, FailureKind, diff};

/// Compares two plans.
pub(crate) fn run(args: &DiffArgs, output: Output) -> Result<(), Failure> {
    let conditions = args.fail_if.iter().map(|text| text.parse()).collect::<Result<Vec<Condition>, _>>()?;
    let found = diff(&args.before, &args.after)?;
    let failed: Vec<_> = conditions.iter().filter_map(|one| one.check(&found).map(|why| (one, why))).collect();
    if found.differences.is_empty() {
        output.report("no differences\n");
    } else {
        let lines: Vec<String> = found.differences.iter().map(|of| format!("  {}\n", of.text)).collect();
        output.report(&format!("from {} to {}\n{}", args.before.display(), args.after.display(), lines.concat()));
    }
    for of in &found.differences {
        output.object(&serde_json::to_value(of).expect("a difference holds texts and numbers only"));
    }
    let texts: Vec<String> = failed.iter().map(|(condition, _)| condition.to_string()).collect();
    output.object(&serde_json::json!({ "differences": found.differences.len(), "failed": texts }));
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure {
            kind: FailureKind::Input,
            diagnostics: failed.into_iter().map(|(_, diagnostic)| diagnostic).collect(),
        }),
    }
}
