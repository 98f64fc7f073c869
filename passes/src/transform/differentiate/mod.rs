//! Reverse-mode differentiation: a forward graph with a loss becomes the step graph of a training graph.
//!
//! The forward's nodes keep their places and ids. The backward follows: forward nodes in reverse order, each giving the
//! gradients of its operands from those of its results. A value with several users sums their gradients in ascending
//! order of users. Only what a trained parameter needs is computed. Every use of a parameter gives a contribution of
//! its own; they are summed by the update graph.
//!
//! A backward node runs in [`Phase::WeightGrad`] where the gradient that it helps to compute is that of a value which
//! depends on parameters and constants only: no gradient of an activation waits for it.

mod attention;
mod backward;
mod batch_norm;
mod contraction;
mod convolution;
mod elementwise;
mod indexing;
mod loss;
mod movement;
mod normalization;
mod pooling;
mod random;
mod reduction;
mod support;
mod trainable;

pub use support::has_gradient;
pub use trainable::Trainable;

use super::codes;
use backward::{Backward, Gradients, Site};
use trainc_ir::id::{Id, SideTable, Table};
use trainc_ir::op::{Literal, Opaque};
use trainc_ir::{
    Contribution, Diagnostic, Diagnostics, Graph, InputRole, Node, NodeId, Op, OutputRole, Parameter, ParameterId,
    Phase, Place, ValueId,
};

const SECOND: &str = "it is a gradient itself, and second derivatives are not supported";

/// The step part of a training graph; the optimizer adds the update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Forward and backward of one micro-batch.
    pub graph: Graph,
    /// How many of its nodes are the forward's.
    pub forward_nodes: usize,
    /// When each node runs.
    pub phases: SideTable<NodeId, Phase>,
    /// The forward node of each backward node.
    pub anchors: SideTable<NodeId, Option<NodeId>>,
    /// All parameters, frozen ones included, in the order of the inputs.
    pub parameters: Table<ParameterId, Parameter>,
}

/// Differentiates the output of role loss sum by the trainable parameters. What the user should know besides goes to
/// `notes`.
///
/// # Errors
/// No loss, nothing to train, or operators without a gradient rule between a trained parameter and the loss: all of
/// them.
pub fn differentiate(forward: Graph, trainable: &Trainable, notes: &mut Vec<Diagnostic>) -> Result<Step, Diagnostics> {
    let Some(loss) = forward.outputs.iter().find(|output| output.role == OutputRole::LossSum).map(|o| o.value) else {
        return Err(vec![
            Diagnostic::error(codes::NO_LOSS, "the graph has no loss to differentiate")
                .with_help("say what the loss is with `--loss cross-entropy:NAME`, `mse:NAME` or `sum:NAME`"),
        ]);
    };
    let trained = trained(&forward, trainable)?;
    let needs = needs(&forward, &trained);
    let weight_side = weight_side(&forward);
    let forward_nodes = forward.nodes.len();
    let nodes: Vec<(NodeId, Node)> = forward.nodes.iter().map(|(id, node)| (id, node.clone())).collect();

    let mut pending: SideTable<ValueId, Vec<Use>> = SideTable::default();
    let mut b = Backward::new(forward);
    let mut problems = Vec::new();
    if needs[loss] {
        if let Some(node) = b.graph().producer(loss) {
            b.anchor(node);
        }
        let ty = b.ty(loss).clone();
        let seed = b.literal(Literal::splat_f64(ty, 1.0));
        pending[loss].push(Use { user: NodeId::from_index(forward_nodes), operand: 0, gradient: seed });
    }
    for (id, node) in nodes.into_iter().rev() {
        let wanted: Vec<bool> = node.inputs.iter().map(|&v| needs[v]).collect();
        if !wanted.contains(&true) || node.outputs.iter().all(|&v| pending[v].is_empty()) {
            continue;
        }
        b.anchor(id);
        b.weight_side(weight_side[node.outputs[0]]);
        let grads = node.outputs.iter().map(|&v| sum(&mut b, std::mem::take(&mut pending[v]))).collect();
        let site = Site { weight_side: node.inputs.iter().map(|&v| weight_side[v]).collect(), node, grads, wanted };
        match gradient(&site, &mut b) {
            Ok(gradients) => {
                for (operand, (&value, gradient)) in site.node.inputs.iter().zip(gradients).enumerate() {
                    if let Some(gradient) = gradient.filter(|_| needs[value]) {
                        pending[value].push(Use { user: id, operand, gradient });
                    }
                }
            }
            Err(reason) => problems.push(blocked(b.graph(), id, &reason)),
        }
    }
    if !problems.is_empty() {
        problems.reverse();
        return Err(problems);
    }
    let parameters = contributions(&mut b, &trained, pending, notes);
    let (graph, phases, anchors) = b.finish();
    Ok(Step { graph, forward_nodes, phases, anchors, parameters })
}

/// A gradient that one operand of one node gives.
#[derive(Clone, Copy, Debug)]
struct Use {
    user: NodeId,
    operand: usize,
    gradient: ValueId,
}

