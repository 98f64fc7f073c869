//! From a model file to its training graph.

use crate::failure::{BAD_OPTION, CONFLICTING_OPTIONS, Failure, FailureKind, UNKNOWN_PASS};
use crate::options::{ModelOptions, print_bindings, training_options};
use std::path::Path;
use trainc_frontend::{Bindings, OnnxModel};
use trainc_ir::{Diagnostic, Graph, InputRole, Lowered, ModelSource, VerifiedTraining, verify_training};
use trainc_passes::{Lowering, PassEvent, StopAfter, TrainingOptions, lower_to_training, passes};

/// Micro-batches that a step may have. The verifier walks every one of them on every rank, so that the time to compile
/// grows with their number, while the share of time in which a pipeline is not full is below a percent long before.
pub const MAX_MICRO_BATCHES: u64 = 8192;

/// A model with its training graph.
#[derive(Debug)]
pub struct Prepared {
    /// The model.
    pub model: OnnxModel,
    /// Forward and backward of one micro-batch, and the update.
    pub training: VerifiedTraining,
    /// Micro-batches of a step.
    pub micro_batches: u64,
    /// The size of a micro-batch, where the options set it in place of the bindings.
    pub micro_batch: Option<u64>,
    /// Warnings and notes.
    pub notes: Vec<Diagnostic>,
}

/// A forward graph somewhere between the model file and its training graph.
#[derive(Debug)]
pub struct Forward {
    /// The pass after which it was taken; `None` as the frontend made it.
    pub after: Option<&'static str>,
    /// The graph.
    pub graph: Graph,
    /// Warnings and notes.
    pub notes: Vec<Diagnostic>,
}

/// A model that is opened, and its graph as the frontend made it.
struct Opened {
    model: OnnxModel,
    graph: Graph,
    micro_batches: u64,
    micro_batch: Option<u64>,
    notes: Vec<Diagnostic>,
}

