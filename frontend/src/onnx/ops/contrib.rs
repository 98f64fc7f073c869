//! Fused operators of ONNX Runtime's domain that its transformer optimizer writes.

use super::Rule;
use super::normalization::{layer_norm_of, rms_norm_of};
use crate::onnx::call::{Call, Fail, Operand, Results};
use crate::onnx::lower::Lower;
use trainc_ir::op::{Elementwise as E, GeluForm};

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "Gelu" => |lower, call| gelu(lower, call, GeluForm::Erf),
        "BiasGelu" => |lower, call| gelu(lower, call, GeluForm::Erf),
        "FastGelu" => |lower, call| gelu(lower, call, GeluForm::Tanh),
        "QuickGelu" => quick_gelu,
        "FusedMatMul" | "TransposeMatMul" => fused_matmul,
        "SkipLayerNormalization" => skip_layer_norm,
        "SkipSimplifiedLayerNormalization" => skip_rms_norm,
        "EmbedLayerNormalization" => embed_layer_norm,
        _ => return None,
    })
}

/// The bias is optional.
fn gelu(lower: &mut Lower<'_>, call: &Call<'_>, form: GeluForm) -> Results {
    let mut x = call.input(0)?.clone();
    if let Some(bias) = call.optional(1) {
        x = lower.elementwise(E::Add, &[&x, bias])?;
    }
    Ok(vec![lower.elementwise(E::Gelu { form }, &[&x])?])
}

fn quick_gelu(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let scaled = lower.with_number(E::Mul, x, call.float("alpha", 1.702)?)?;
    let gate = lower.elementwise(E::Sigmoid, &[&scaled])?;
    Ok(vec![lower.elementwise(E::Mul, &[x, &gate])?])
}

fn fused_matmul(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    if call.flag("transBatchA", false)? || call.flag("transBatchB", false)? {
        return Err(Fail::form("a matrix product that transposes the batch"));
    }
    let mut side = |slot: usize, name: &str| -> Result<Operand, Fail> {
        let x = call.input(slot)?;
        let rank = lower.rank(x);
        if rank < 2 {
            return Err(Fail::form("a fused matrix product of vectors"));
        }
        let mut perm: Vec<usize> = (0..rank).collect();
        if call.flag(name, false)? {
            perm.swap(rank - 1, rank - 2);
        }
        lower.transpose(x, &perm)
    };
    let (a, b) = (side(0, "transA")?, side(1, "transB")?);
    let product = lower.matmul(&a, &b)?;
    let alpha = call.float("alpha", 1.0)?;
    Ok(vec![if alpha == 1.0 { product } else { lower.with_number(E::Mul, &product, alpha)? }])
}

/// `(input + skip [+ bias])`, which is also the last result.
fn with_skip(lower: &mut Lower<'_>, call: &Call<'_>, bias: usize) -> Result<Operand, Fail> {
    let mut sum = lower.elementwise(E::Add, &[call.input(0)?, call.input(1)?])?;
    if let Some(bias) = call.optional(bias) {
        sum = lower.elementwise(E::Add, &[&sum, bias])?;
    }
    Ok(sum)
}

/// Results 1 and 2 are statistics that only ONNX Runtime's own training uses.
fn results_of_skip(call: &Call<'_>, y: Operand, sum: Operand) -> Results {
    if call.wants(1) || call.wants(2) {
        return Err(Fail::form("statistics of a fused normalization"));
    }
    Ok(vec![y.clone(), y.clone(), y, sum])
}

fn skip_layer_norm(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let sum = with_skip(lower, call, 4)?;
    let y = layer_norm_of(lower, &sum, call.input(2)?, call.optional(3), call.float("epsilon", 1e-12)?)?;
    results_of_skip(call, y, sum)
}

fn skip_rms_norm(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let sum = with_skip(lower, call, 3)?;
    let y = rms_norm_of(lower, &sum, call.input(2)?, call.float("epsilon", 1e-12)?)?;
    results_of_skip(call, y, sum)
}

/// `(input_ids, segment_ids, word, position, segment, gamma, beta, mask, position_ids)`.
fn embed_layer_norm(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    if call.wants(1) || call.optional(8).is_some() {
        return Err(Fail::form("an embedding with a mask index or position ids"));
    }
    let ids = call.input(0)?;
    let positions = *lower.shape(ids).get(1).ok_or("input ids of rank 2 are expected")?;
    let words = lower.gather(call.input(2)?, ids, 0)?;
    let table = call.input(3)?;
    if lower.shape(table).first().is_none_or(|&n| n < positions) {
        return Err(format!("{positions} positions exceed the position table {}", lower.ty(table)).into());
    }
    let places = lower.narrow(table, 0, 0, positions)?;
    let mut sum = lower.elementwise(E::Add, &[&words, &places])?;
    if let (Some(segments), Some(table)) = (call.optional(1), call.optional(4)) {
        let segments = lower.gather(table, segments, 0)?;
        sum = lower.elementwise(E::Add, &[&sum, &segments])?;
    }
    let y = layer_norm_of(lower, &sum, call.input(5)?, call.optional(6), call.float("epsilon", 1e-12)?)?;
    Ok(vec![y.clone(), y, sum])
}
