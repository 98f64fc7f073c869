//! Matrix products.

use super::Rule;
use crate::onnx::call::{Call, Fail, Results};
use crate::onnx::lower::Lower;
use trainc_ir::op::{Contraction, Elementwise as E};

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "MatMul" => matmul,
        "Gemm" => gemm,
        _ => return None,
    })
}

/// Operands of rank 1 get a dimension that the result loses again.
fn matmul(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let (a, b) = (call.input(0)?.clone(), call.input(1)?.clone());
    let (left, right) = (lower.shape(&a), lower.shape(&b));
    if left.is_empty() || right.is_empty() {
        return Err("a matrix product of a scalar".into());
    }
    if !lower.ty(&a).dtype.is_float() {
        return Err(Fail::form("a matrix product of integers"));
    }
    let a = if left.len() == 1 { lower.reshape(&a, &[1, left[0]])? } else { a };
    let b = if right.len() == 1 { lower.reshape(&b, &[right[0], 1])? } else { b };
    let product = lower.matmul(&a, &b)?;
    let mut shape = lower.shape(&product);
    if right.len() == 1 {
        shape.pop();
    }
    if left.len() == 1 {
        shape.remove(shape.len() - if right.len() == 1 { 1 } else { 2 });
    }
    Ok(vec![lower.reshape(&product, &shape)?])
}

/// `alpha op(a) op(b) + beta c`.
fn gemm(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let (transpose_a, transpose_b) = (call.flag("transA", false)?, call.flag("transB", false)?);
    let (a, b) = (call.input(0)?, call.input(1)?);
    let mut result = lower.emit_one(Contraction::MatMul { transpose_a, transpose_b }, &[a, b])?;
    let alpha = call.float("alpha", 1.0)?;
    if alpha != 1.0 {
        result = lower.with_number(E::Mul, &result, alpha)?;
    }
    let beta = call.float("beta", 1.0)?;
    if let Some(c) = call.optional(2)
        && beta != 0.0
    {
        let c = if beta == 1.0 { c.clone() } else { lower.with_number(E::Mul, c, beta)? };
        result = lower.elementwise(E::Add, &[&result, &c])?;
    }
    Ok(vec![result])
}
