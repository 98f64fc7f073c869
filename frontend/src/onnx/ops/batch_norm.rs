//! Batch normalization: by the statistics of the micro-batch in training mode, else by those that the model has stored.

use super::Rule;
use super::normalization::per_channel;
use crate::onnx::call::{Call, Operand, Results};
use crate::onnx::lower::Lower;
use trainc_ir::op::{BatchNorm, Elementwise as E, Real};
use trainc_ir::{InputRole, ValueId};

pub(super) fn rule(op: &str) -> Option<Rule> {
    if op == "BatchNormalization" { Some(batch_norm) } else { None }
}

/// Since opset 14 an attribute tells the mode; before it, the number of results.
fn batch_norm(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let training = if call.opset < 14 { call.wants(1) } else { call.flag("training_mode", false)? };
    if training { by_batch(lower, call) } else { by_stored(lower, call) }
}

fn by_batch(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let dtype = lower.ty(x).dtype;
    let (scale, bias) = (lower.cast(call.input(1)?, dtype)?, lower.cast(call.input(2)?, dtype)?);
    let eps = Real::new(call.float("epsilon", 1e-5)?);
    let found = lower.emit(BatchNorm::BatchNorm { eps }, &[x, &scale, &bias])?;
    let momentum = Real::new(call.float("momentum", 0.9)?);
    let mut results = vec![found[0].into()];
    for (slot, &statistic) in [(3, &found[1]), (4, &found[2])] {
        let average = call.input(slot)?;
        let next = lower.emit(BatchNorm::RunningAverage { momentum }, &[average, &statistic.into()])?[0];
        if let Some(buffer) = stored(lower, average) {
            let name = lower.builder.graph().input_of(buffer).map(|input| input.name.clone());
            let name = name.expect("a stored statistic is an input");
            if lower.updated.insert(name.clone(), next).is_some() {
                lower.shared_averages.insert(name);
            }
        }
        results.push(next.into());
    }
    // The saved statistics of older operator sets.
    results.extend([found[1].into(), found[2].into()]);
    Ok(results)
}

/// `(x - mean) scale / sqrt(var + eps) + bias`.
fn by_stored(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let rank = lower.rank(x);
    for slot in [3, 4] {
        stored(lower, call.input(slot)?);
    }
    lower.n_frozen += 1;
    let mut channel = |slot: usize| per_channel(lower, call.input(slot)?, rank);
    let (scale, bias, mean, variance) = (channel(1)?, channel(2)?, channel(3)?, channel(4)?);
    let variance = lower.with_number(E::Add, &variance, call.float("epsilon", 1e-5)?)?;
    let deviation = lower.elementwise(E::Sqrt, &[&variance])?;
    let factor = lower.elementwise(E::Div, &[&scale, &deviation])?;
    let centred = lower.elementwise(E::Sub, &[x, &mean])?;
    let scaled = lower.elementwise(E::Mul, &[&centred, &factor])?;
    Ok(vec![lower.elementwise(E::Add, &[&scaled, &bias])?])
}

/// The statistic where the model stores it: it is no parameter then, but a buffer.
fn stored(lower: &mut Lower<'_>, statistic: &Operand) -> Option<ValueId> {
    let Operand::Value(value) = *statistic else { return None };
    let role = lower.builder.graph().input_of(value)?.role;
    if !matches!(role, InputRole::Parameter | InputRole::Buffer) {
        return None;
    }
    lower.roles.insert(value, InputRole::Buffer);
    Some(value)
}