/// In the order of the inputs: every parameter and whether it is trained.
fn trained(forward: &Graph, trainable: &Trainable) -> Result<Vec<(ValueId, bool)>, Diagnostics> {
    let parameters = forward.inputs.iter().filter(|input| input.role == InputRole::Parameter);
    let trained: Vec<_> = parameters
        .map(|input| {
            let trained = trainable.matches(&input.name) && forward.ty(input.value).dtype.is_float();
            (input.value, trained)
        })
        .collect();
    if trained.iter().any(|&(_, trained)| trained) {
        return Ok(trained);
    }
    let message = if trained.is_empty() {
        "the model has no parameters to train".to_owned()
    } else {
        format!("none of the model's {} parameters is trained: {trainable} matches no name", trained.len())
    };
    let names: Vec<&str> = forward
        .inputs
        .iter()
        .filter(|input| input.role == InputRole::Parameter)
        .map(|input| input.name.as_str())
        .take(5)
        .collect();
    let mut problem = Diagnostic::error(codes::NOTHING_TO_TRAIN, message);
    let help = if names.is_empty() {
        "export the model with its parameters: `torch.onnx.export(..., export_params=True)`, without folding them into \
         constants"
    } else {
        let more = if trained.len() > names.len() { ", ..." } else { "" };
        problem = problem.with_note(format!("parameters are called {}{more}", names.join(", ")));
        "give `--train` patterns that match names of float parameters (`*` matches any characters)"
    };
    Err(vec![problem.with_help(help)])
}

/// The values that a gradient must flow through: floats that depend on a trained parameter.
fn needs(forward: &Graph, trained: &[(ValueId, bool)]) -> SideTable<ValueId, bool> {
    let mut needs = SideTable::new(false);
    for &(value, _) in trained.iter().filter(|&&(_, trained)| trained) {
        needs.set(value, true);
    }
    for node in forward.nodes.values() {
        if node.inputs.iter().any(|&v| needs[v]) {
            for &output in &node.outputs {
                needs.set(output, forward.ty(output).dtype.is_float());
            }
        }
    }
    needs
}

/// The values that depend on parameters, buffers and constants only.
fn weight_side(forward: &Graph) -> SideTable<ValueId, bool> {
    let mut side = SideTable::new(false);
    for input in &forward.inputs {
        side.set(input.value, matches!(input.role, InputRole::Parameter | InputRole::Buffer));
    }
    for node in forward.nodes.values() {
        if node.inputs.iter().all(|&v| side[v]) {
            for &output in &node.outputs {
                side.set(output, true);
            }
        }
    }
    side
}

/// Adds gradients in ascending order of users.
fn sum(b: &mut Backward, mut uses: Vec<Use>) -> Option<ValueId> {
    uses.sort_by_key(|u| (u.user, u.operand));
    uses.into_iter().map(|u| u.gradient).reduce(|total, gradient| b.add(total, gradient))
}

fn gradient(at: &Site, b: &mut Backward) -> Gradients {
    match &at.node.op {
        Op::Elementwise(op) => elementwise::gradient(op, at, b),
        Op::Contraction(op) => contraction::gradient(op, at, b),
        Op::Convolution(op) => convolution::gradient(op, at, b),
        Op::Pooling(op) => pooling::gradient(op, at, b),
        Op::Reduction(op) => reduction::gradient(op, at, b),
        Op::Normalization(op) => normalization::gradient(op, at, b),
        Op::BatchNorm(op) => batch_norm::gradient(op, at, b),
        Op::Attention(op) => attention::gradient(op, at, b),
        Op::Indexing(op) => indexing::gradient(op, at, b),
        Op::Movement(op) => movement::gradient(op, at, b),
        Op::Creation(_) => at.nothing(),
        Op::Random(op) => random::gradient(op, at, b),
        Op::Loss(op) => loss::gradient(op, at, b),
        Op::Optimizer(_) => Err("it is part of an optimizer".to_owned()),
        Op::Opaque(_) => Err("it is an operator that no rule knows".to_owned()),
    }
}

fn blocked(graph: &Graph, node: NodeId, reason: &str) -> Diagnostic {
    let name = graph.node_name(node);
    let op = &graph.nodes[node].op;
    let spelling = if let Op::Opaque(Opaque::Opaque { name, .. }) = op { name.as_str() } else { op.spelling() };
    let message = format!("the gradient cannot pass `{spelling}` at `{name}`: {reason}");
    Diagnostic::error(codes::NOT_DIFFERENTIABLE, message)
        .at(Place::Model { kind: "node", name }, "a trained parameter needs the gradient of this")
        .with_help("train fewer parameters with `--train`, or change the model so that the loss does not depend on it")
}

/// Gives out the contributions and lists the parameters.
fn contributions(
    b: &mut Backward,
    trained: &[(ValueId, bool)],
    mut pending: SideTable<ValueId, Vec<Use>>,
    notes: &mut Vec<Diagnostic>,
) -> Table<ParameterId, Parameter> {
    let mut parameters = Table::new();
    for &(input, trained) in trained {
        let name = b.graph().input_of(input).expect("parameters are inputs").name.clone();
        let mut uses = if trained { std::mem::take(&mut pending[input]) } else { Vec::new() };
        uses.sort_by_key(|u| (u.user, u.operand));
        if trained && uses.is_empty() {
            let message = format!("the loss does not depend on the parameter `{name}`, so it stays as it is");
            notes.push(Diagnostic::warning(codes::UNUSED_PARAMETER, message));
        }
        for (k, u) in uses.iter().enumerate() {
            b.builder().output(format!("grad.{name}.{k}"), OutputRole::Gradient, u.gradient);
        }
        let contributions = uses.iter().map(|u| Contribution { value: u.gradient, user: u.user }).collect();
        parameters.push(Parameter { name, input, contributions });
    }
    parameters
}
