//! Normalizations, softmax, dropout.

use super::Rule;
use super::elementwise::is_true;
use crate::onnx::call::{Call, Fail, Operand, Results, axis};
use crate::onnx::constant::Const;
use crate::onnx::emit::number_of;
use crate::onnx::lower::Lower;
use trainc_ir::op::{Elementwise as E, Normalization as N, Random, Real, ReduceKind};
use trainc_ir::{DType, Type, ValueId};

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "LayerNormalization" => layer_norm,
        "RMSNormalization" | "SimplifiedLayerNormalization" => rms_norm,
        "Softmax" => |lower, call| softmax(lower, call, N::Softmax),
        "LogSoftmax" => |lower, call| softmax(lower, call, N::LogSoftmax),
        "InstanceNormalization" => instance_norm,
        "LpNormalization" => lp_norm,
        "Dropout" => dropout,
        _ => return None,
    })
}

/// Rows of the normalized axes, flattened: the IR normalizes the last axis.
struct Rows {
    x: Operand,
    shape: Vec<u64>,
    /// Dimensions before the normalized ones.
    lead: Vec<u64>,
    width: u64,
}

fn rows(lower: &mut Lower<'_>, x: &Operand, from: usize) -> Result<Rows, Fail> {
    let shape = lower.shape(x);
    let width = shape[from..].iter().product();
    let lead = shape[..from].to_vec();
    let flat = lower.reshape(x, &[&lead[..], &[width]].concat())?;
    Ok(Rows { x: flat, shape, lead, width })
}

impl Rows {
    /// A scale or bias of the normalized axes, or of one that broadcasts to them, as one row.
    fn row(&self, lower: &mut Lower<'_>, weight: &Operand) -> Result<Operand, Fail> {
        let dtype = lower.ty(&self.x).dtype;
        let weight = lower.cast(weight, dtype)?;
        let weight = lower.broadcast(&weight, &self.shape[self.lead.len()..])?;
        lower.reshape(&weight, &[self.width])
    }

    /// A statistic of every row, of the shape that ONNX gives it.
    fn statistic(&self, lower: &mut Lower<'_>, value: ValueId) -> Result<Operand, Fail> {
        let ones = vec![1; self.shape.len() - self.lead.len()];
        lower.reshape(&value.into(), &[&self.lead[..], &ones].concat())
    }
}

fn layer_norm(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let from = axis(call.int("axis", -1)?, lower.rank(x))?;
    let eps = Real::new(call.float("epsilon", 1e-5)?);
    let rows = rows(lower, x, from)?;
    let dtype = lower.ty(x).dtype;
    let scale = rows.row(lower, call.input(1)?)?;
    let bias = match call.optional(2) {
        Some(bias) => rows.row(lower, bias)?,
        None => fill(dtype, rows.width, 0.0),
    };
    let found = lower.emit(N::LayerNorm { eps }, &[&rows.x, &scale, &bias])?;
    let y = lower.reshape(&found[0].into(), &rows.shape)?;
    let mut results = vec![y];
    for (slot, &value) in found.iter().enumerate().skip(1) {
        if !call.wants(slot) {
            break;
        }
        results.push(rows.statistic(lower, value)?);
    }
    Ok(results)
}

fn rms_norm(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let from = axis(call.int("axis", -1)?, lower.rank(x))?;
    let eps = Real::new(call.float("epsilon", 1e-5)?);
    let rows = rows(lower, x, from)?;
    let scale = rows.row(lower, call.input(1)?)?;
    let found = lower.emit(N::RmsNorm { eps }, &[&rows.x, &scale])?;
    let y = lower.reshape(&found[0].into(), &rows.shape)?;
    Ok(vec![y, rows.statistic(lower, found[1])?])
}

/// A layer norm over the last axis.
pub(super) fn layer_norm_of(
    lower: &mut Lower<'_>,
    x: &Operand,
    scale: &Operand,
    bias: Option<&Operand>,
    eps: f64,
) -> Result<Operand, Fail> {
    let ty = lower.ty(x).clone();
    let width = *ty.shape.last().ok_or("a normalization of a scalar")?;
    let bias = bias.cloned().unwrap_or_else(|| fill(ty.dtype, width, 0.0));
    lower.emit_one(N::LayerNorm { eps: Real::new(eps) }, &[x, scale, &bias])
}

