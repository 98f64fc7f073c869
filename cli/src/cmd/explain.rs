//! `trainc explain`: what a diagnostic code or a rule of a verifier means.

use crate::args::ExplainArgs;
use crate::output::Output;
use trainc::{Explanation, Failure, UNKNOWN_CODE, codes, explanations, rules};
use trainc_ir::Diagnostic;

/// Prints the explanation of one code or rule, or the meaning of all.
pub(crate) fn run(args: &ExplainArgs, output: Output) -> Result<(), Failure> {
    let explanations = explanations();
    let of_codes = codes().into_iter().map(|(code, meaning)| {
        let explanation = explanations.get(code).copied().unwrap_or_default();
        (code.to_owned(), meaning, explanation)
    });
    let of_rules = rules().into_iter().map(|(rule, meaning)| {
        let explanation = of_rule(&rule);
        (rule, meaning, explanation)
    });
    let mut all = of_codes.chain(of_rules);
    let Some(wanted) = &args.code else {
        for (code, meaning, explanation) in all {
            if output.is_json() {
                output.object(&object(&code, meaning, explanation));
            } else {
                output.asked(&format!("{code:<5}  {meaning}\n"));
            }
        }
        return Ok(());
    };
    let code = wanted.trim().to_uppercase();
    // The number alone is enough, and the letter may be another: the severity of a code may change.
    let number = code.trim_start_matches(['E', 'W', 'N']);
    let same = |known: &str| known == code || (number.len() == 4 && known.get(1..) == Some(number));
    match all.find(|(known, _, _)| same(known)) {
        Some((code, meaning, explanation)) => {
            let Explanation { why, fix, example } = explanation;
            if output.is_json() {
                output.object(&object(&code, meaning, explanation));
            } else {
                output.asked(&format!(
                    "{code}: {meaning}\n\nwhy it matters: {why}\nhow to fix it: {fix}\nexample: {example}\n"
                ));
            }
            Ok(())
        }
        None => {
            let message = format!("no diagnostic or rule has the code `{wanted}`");
            let help = "`trainc explain` without a code lists all of them";
            Err(Failure::usage(Diagnostic::error(UNKNOWN_CODE, message).with_help(help)))
        }
    }
}

/// Rules are broken in one of two ways each.
fn of_rule(rule: &str) -> Explanation {
    if rule.starts_with('P') {
        Explanation {
            why: "a plan is only run when it provably computes a training step of its model; this rule is a part of the proof",
            fix: "compile the model again; if nobody changed the plan, please report it",
            example: "a plan.json that was edited by hand",
        }
    } else {
        Explanation {
            why: "every pass takes and gives valid graphs; without this rule a graph would mean nothing, or two things",
            fix: "correct the graph at the place that the message names; if a pass made it, please report it",
            example: "a text graph that was edited by hand",
        }
    }
}

fn object(code: &str, meaning: &str, explanation: Explanation) -> serde_json::Value {
    let Explanation { why, fix, example } = explanation;
    serde_json::json!({ "code": code, "meaning": meaning, "why": why, "fix": fix, "example": example })
}
