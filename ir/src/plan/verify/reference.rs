//! The terms that a step must compute, from the training graph alone.

use super::structure::bytes;
use super::term::{KernelNumber, Signature, Term, Terms};
use crate::graph::{Def, Graph, Input, InputRole, OutputRole, ValueId};
use crate::id::Id;
use crate::op::{Creation, Elementwise, Literal, Op, Optimizer};
use crate::training::TrainingGraph;
use crate::ty::{DType, Type};
use std::collections::BTreeMap;

/// What a step must leave behind. While it is built, every value of the training graph gets its term, so that from
/// then on a term that is not found is a value that the training graph does not have.
#[derive(Debug)]
pub(super) struct Reference {
    /// The terms of weights, buffers and optimizer states after the step, by role and name.
    pub(super) finals: BTreeMap<(InputRole, String), Term>,
    /// The role of each weight and buffer by its name.
    pub(super) weights: BTreeMap<String, InputRole>,
    /// The terms of the loss sum and count over all micro-batches.
    pub(super) losses: [Term; 2],
}

/// Evaluates the training graph: `step` on each micro-batch, the sums over micro-batches, then `update`.
pub(super) fn build(training: &TrainingGraph, micro_batches: u64, terms: &mut Terms) -> Reference {
    let step = Prepared::new(&training.step, terms);
    let mut buffers: BTreeMap<&str, Term> = BTreeMap::new();
    let mut sums = sums(training, terms);
    for batch in 0..micro_batches {
        let values = step.evaluate(terms, Some(batch), |terms, input| match input.role {
            InputRole::Data | InputRole::Label => terms.leaf(input.role, &input.name, batch),
            InputRole::Buffer => match buffers.get(input.name.as_str()) {
                Some(&term) => term,
                None => terms.leaf(input.role, &input.name, 0),
            },
            InputRole::Parameter | InputRole::State | InputRole::GradientSum | InputRole::Scalar => {
                terms.leaf(input.role, &input.name, 0)
            }
        });
        for sum in &mut sums {
            let term = values[sum.value.index()];
            let operands = [sum.term, term];
            sum.term = terms.intern(sum.accumulate, None, &operands, 1, ("accumulate", Some(batch)));
        }
        let updated = training.step.outputs.iter().filter(|output| output.role == OutputRole::Updated);
        buffers.extend(updated.map(|output| (output.name.as_str(), values[output.value.index()])));
    }

    let by_name: BTreeMap<&str, Term> = sums.iter().map(|sum| (sum.name.as_str(), sum.term)).collect();
    let update = Prepared::new(&training.update, terms);
    let count = by_name.get("loss_count").copied();
    let values = update.evaluate(terms, None, |terms, input| match (input.role, count) {
        (InputRole::GradientSum, _) => by_name.get(input.name.as_str()).copied().unwrap_or(Term::UNKNOWN),
        (InputRole::Scalar, Some(count)) if input.name == "count" => count,
        (InputRole::Scalar | InputRole::Data | InputRole::Label | InputRole::Parameter, _) => {
            terms.leaf(input.role, &input.name, 0)
        }
        (InputRole::Buffer | InputRole::State, _) => terms.leaf(input.role, &input.name, 0),
    });

    let mut finals = BTreeMap::new();
    for input in training.step.inputs.iter().chain(&training.update.inputs) {
        if matches!(input.role, InputRole::Parameter | InputRole::Buffer | InputRole::State) {
            finals.insert((input.role, input.name.clone()), terms.leaf(input.role, &input.name, 0));
        }
    }
    for (name, term) in buffers {
        finals.insert((InputRole::Buffer, name.to_owned()), term);
    }
    let updated: BTreeMap<&str, ValueId> =
        training.update.outputs.iter().map(|output| (output.name.as_str(), output.value)).collect();
    for input in &training.update.inputs {
        if let Some(value) = updated.get(input.name.as_str()) {
            finals.insert((input.role, input.name.clone()), values[value.index()]);
        }
    }
    let weights = training.step.inputs.iter().map(|input| (input.name.clone(), input.role)).collect();
    let loss = |name| by_name.get(name).copied().unwrap_or(Term::UNKNOWN);
    Reference { finals, weights, losses: [loss("loss_sum"), loss("loss_count")] }
}

/// A running sum over micro-batches, which starts from a constant zero.
struct Sum {
    name: String,
    value: ValueId,
    accumulate: KernelNumber,
    term: Term,
}