/// A root mean square norm over the last axis.
pub(super) fn rms_norm_of(lower: &mut Lower<'_>, x: &Operand, scale: &Operand, eps: f64) -> Result<Operand, Fail> {
    lower.emit_one(N::RmsNorm { eps: Real::new(eps) }, &[x, scale])
}

/// A vector of one number.
fn fill(dtype: DType, length: u64, value: f64) -> Operand {
    let scalar = Const::scalar_float(dtype, value);
    Const::splat(Type::new(dtype, [length]), &scalar).into()
}

/// Before opset 13 all axes from the given one on are one; since then it is that axis alone.
fn softmax(lower: &mut Lower<'_>, call: &Call<'_>, op: N) -> Results {
    let x = call.input(0)?;
    let rank = lower.rank(x);
    if rank == 0 {
        return Err("softmax of a scalar".into());
    }
    let coerces = call.opset < 13;
    let at = axis(call.int("axis", if coerces { 1 } else { -1 })?, rank)?;
    if coerces {
        let rows = rows(lower, x, at)?;
        let y = lower.emit_one(op, &[&rows.x])?;
        return Ok(vec![lower.reshape(&y, &rows.shape)?]);
    }
    let mut perm: Vec<usize> = (0..rank).collect();
    perm.swap(at, rank - 1);
    let last = lower.transpose(x, &perm)?;
    let y = lower.emit_one(op, &[&last])?;
    Ok(vec![lower.transpose(&y, &perm)?])
}

/// A vector of the channels (axis 1), broadcast over the other axes.
pub(super) fn per_channel(lower: &mut Lower<'_>, vector: &Operand, rank: usize) -> Result<Operand, Fail> {
    let n = lower.ty(vector).elements();
    let mut shape = vec![1; rank.saturating_sub(1)];
    if let Some(first) = shape.first_mut() {
        *first = n;
    }
    lower.reshape(vector, &shape)
}

/// Every sample and channel normalized over its places, then scaled per channel.
fn instance_norm(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let rank = lower.rank(x);
    if rank < 3 {
        return Err(format!("rank 3 or more is expected, found {rank}").into());
    }
    let dtype = lower.ty(x).dtype;
    let eps = Real::new(call.float("epsilon", 1e-5)?);
    let rows = rows(lower, x, 2)?;
    let (one, zero) = (fill(dtype, rows.width, 1.0), fill(dtype, rows.width, 0.0));
    let found = lower.emit(N::LayerNorm { eps }, &[&rows.x, &one, &zero])?;
    let y = lower.reshape(&found[0].into(), &rows.shape)?;
    let (scale, bias) = (per_channel(lower, call.input(1)?, rank)?, per_channel(lower, call.input(2)?, rank)?);
    let scaled = lower.elementwise(E::Mul, &[&y, &scale])?;
    Ok(vec![lower.elementwise(E::Add, &[&scaled, &bias])?])
}

fn lp_norm(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let at = axis(call.int("axis", -1)?, lower.rank(x))?;
    let norm = match call.int("p", 2)? {
        1 => {
            let sizes = lower.elementwise(E::Abs, &[x])?;
            lower.reduce(ReduceKind::Sum, &sizes, &[at], true)?
        }
        2 => {
            let squares = lower.elementwise(E::Mul, &[x, x])?;
            let sum = lower.reduce(ReduceKind::Sum, &squares, &[at], true)?;
            lower.elementwise(E::Sqrt, &[&sum])?
        }
        p => return Err(Fail::form(format!("p = {p}"))),
    };
    Ok(vec![lower.elementwise(E::Div, &[x, &norm])?])
}

/// Nothing in inference mode, which is the default since opset 12 and the only mode before it.
fn dropout(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let training = is_true(call.optional(2)).ok_or_else(|| Fail::form("a training mode known only at run time"))?;
    let ratio = match call.known_if_given(1, "ratio")? {
        Some(known) => known.uniform_f64().ok_or("its ratio is not one number")?,
        None => call.float("ratio", 0.5)?,
    };
    if training && ratio > 0.0 {
        // Exporters name the mask also where nothing uses it.
        let site = lower.n_sites;
        lower.n_sites += 1;
        return Ok(vec![lower.emit_one(Random::Dropout { p: Real::new(ratio), site }, &[x])?]);
    }
    let mut results = vec![x.clone()];
    if call.wants(1) {
        let ty = lower.ty(x).with_dtype(DType::Bool);
        let one = number_of(DType::Bool, 1.0);
        results.push(Const::splat(ty, one.known().ok_or("a number is known")?).into());
    }
    Ok(results)
}
