//! `trainc explain`: what a diagnostic code means.

use crate::args::ExplainArgs;
use crate::output::Output;
use trainc::{Failure, UNKNOWN_CODE, codes};
use trainc_ir::Diagnostic;

/// Prints the meaning of one code, or of all.
pub(crate) fn run(args: &ExplainArgs, output: Output) -> Result<(), Failure> {
    let all = codes();
    let Some(wanted) = &args.code else {
        let lines: Vec<String> = all.iter().map(|(code, meaning)| format!("{code}  {meaning}\n")).collect();
        output.asked(&lines.concat());
        return Ok(());
    };
    let code = wanted.trim().to_uppercase();
    match all.iter().find(|(known, _)| *known == code) {
        Some((code, meaning)) => {
            output.asked(&format!("{code}: {meaning}\n"));
            Ok(())
        }
        None => {
            let message = format!("no diagnostic has the code `{wanted}`");
            let help = "`trainc explain` without a code lists all of them";
            Err(Failure::usage(Diagnostic::error(UNKNOWN_CODE, message).with_help(help)))
        }
    }
}
