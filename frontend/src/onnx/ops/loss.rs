//! Losses inside the model: a mean becomes the IR's sum and count, so that micro-batches add up.

use super::Rule;
use crate::onnx::call::{Call, Fail, Operand, Results};
use crate::onnx::finish;
use crate::onnx::lower::Lower;
use trainc_ir::op::{Elementwise as E, Loss, Normalization};
use trainc_ir::{InputRole, Op, ValueId};

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "SoftmaxCrossEntropyLoss" => cross_entropy,
        "NegativeLogLikelihoodLoss" => negative_log_likelihood,
        _ => return None,
    })
}

/// Which label the IR is told to ignore where the model ignores none.
const NO_LABEL: i64 = i64::MIN;

fn cross_entropy(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let loss = loss(lower, call)?;
    let mut results = vec![loss];
    if call.wants(1) {
        let x = call.input(0)?;
        let perm = classes_last(lower.rank(x));
        let last = lower.transpose(x, &perm)?;
        let log = lower.emit_one(Normalization::LogSoftmax, &[&last])?;
        results.push(lower.transpose(&log, &inverse(&perm))?);
    }
    Ok(results)
}

/// The logarithm of a softmax is its own logarithm of a softmax, so the same operator serves.
fn negative_log_likelihood(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let mut at = lower.value(call.input(0)?)?;
    loop {
        let graph = lower.builder.graph();
        match graph.producer_op(at) {
            Some(Op::Normalization(Normalization::LogSoftmax)) => return Ok(vec![loss(lower, call)?]),
            Some(Op::Movement(_)) => {
                let node = graph.producer(at).ok_or("an operator's result has a producer")?;
                at = graph.nodes[node].inputs[0];
            }
            Some(_) | None => return Err(Fail::form("log-probabilities that do not come from a log-softmax")),
        }
    }
}

fn loss(lower: &mut Lower<'_>, call: &Call<'_>) -> Result<Operand, Fail> {
    if call.optional(2).is_some() {
        return Err(Fail::form("class weights"));
    }
    let (logits, labels) = (call.input(0)?, call.input(1)?);
    let shape = lower.shape(logits);
    if shape.len() < 2 {
        return Err(format!("logits of rank 2 or more are expected, found shape {shape:?}").into());
    }
    let rows: u64 = shape[0] * shape[2..].iter().product::<u64>();
    let last = lower.transpose(logits, &classes_last(shape.len()))?;
    let flat = lower.reshape(&last, &[rows, shape[1]])?;
    let flat_labels = lower.reshape(labels, &[rows])?;
    let ignore_index = call.int("ignore_index", NO_LABEL)?;
    let found = lower.emit(Loss::CrossEntropy { ignore_index }, &[&flat, &flat_labels])?;
    let (sum, count) = (found[0], found[1]);
    mark_labels(lower, &flat_labels);
    match call.string("reduction", "mean")?.as_str() {
        "sum" => Ok(sum.into()),
        "mean" => mean(lower, sum, count),
        other => Err(Fail::form(format!("reduction `{other}`"))),
    }
}

fn mean(lower: &mut Lower<'_>, sum: ValueId, count: ValueId) -> Result<Operand, Fail> {
    let sum_operand = Operand::from(sum);
    let dtype = lower.ty(&sum_operand).dtype;
    let divisor = lower.cast(&count.into(), dtype)?;
    let mean = lower.elementwise(E::Div, &[&sum_operand, &divisor])?;
    let value = lower.value(&mean)?;
    lower.losses.insert(value, (sum, count));
    Ok(mean)
}

/// The data inputs that the labels are made of are label inputs.
fn mark_labels(lower: &mut Lower<'_>, labels: &Operand) {
    let Operand::Value(value) = labels else { return };
    for root in finish::roots(lower.builder.graph(), *value) {
        if lower.builder.graph().input_of(root).is_some_and(|input| input.role == InputRole::Data) {
            lower.roles.insert(root, InputRole::Label);
        }
    }
}

/// ONNX has the classes at axis 1; the IR wants them last.
fn classes_last(rank: usize) -> Vec<usize> {
    [0].into_iter().chain(2..rank).chain([1]).take(rank).collect()
}

fn inverse(perm: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; perm.len()];
    for (to, &from) in perm.iter().enumerate() {
        inverse[from] = to;
    }
    inverse
}
