//! From a plan file to a plan that is known to compute what its model says.

use crate::failure::{DIFFERENT_PLANS, Failure, FailureKind, OTHER_GRAPH, OTHER_MODEL, unreadable};
use crate::folder::{MODEL_PATH, PLAN_JSON, PLAN_PB, find_model, plan_file};
use crate::header::{graph_digest, model_options};
use crate::options::ModelOptions;
use crate::prepare::{Prepared, open_model, prepare_opened};
use std::collections::BTreeMap;
use std::path::Path;
use trainc_backend::{current_file, read_plan};
use trainc_frontend::OnnxModel;
use trainc_ir::plan::{Plan, PlanError, PlanRule, VerifiedPlan, verify};
use trainc_ir::{Diagnostic, ModelSource, VerifiedTraining};

/// Errors of one rule that are shown: one cause often breaks a rule in many places.
const SHOWN_PER_RULE: usize = 5;

/// A plan that was checked against its model.
#[derive(Debug)]
pub struct Checked {
    /// The plan.
    pub plan: VerifiedPlan,
    /// Its model.
    pub model: OnnxModel,
    /// Its training graph.
    pub training: VerifiedTraining,
    /// The options that made the training graph.
    pub options: ModelOptions,
    /// Warnings and notes.
    pub notes: Vec<Diagnostic>,
}

/// Reads a plan from a folder or a plan file and checks it against its model: the one given, else the one that lies
/// where it was when the plan was compiled.
///
/// # Errors
/// The plan or the model cannot be read, they do not belong together, or the plan breaks rules.
pub fn check(path: &Path, model: Option<&Path>) -> Result<Checked, Failure> {
    let file = plan_file(path);
    let plan = read_plan_file(&file)?;
    let options = model_options(&plan, find_model(path, model)?)?;
    let opened = open_model(&options.model, &options).map_err(|failure| match model {
        None => moved(failure, path),
        Some(_) => failure,
    })?;
    same_model(&plan, &opened, &options)?;
    let Prepared { model, training, micro_batches: _, micro_batch: _, notes } = prepare_opened(opened, &options)?;
    same_graph(&plan, &training)?;
    match verify(&plan, training.graph()) {
        Ok(plan) => Ok(Checked { plan, model, training, options, notes }),
        Err(errors) => Err(Failure { kind: FailureKind::Input, diagnostics: broken(&errors) }),
    }
}

/// Checks that the other plan file of a folder, if it is there, holds this plan too.
///
/// # Errors
/// It cannot be read, or holds another plan.
pub fn check_twin(path: &Path, plan: &Plan) -> Result<(), Failure> {
    let twin = current_file(path, PLAN_PB);
    if !path.is_dir() || !twin.exists() || read_plan_file(&twin)? == *plan {
        return Ok(());
    }
    let message = format!("`{}` holds another plan than `{PLAN_JSON}`, which was checked", twin.display());
    let help = "one of them was changed after the model was compiled: compile it again";
    Err(Failure::input(Diagnostic::error(DIFFERENT_PLANS, message).with_help(help)))
}

/// Says what to do about a model that is not where the folder says.
fn moved(mut failure: Failure, folder: &Path) -> Failure {
    if let Some(first) = failure.diagnostics.first_mut().filter(|first| first.help.is_none()) {
        let text = "says that the model is there: move both together, or say where it is with --model";
        first.help = Some(format!("`{}` {text}", folder.join(MODEL_PATH).display()));
    }
    failure
}

/// What is said of a plan that breaks rules: of each rule the first few errors, and how many more there are.
fn broken(errors: &[PlanError]) -> Vec<Diagnostic> {
    let help = "the plan was changed after it was compiled, or is damaged: compile the model again";
    let mut diagnostics = Vec::new();
    let mut counts: BTreeMap<PlanRule, usize> = BTreeMap::new();
    for error in errors {
        let count = counts.entry(error.rule).or_default();
        *count += 1;
        if *count > SHOWN_PER_RULE {
            continue;
        }
        let mut diagnostic = error.diagnostic().with_help(help);
        if *count == SHOWN_PER_RULE {
            let all = errors.iter().filter(|other| other.rule == error.rule).count();
            if all > SHOWN_PER_RULE {
                diagnostic = diagnostic.with_note(format!("and {} more of rule {}", all - SHOWN_PER_RULE, error.rule));
            }
        }
        diagnostics.push(diagnostic);
    }
    diagnostics
}

fn same_model(plan: &Plan, model: &OnnxModel, options: &ModelOptions) -> Result<(), Failure> {
    let (expected, found) = (&plan.header.digests.model, model.digest());
    if expected == found {
        return Ok(());
    }
    let message = format!(
        "the plan was compiled from another model than `{}`: expected digest {}, found {}",
        options.model.display(),
        short(expected),
        short(found)
    );
    let help = "give the model that the plan was compiled from with --model, or compile this one";
    Err(Failure::input(Diagnostic::error(OTHER_MODEL, message).with_help(help)))
}

fn same_graph(plan: &Plan, training: &VerifiedTraining) -> Result<(), Failure> {
    let (expected, found) = (&plan.header.digests.training_graph, graph_digest(training.graph()));
    if *expected == found {
        return Ok(());
    }
    let message = format!(
        "the model and the options in the plan's header give another training graph than the one that the plan is for: \
         expected digest {}, found {}",
        short(expected),
        short(&found)
    );
    let written =
        format!("the plan was written by {}, this is trainc {}", plan.header.compiler, env!("CARGO_PKG_VERSION"));
    let help = "compile the model again, if the header was not changed by hand";
    Err(Failure::input(Diagnostic::error(OTHER_GRAPH, message).with_note(written).with_help(help)))
}

/// The beginning of a digest, as people compare it.
fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

/// Reads a plan file, in either form.
pub(crate) fn read_plan_file(file: &Path) -> Result<Plan, Failure> {
    let bytes = std::fs::read(file)
        .map_err(|error| unreadable("plan", file, &error).with_help("give the folder that `trainc compile` wrote"))?;
    Ok(read_plan(&bytes, &file.display().to_string())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainc_ir::plan::PlanPlace;

    #[test]
    fn errors_of_one_rule_are_counted_after_the_first_few() {
        let error = |rule, n: usize| PlanError { rule, at: PlanPlace::Plan, message: n.to_string() };
        let mut errors: Vec<PlanError> = (0..SHOWN_PER_RULE + 3).map(|n| error(PlanRule::Reads, n)).collect();
        errors.push(error(PlanRule::Losses, 0));
        let diagnostics = broken(&errors);
        assert_eq!(diagnostics.len(), SHOWN_PER_RULE + 1);
        let notes: Vec<&[String]> = diagnostics.iter().map(|diagnostic| diagnostic.notes.as_slice()).collect();
        assert_eq!(notes[SHOWN_PER_RULE - 1], ["and 3 more of rule P21"]);
        assert!(notes.iter().enumerate().all(|(i, notes)| notes.is_empty() || i == SHOWN_PER_RULE - 1), "{notes:?}");
        assert!(broken(&errors[..SHOWN_PER_RULE]).iter().all(|diagnostic| diagnostic.notes.is_empty()));
    }
}
