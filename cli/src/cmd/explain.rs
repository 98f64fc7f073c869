//! `trainc explain`: what a diagnostic code or a rule of a verifier means.

use crate::args::ExplainArgs;
use crate::output::Output;
use trainc::{Failure, UNKNOWN_CODE, codes, rules};
use trainc_ir::Diagnostic;

/// Prints the meaning of one code or rule, or of all.
pub(crate) fn run(args: &ExplainArgs, output: Output) -> Result<(), Failure> {
    let of_codes = codes().into_iter().map(|(code, meaning)| (code.to_owned(), meaning));
    let all: Vec<(String, &str)> = of_codes.chain(rules()).collect();
    let Some(wanted) = &args.code else {
        let lines: Vec<String> = all.iter().map(|(code, meaning)| format!("{code:<5}  {meaning}\n")).collect();
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
            let message = format!("no diagnostic or rule has the code `{wanted}`");
            let help = "`trainc explain` without a code lists all of them";
            Err(Failure::usage(Diagnostic::error(UNKNOWN_CODE, message).with_help(help)))
        }
    }
}
