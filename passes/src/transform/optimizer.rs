//! The optimizer: builds the update graph that runs once per step.

use super::codes;
use super::differentiate::Step;
use std::collections::HashSet;
use trainc_ir::op::{Elementwise, Optimizer, Real};
use trainc_ir::{DType, Diagnostic, Diagnostics, GraphBuilder, InputRole, OutputRole, TrainingGraph, Type, ValueId};

/// Which optimizer, with the numbers that do not change during training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OptimizerConfig {
    /// AdamW with decoupled weight decay of every parameter.
    AdamW {
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// Added to the root of the second moment.
        eps: f64,
        /// Decoupled weight decay.
        weight_decay: f64,
    },
    /// Gradient descent with momentum.
    SgdMomentum {
        /// Decay of the velocity.
        momentum: f64,
    },
    /// Plain gradient descent.
    Sgd,
}

impl Default for OptimizerConfig {
    /// PyTorch's defaults of AdamW.
    fn default() -> Self {
        Self::AdamW { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01 }
    }
}

impl OptimizerConfig {
    /// Suffixes of the state names, in operand order.
    pub fn states(&self) -> &'static [&'static str] {
        match self {
            Self::AdamW { beta1: _, beta2: _, eps: _, weight_decay: _ } => &["m", "v"],
            Self::SgdMomentum { momentum: _ } => &["m"],
            Self::Sgd => &[],
        }
    }

    fn op(&self) -> Optimizer {
        match *self {
            Self::AdamW { beta1, beta2, eps, weight_decay } => Optimizer::AdamW {
                beta1: Real::new(beta1),
                beta2: Real::new(beta2),
                eps: Real::new(eps),
                weight_decay: Real::new(weight_decay),
            },
            Self::SgdMomentum { momentum } => Optimizer::SgdMomentum { momentum: Real::new(momentum) },
            Self::Sgd => Optimizer::Sgd,
        }
    }
}

/// The element type in which gradients are summed and optimizer states are kept.
pub fn sum_dtype(parameter: DType) -> DType {
    if parameter == DType::F64 { DType::F64 } else { DType::F32 }
}

/// Completes a training graph with the update of every parameter that has a gradient.
///
/// # Errors
/// Names that collide with those of the update graph.
pub fn optimizer(step: Step, config: &OptimizerConfig) -> Result<TrainingGraph, Diagnostics> {
    let mut b = GraphBuilder::new(format!("{}.update", step.graph.name));
    let lr = b.input("lr", InputRole::Scalar, Type::scalar(DType::F32));
    let number = b.input("step", InputRole::Scalar, Type::scalar(DType::I64));
    let count = b.input("count", InputRole::Scalar, Type::scalar(DType::I64));
    let mut taken: HashSet<String> = ["lr", "step", "count"].map(str::to_owned).into();
    let mut problems = Vec::new();
    let mut updated: Vec<(String, ValueId)> = Vec::new();
    for parameter in step.parameters.values().filter(|p| !p.contributions.is_empty()) {
        let ty = step.graph.ty(parameter.input).clone();
        let sum_ty = ty.with_dtype(sum_dtype(ty.dtype));
        let name = &parameter.name;
        let mut input = |b: &mut GraphBuilder, name: String, role: InputRole, ty: &Type| {
            if !taken.insert(name.clone()) {
                let message = format!("the name `{name}` is needed twice by the update of the parameters");
                problems
                    .push(Diagnostic::error(codes::NAME_TAKEN, message).with_help("rename the parameter in the model"));
            }
            b.input(name, role, ty.clone())
        };
        let w = input(&mut b, name.clone(), InputRole::Parameter, &ty);
        let sums: Vec<_> = (0..parameter.contributions.len())
            .map(|k| input(&mut b, format!("grad.{name}.{k}"), InputRole::GradientSum, &sum_ty))
            .collect();
        let names = || std::iter::once(name.clone()).chain(config.states().iter().map(|s| format!("{name}.{s}")));
        let states: Vec<_> = names().skip(1).map(|state| input(&mut b, state, InputRole::State, &sum_ty)).collect();
        let gradient = sums
            .into_iter()
            .reduce(|a, g| b.one(Elementwise::Add, &[a, g]).expect("sums of one parameter have one type"))
            .expect("parameters without contributions are left out");
        let mut operands = vec![w, gradient];
        operands.extend(states);
        operands.extend(match config {
            OptimizerConfig::AdamW { beta1: _, beta2: _, eps: _, weight_decay: _ } => vec![lr, number, count],
            OptimizerConfig::SgdMomentum { momentum: _ } | OptimizerConfig::Sgd => vec![lr, count],
        });
        let next = b.add(config.op(), &operands).expect("states and sums have the types that updates expect");
        updated.extend(names().zip(next));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    for (name, value) in updated {
        b.output(name, OutputRole::Updated, value);
    }
    let Step { graph, forward_nodes, phases, anchors, parameters } = step;
    Ok(TrainingGraph { step: graph, forward_nodes, phases, anchors, parameters, update: b.finish() })
}
