//! The pipeline from a frontend's graph to a training graph.

use crate::pass::{Changed, Driver, Pass, PassEvent, StopAfter};
use crate::transform::{
    Canonicalize, Fold, Fuse, Loss, LossSpec, OptimizerConfig, Trainable, differentiate, optimizer,
};
use trainc_ir::{Diagnostic, Diagnostics, Graph, TrainingGraph};

/// What the user decides about training.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrainingOptions {
    /// The loss.
    pub loss: LossSpec,
    /// Which parameters are trained.
    pub trainable: Trainable,
    /// The optimizer.
    pub optimizer: OptimizerConfig,
}

/// How far a pipeline got.
#[derive(Clone, Debug)]
pub enum Lowering {
    /// To the end.
    Done(Box<TrainingGraph>),
    /// It was stopped on request.
    Stopped {
        /// The pass after which.
        after: &'static str,
        /// The graph there.
        graph: Graph,
    },
}

/// The passes before differentiation, each with the reason for its place.
pub fn passes(options: &TrainingOptions) -> Vec<(Box<dyn Pass>, &'static str)> {
    vec![
        (Box::new(Fold), "what exporters compute of shapes and masks becomes constants"),
        (Box::new(Canonicalize), "patterns have one spelling"),
        (Box::new(Fuse), "composite operators have gradients that keep fewer tensors"),
        (Box::new(Canonicalize), "what fused operators left behind becomes simple or goes"),
        (Box::new(Loss { spec: options.loss.clone() }), "differentiation starts from the loss"),
        (Box::new(Fold), "shifted labels of constant inputs, counts"),
        (Box::new(Canonicalize), "what the loss does not need goes"),
    ]
}

/// Transforms a frontend's forward graph into a training graph. `observer` is told before and after every pass;
/// warnings and notes go to `notes`.
///
/// # Errors
/// What in the model or the options stands in the way.
pub fn lower_to_training(
    mut graph: Graph,
    options: &TrainingOptions,
    stop_after: Option<StopAfter>,
    observer: &mut dyn FnMut(PassEvent<'_>),
    notes: &mut Vec<Diagnostic>,
) -> Result<Lowering, Diagnostics> {
    let mut driver = Driver::new(observer, stop_after);
    driver.start(&mut graph)?;
    for (pass, _reason) in passes(options) {
        driver.pass(pass.as_ref(), &mut graph, notes)?;
    }
    if let Some(after) = driver.stopped() {
        return Ok(Lowering::Stopped { after, graph });
    }
    driver.before("differentiate");
    let mut step = differentiate(graph, &options.trainable, notes)?;
    driver.after("differentiate", Changed::Yes, &mut step.graph)?;
    if let Some(after) = driver.stopped() {
        return Ok(Lowering::Stopped { after, graph: step.graph });
    }
    driver.before("optimizer");
    let mut training = optimizer(step, &options.optimizer)?;
    driver.after("optimizer", Changed::Yes, &mut training.update)?;
    match driver.stopped() {
        Some(after) => Ok(Lowering::Stopped { after, graph: training.update }),
        None => Ok(Lowering::Done(Box::new(training))),
    }
}
