//! The loss: the graph ends in the sum of the loss over a micro-batch and the number of its terms.
//!
//! Sums and counts add up over micro-batches, so that the loss of a step is the mean over all terms and not a mean of
//! means. Outputs that are no loss are dropped: nothing that only they need is computed in training.

mod assume;
mod attach;
mod model;
mod spec;

pub use spec::LossSpec;

use super::{codes, dead};
use crate::pass::{Changed, Pass};
use trainc_ir::{Diagnostic, Diagnostics, Graph, GraphBuilder, Input, InputRole, OutputRole, ValueId};

/// Attaches the loss.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Which one.
    pub spec: LossSpec,
}

impl Pass for Loss {
    fn name(&self) -> &'static str {
        "loss"
    }

    fn run(&self, graph: &mut Graph, notes: &mut Vec<Diagnostic>) -> Result<Changed, Diagnostics> {
        // Next values of buffers are no results that a loss could be made of.
        let all = std::mem::take(&mut graph.outputs).into_iter();
        let (updated, results): (Vec<_>, Vec<_>) = all.partition(|output| output.role == OutputRole::Updated);
        graph.outputs = results;
        let terms = match &self.spec {
            LossSpec::FromModel => match model::take(graph, notes)? {
                Some(terms) => terms,
                None => assume::take(graph, notes)?,
            },
            LossSpec::CrossEntropy(name) => attach::cross_entropy(graph, name, notes)?,
            LossSpec::Mse(name) => attach::mse(graph, name)?,
            LossSpec::Sum(name) => attach::sum(graph, name)?,
        };
        graph.outputs.clear();
        let mut b = GraphBuilder::extend(std::mem::take(graph));
        b.output("loss_sum", OutputRole::LossSum, terms.sum);
        b.output("loss_count", OutputRole::LossCount, terms.count);
        for output in updated {
            b.output(output.name, output.role, output.value);
        }
        *graph = b.finish();
        dead::drop_inputs(graph);
        Ok(Changed::Yes)
    }
}

/// A loss taken apart: scalars.
#[derive(Clone, Copy, Debug)]
struct Terms {
    sum: ValueId,
    count: ValueId,
}

/// The integer inputs that hold data of a micro-batch.
fn integer_data(graph: &Graph) -> impl Iterator<Item = &Input> {
    graph.inputs.iter().filter(|input| {
        let data = matches!(input.role, InputRole::Data | InputRole::Label);
        data && is_integer(graph, input.value) && !is_label_name(&input.name)
    })
}

fn is_integer(graph: &Graph, value: ValueId) -> bool {
    let dtype = graph.ty(value).dtype;
    !dtype.is_float() && dtype != trainc_ir::DType::Bool
}

fn is_label_name(name: &str) -> bool {
    matches!(name, "labels" | "label" | "targets" | "target" | "y" | "lm_labels")
}

/// Lets `build` add nodes to the graph.
fn extend<T>(graph: &mut Graph, build: impl FnOnce(&mut GraphBuilder) -> T) -> T {
    let mut b = GraphBuilder::extend(std::mem::take(graph));
    let out = build(&mut b);
    *graph = b.finish();
    out
}
