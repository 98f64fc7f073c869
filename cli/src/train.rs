//! Runs a checked plan on this machine.

use crate::check::Checked;
use crate::failure::{Failure, FailureKind, MISSING_WEIGHTS, RUN_FAILED, unreadable};
use std::collections::BTreeSet;
use std::path::PathBuf;
use trainc_backend::{Corpora, Job, JobOptions, RunError, StepReport, TokenWidth, TrainOptions, train};
use trainc_frontend::OnnxModel;
use trainc_ir::Diagnostic;
use trainc_ir::plan::{Plan, PlanParameter};

/// How to run a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOptions {
    /// Number of steps.
    pub steps: u32,
    /// Learning rate.
    pub learning_rate: f64,
    /// Seed of the data's order, of dropout, and of weights that the model carries no values for.
    pub seed: u64,
    /// Whether memory is poisoned and its use checked.
    pub checked: bool,
    /// A file of little-endian token ids, and the width of one; a synthetic corpus where absent.
    pub data: Option<(PathBuf, TokenWidth)>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// For each rank one past the highest byte of its arena that was touched.
    pub touched_bytes: Vec<u64>,
    /// Where the weights came from.
    pub weights: Weights,
}

/// Where the weights of a run come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// How many from the model.
    pub loaded: usize,
    /// How many from the seed.
    pub initialized: usize,
    /// Files that should hold weights of the model but are not there; those weights are initialized.
    pub missing_files: BTreeSet<PathBuf>,
}

impl Weights {
    /// What there is to say about files that are not there.
    pub fn notes(&self) -> Vec<Diagnostic> {
        let note = |file: &PathBuf| {
            let message = format!("the weights in `{}` are initialized: the file is not there", file.display());
            Diagnostic::note(MISSING_WEIGHTS, message)
                .with_help("put the file beside the model to start from its weights")
        };
        self.missing_files.iter().map(note).collect()
    }
}

/// Runs the steps of a plan. `ready` is told where the weights come from before the first step; `on_step` is told of
/// every step and says whether to go on.
///
/// # Errors
/// The data or the weights do not fit, the machine is too small, or a kernel failed.
pub fn run(
    checked: &Checked,
    options: &RunOptions,
    ready: &mut dyn FnMut(&Weights),
    on_step: &mut dyn FnMut(&StepReport) -> bool,
) -> Result<Finished, Failure> {
    let plan = checked.plan.plan();
    let mut batches = corpora(plan, options)?;
    let mut weights = Weights::default();
    let job_options = JobOptions { seed: options.seed, checked: options.checked };
    let mut load = |parameter: &PlanParameter| {
        let bytes = load(&checked.model, parameter, &mut weights.missing_files)?;
        *if bytes.is_some() { &mut weights.loaded } else { &mut weights.initialized } += 1;
        Ok(bytes)
    };
    let mut job = Job::new(plan, job_options, &mut load).map_err(|error| failed(&error))?;
    ready(&weights);
    let train_options = TrainOptions { steps: options.steps, learning_rate: options.learning_rate };
    train(&mut job, &mut batches, &train_options, on_step).map_err(|error| failed(&error))?;
    Ok(Finished { touched_bytes: job.touched_bytes(), weights })
}

fn corpora(plan: &Plan, options: &RunOptions) -> Result<Corpora, Failure> {
    let Some((file, width)) = &options.data else { return Ok(Corpora::synthetic(plan, options.seed)) };
    let bytes = std::fs::read(file).map_err(|error| unreadable("data", file, &error))?;
    Corpora::tokens(plan, options.seed, &bytes, *width).map_err(|error| {
        let message = format!("the data `{}` do not fit the plan: {error}", file.display());
        let help = "the file must hold token ids as little-endian numbers of 16 bits, or 32 with --token-bits 32";
        Failure::input(Diagnostic::error(RUN_FAILED, message).with_help(help))
    })
}

/// The bytes of a weight, or `None` where the model carries none, or in a file that is not there.
fn load(
    model: &OnnxModel,
    parameter: &PlanParameter,
    missing_files: &mut BTreeSet<PathBuf>,
) -> Result<Option<Vec<u8>>, String> {
    if !model.has_weight(&parameter.name) {
        return Ok(None);
    }
    let weight = model.weight(&parameter.name).map_err(|diagnostic| diagnostic.message)?;
    let missing_file = weight.missing_file();
    if !weight.has_data() || missing_file.is_some() {
        missing_files.extend(missing_file);
        return Ok(None);
    }
    if *weight.ty() != parameter.ty {
        return Err(format!("expected {}, found {} in the model", parameter.ty, weight.ty()));
    }
    weight.read_bytes().map(Some).map_err(|diagnostic| diagnostic.message)
}

fn failed(error: &RunError) -> Failure {
    let diagnostic = Diagnostic::error(RUN_FAILED, format!("the run failed: {error}"));
    let bug = |diagnostic: Diagnostic| diagnostic.with_help("the plan was verified, so this is a bug of trainc");
    match error {
        RunError::Memory { .. } => {
            Failure::input(diagnostic.with_help("run the plan on a machine with more memory, or a smaller model"))
        }
        RunError::Diverged { step: 1 } => Failure::input(diagnostic.with_help(
            "look for weights that are not finite numbers, and for logarithms, roots and quotients of what the inputs allow",
        )),
        RunError::Diverged { step: _ } => Failure::input(diagnostic.with_help("give a smaller --lr")),
        RunError::Weight(_) | RunError::Data(_) | RunError::Kernel { .. } => Failure::input(diagnostic),
        RunError::Plan(_) | RunError::Deadlock(_) | RunError::Transfer(_) | RunError::Aborted => {
            Failure::new(FailureKind::Internal, bug(diagnostic))
        }
    }
}