fn sums(training: &TrainingGraph, terms: &mut Terms) -> Vec<Sum> {
    let mut sums = Vec::new();
    let update: BTreeMap<&str, &Type> = {
        let inputs = training.update.inputs.iter();
        inputs.map(|input| (input.name.as_str(), training.update.ty(input.value))).collect()
    };
    let mut add = |name: String, value: ValueId, sum: &Type| {
        let ty = training.step.ty(value);
        let zero: Op = Creation::Constant { value: Literal::splat_i64(sum.clone(), 0) }.into();
        let zero = terms.signature(&zero, &[], std::slice::from_ref(sum));
        let zero = terms.intern(zero.kernel, None, &[], 1, ("constant", None));
        let accumulate = Op::from(Optimizer::Accumulate);
        let accumulate = terms.signature(&accumulate, &[sum.clone(), ty.clone()], std::slice::from_ref(sum));
        sums.push(Sum { name, value, accumulate: accumulate.kernel, term: zero });
    };
    for parameter in training.parameters.values() {
        for (k, contribution) in parameter.contributions.iter().enumerate() {
            let name = format!("grad.{}.{k}", parameter.name);
            if let Some(ty) = update.get(name.as_str()) {
                add(name, contribution.value, ty);
            }
        }
    }
    for output in &training.step.outputs {
        let name = match output.role {
            OutputRole::LossSum => "loss_sum",
            OutputRole::LossCount => "loss_count",
            OutputRole::Prediction | OutputRole::Gradient | OutputRole::Updated => continue,
        };
        let ty = training.step.ty(output.value);
        add(name.to_owned(), output.value, &sum_type(ty));
    }
    sums
}

/// The type that losses are summed in: at least single precision.
fn sum_type(ty: &Type) -> Type {
    match ty.dtype {
        DType::F16 | DType::BF16 => ty.with_dtype(DType::F32),
        DType::Bool | DType::U8 | DType::I8 | DType::I32 | DType::I64 | DType::F32 | DType::F64 => ty.clone(),
    }
}

/// The signature of elementwise addition: what an all-reduce does, one rank after the other.
pub(super) fn addition(ty: &Type, terms: &mut Terms) -> Signature {
    let ty = std::slice::from_ref(ty);
    terms.signature(&Elementwise::Add.into(), &[ty[0].clone(), ty[0].clone()], ty)
}

/// A graph with the numbers of its operators.
struct Prepared<'a> {
    graph: &'a Graph,
    signatures: Vec<Signature>,
    empty: Vec<bool>,
}

impl<'a> Prepared<'a> {
    fn new(graph: &'a Graph, terms: &mut Terms) -> Self {
        let types = |values: &[ValueId]| values.iter().map(|&value| graph.ty(value).clone()).collect::<Vec<_>>();
        let signatures = graph.nodes.values().map(|node| {
            let (inputs, outputs) = (types(&node.inputs), types(&node.outputs));
            terms.signature(&node.op, &inputs, &outputs)
        });
        let signatures = signatures.collect();
        let empty = graph.values.values().map(|value| bytes(&value.ty) == Some(0)).collect();
        Self { graph, signatures, empty }
    }

    fn evaluate(
        &self,
        terms: &mut Terms,
        batch: Option<u64>,
        mut leaf: impl FnMut(&mut Terms, &Input) -> Term,
    ) -> Vec<Term> {
        let mut values = vec![Term::UNKNOWN; self.graph.values.len()];
        let mut operands = Vec::new();
        for (id, value) in self.graph.values.iter() {
            if let Def::Input(position) = value.def {
                values[id.index()] = leaf(terms, &self.graph.inputs[position]);
            }
        }
        for (id, node) in self.graph.nodes.iter() {
            let signature = self.signatures[id.index()];
            operands.clear();
            operands.extend(
                node.inputs.iter().map(
                    |input| {
                        if self.empty[input.index()] { Term::EMPTY } else { values[input.index()] }
                    },
                ),
            );
            if signature.alias {
                values[node.outputs[0].index()] = operands[0];
                continue;
            }
            let draw = signature.site.map(|site| (batch.unwrap_or(0), site));
            let about = (node.op.spelling(), batch);
            let first = terms.intern(signature.kernel, draw, &operands, node.outputs.len(), about);
            for (index, output) in node.outputs.iter().enumerate() {
                let term = if self.empty[output.index()] { Term::EMPTY } else { Terms::result(first, index) };
                values[output.index()] = term;
            }
        }
        values
    }
}
