//! From a plan file to a plan that is known to compute what its model says.

use crate::failure::{CANNOT_READ, Failure, FailureKind, OTHER_GRAPH, OTHER_MODEL};
use crate::folder::{find_model, plan_file};
use crate::header::{graph_digest, model_options};
use crate::options::ModelOptions;
use crate::prepare::{Prepared, open_model, prepare};
use std::path::Path;
use trainc_backend::read_plan;
use trainc_frontend::OnnxModel;
use trainc_ir::plan::{Plan, VerifiedPlan, verify};
use trainc_ir::{Diagnostic, ModelSource, VerifiedTraining};

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
    let plan = read(&file)?;
    let options = model_options(&plan, find_model(&file, model)?)?;
    let opened = open_model(&options.model, &options)?;
    same_model(&plan, &opened, &options)?;
    let Prepared { model, training, micro_batches: _, micro_batch: _, notes } = prepare(&options, &mut |_| {})?;
    same_graph(&plan, &training)?;
    match verify(&plan, training.graph()) {
        Ok(plan) => Ok(Checked { plan, model, training, options, notes }),
        Err(errors) => {
            let diagnostics = errors.iter().map(trainc_ir::plan::PlanError::diagnostic).collect();
            Err(Failure { kind: FailureKind::Input, diagnostics })
        }
    }
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
fn read(file: &Path) -> Result<Plan, Failure> {
    let bytes = std::fs::read(file).map_err(|error| {
        let message = format!("cannot read the plan `{}`: {error}", file.display());
        let help = "give the folder that `trainc compile` wrote";
        Failure::input(Diagnostic::error(CANNOT_READ, message).with_help(help))
    })?;
    Ok(read_plan(&bytes, &file.display().to_string())?)
}