/// Reads a model and makes its training graph. `observer` is told before and after every pass.
///
/// # Errors
/// What in the model or the options stands in the way.
pub fn prepare(options: &ModelOptions, observer: &mut dyn FnMut(PassEvent<'_>)) -> Result<Prepared, Failure> {
    let chosen = training_options(options)?;
    to_training(open(options)?, &chosen, observer)
}

/// As [`prepare`], of the model of these options that is open already.
///
/// # Errors
/// As [`prepare`].
pub(crate) fn prepare_opened(model: OnnxModel, options: &ModelOptions) -> Result<Prepared, Failure> {
    let chosen = training_options(options)?;
    to_training(lowered(model, options)?, &chosen, &mut |_| {})
}

fn to_training(
    opened: Opened,
    options: &TrainingOptions,
    observer: &mut dyn FnMut(PassEvent<'_>),
) -> Result<Prepared, Failure> {
    let Opened { model, graph, micro_batches, micro_batch, mut notes } = opened;
    let training = match lower_to_training(graph, options, None, observer, &mut notes)? {
        Lowering::Done(training) => verified(*training)?,
        Lowering::Stopped { after, graph: _ } => unreachable!("nothing was asked to stop after {after}"),
    };
    Ok(Prepared { model, training, micro_batches, micro_batch, notes })
}

/// Reads a model and runs the passes over it up to one: a name, or how many.
///
/// # Errors
/// What in the model or the options stands in the way.
pub fn prepare_until(
    options: &ModelOptions,
    stop_after: &str,
    observer: &mut dyn FnMut(PassEvent<'_>),
) -> Result<Forward, Failure> {
    let chosen = training_options(options)?;
    let stop = StopAfter::parse(stop_after);
    match &stop {
        StopAfter::Name(name) => known_pass(name)?,
        StopAfter::Count(count) if *count > steps().len() => {
            let message = format!("there is no pass {count}: there are {}", steps().len());
            let help = format!("the passes are, from 1, `{}`; 0 is the graph as it was read", steps().join("`, `"));
            return Err(Failure::usage(Diagnostic::error(UNKNOWN_PASS, message).with_help(help)));
        }
        StopAfter::Count(_) => {}
    }
    let Opened { model: _, graph, micro_batches: _, micro_batch: _, mut notes } = open(options)?;
    match lower_to_training(graph, &chosen, Some(stop), observer, &mut notes)? {
        Lowering::Stopped { after, graph } => Ok(Forward { after: Some(after), graph, notes }),
        Lowering::Done(training) => Ok(Forward { after: Some("optimizer"), graph: training.update, notes }),
    }
}

/// The forward graph when everything that does not need a loss is done; what `inspect` looks at.
///
/// # Errors
/// What in the model or the options stands in the way.
pub fn prepare_forward(options: &ModelOptions, observer: &mut dyn FnMut(PassEvent<'_>)) -> Result<Forward, Failure> {
    let before_loss = passes(&TrainingOptions::default()).iter().take_while(|(pass, _)| pass.name() != "loss").count();
    prepare_until(options, &before_loss.to_string(), observer)
}

/// The names of all steps between the frontend and the training graph, in order.
fn steps() -> Vec<&'static str> {
    let mut names: Vec<&'static str> =
        passes(&TrainingOptions::default()).iter().map(|(pass, _)| pass.name()).collect();
    names.extend(["differentiate", "optimizer"]);
    names
}

/// Refuses a name that no pass has.
///
/// # Errors
/// There is no such pass.
pub fn known_pass(name: &str) -> Result<(), Failure> {
    let mut names = Vec::new();
    for known in steps() {
        if !names.contains(&known) {
            names.push(known);
        }
    }
    if names.contains(&name) {
        return Ok(());
    }
    let help = format!("the passes are `{}`; a number counts them from the first", names.join("`, `"));
    Err(Failure::usage(Diagnostic::error(UNKNOWN_PASS, format!("there is no pass `{name}`")).with_help(help)))
}

/// Samples of one micro-batch: the first dimension of the first data input.
pub(crate) fn batch_of(graph: &Graph) -> Option<u64> {
    let data = graph.inputs.iter().find(|input| input.role == InputRole::Data)?;
    graph.ty(data.value).shape.first().copied()
}

fn open(options: &ModelOptions) -> Result<Opened, Failure> {
    lowered(open_model(&options.model, options)?, options)
}

fn lowered(model: OnnxModel, options: &ModelOptions) -> Result<Opened, Failure> {
    let (micro_batches, micro_batch) = match (options.micro_batches, options.global_batch) {
        (Some(0), _) | (_, Some(0)) => {
            let message = "a step of no micro-batches or samples trains nothing";
            return Err(Failure::usage(Diagnostic::error(BAD_OPTION, message)));
        }
        (Some(count), Some(global)) if !global.is_multiple_of(count) => {
            let message = format!("a global batch of {global} cannot be divided into {count} equal micro-batches");
            return Err(Failure::usage(Diagnostic::error(CONFLICTING_OPTIONS, message)));
        }
        (Some(count), Some(global)) => (Some(count), Some(global / count)),
        (count, _) => (count, None),
    };
    micro_batches.map_or(Ok(()), few_enough)?;
    let Lowered { graph, diagnostics } = model.lower(micro_batch)?;
    let batch = batch_of(&graph);
    let micro_batches = match (micro_batches, options.global_batch) {
        (Some(count), _) => count,
        (None, None) => 1,
        (None, Some(global)) => {
            let size = batch.unwrap_or(1).max(1);
            if !global.is_multiple_of(size) {
                let message = format!("a global batch of {global} is no multiple of the bound batch of {size}");
                let help = "bind another batch, or give --micro-batches to choose the batch size by it";
                return Err(Failure::usage(Diagnostic::error(CONFLICTING_OPTIONS, message).with_help(help)));
            }
            global / size
        }
    };
    few_enough(micro_batches)?;
    if let Some(size) = micro_batch {
        check_size(options, batch, size)?;
    }
    Ok(Opened { model, graph, micro_batches, micro_batch, notes: diagnostics })
}

fn few_enough(micro_batches: u64) -> Result<(), Failure> {
    if micro_batches <= MAX_MICRO_BATCHES {
        return Ok(());
    }
    let message = format!("a step of {micro_batches} micro-batches is too long: expected at most {MAX_MICRO_BATCHES}");
    let help = "make the micro-batches larger: bind a larger batch, or give fewer --micro-batches with --global-batch";
    Err(Failure::usage(Diagnostic::error(BAD_OPTION, message).with_help(help)))
}

/// Opens a model with the bindings of the options.
pub(crate) fn open_model(path: &Path, options: &ModelOptions) -> Result<OnnxModel, Failure> {
    let bindings = Bindings::parse(&print_bindings(&options.bindings)).map_err(Failure::usage)?;
    Ok(OnnxModel::open(path, bindings)?)
}

/// The global batch and the number of micro-batches give a size; neither the model nor a binding by name may say another.
fn check_size(options: &ModelOptions, batch: Option<u64>, size: u64) -> Result<(), Failure> {
    let mut by_name = options.clone();
    by_name.bindings.remove("*");
    let bound = open_model(&options.model, &by_name)?.lower(None).ok().and_then(|lowered| batch_of(&lowered.graph));
    match bound.into_iter().chain(batch).find(|other| *other != size) {
        None => Ok(()),
        Some(other) => {
            let message =
                format!("the global batch and the micro-batches make batches of {size}, the bound batch is {other}");
            let help = "leave out one of --global-batch, --micro-batches and the binding of the batch";
            Err(Failure::usage(Diagnostic::error(CONFLICTING_OPTIONS, message).with_help(help)))
        }
    }
}

fn verified(training: trainc_ir::TrainingGraph) -> Result<VerifiedTraining, Failure> {
    verify_training(training).map_err(|(_, errors)| {
        let diagnostic = |error: &trainc_ir::VerifyError| {
            Diagnostic::error("E0590", format!("the training graph is not valid: {error}"))
                .with_help("this is a bug of trainc")
        };
        Failure { kind: FailureKind::Internal, diagnostics: errors.iter().map(diagnostic).collect() }
    })
}

#[cfg(test)]
mod tests {
    use super::{known_pass, prepare_until, steps};
    use crate::options::ModelOptions;

    /// The names are those that the pipeline itself gives.
    #[test]
    fn every_number_stops_after_the_step_of_that_number() {
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/models/gpt2.onnx").into();
        let bindings = [("batch".to_owned(), 1), ("seq".to_owned(), 4)].into();
        let options = ModelOptions { model, bindings, ..ModelOptions::default() };
        let after = |stop: usize| prepare_until(&options, &stop.to_string(), &mut |_| {}).map(|forward| forward.after);
        for (i, name) in steps().into_iter().enumerate() {
            assert_eq!(after(i + 1).unwrap(), Some(name));
            assert!(known_pass(name).is_ok());
        }
        assert!(after(steps().len() + 1).is_err());
    }
}
