//! Reductions, scans, extrema with their places.

use super::Rule;
use crate::onnx::call::{Call, Fail, Operand, Results, axes, axis};
use crate::onnx::constant::Const;
use crate::onnx::eval;
use crate::onnx::lower::Lower;
use trainc_ir::op::{Elementwise as E, ReduceKind, Reduction};

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "ReduceSum" => |lower, call| plain(lower, call, ReduceKind::Sum),
        "ReduceMean" => |lower, call| plain(lower, call, ReduceKind::Mean),
        "ReduceMax" => |lower, call| plain(lower, call, ReduceKind::Max),
        "ReduceMin" => |lower, call| plain(lower, call, ReduceKind::Min),
        "ReduceProd" => |lower, call| plain(lower, call, ReduceKind::Prod),
        "ReduceSumSquare" => sum_square,
        "ReduceL1" => l1,
        "ReduceL2" => l2,
        "ReduceLogSum" => log_sum,
        "ReduceLogSumExp" => log_sum_exp,
        "CumSum" => cumsum,
        "ArgMax" => argmax,
        "ArgMin" => argmin,
        "TopK" => top_k,
        _ => return None,
    })
}

/// The axes and whether they stay; given as attributes by older operator sets and as an input by newer ones.
fn over(lower: &Lower<'_>, call: &Call<'_>) -> Result<(Vec<usize>, bool), Fail> {
    let rank = lower.rank(call.input(0)?);
    let keep = call.flag("keepdims", true)?;
    let given = match call.ints("axes")? {
        Some(list) => Some(list.to_vec()),
        None => call.known_if_given(1, "axes")?.map(Const::ints),
    };
    let axes = match given {
        Some(list) if !list.is_empty() => axes(&list, rank)?,
        Some(_) | None if call.flag("noop_with_empty_axes", false)? => Vec::new(),
        Some(_) | None => (0..rank).collect(),
    };
    Ok((axes, keep))
}

fn plain(lower: &mut Lower<'_>, call: &Call<'_>, kind: ReduceKind) -> Results {
    let (axes, keep) = over(lower, call)?;
    Ok(vec![lower.reduce(kind, call.input(0)?, &axes, keep)?])
}

fn sum_of(lower: &mut Lower<'_>, call: &Call<'_>, terms: &Operand) -> Result<Operand, Fail> {
    let (axes, keep) = over(lower, call)?;
    lower.reduce(ReduceKind::Sum, terms, &axes, keep)
}

fn sum_square(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let squares = lower.elementwise(E::Mul, &[x, x])?;
    Ok(vec![sum_of(lower, call, &squares)?])
}

fn l1(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let sizes = lower.elementwise(E::Abs, &[call.input(0)?])?;
    Ok(vec![sum_of(lower, call, &sizes)?])
}

fn l2(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let sum = sum_square(lower, call)?.remove(0);
    Ok(vec![lower.elementwise(E::Sqrt, &[&sum])?])
}

fn log_sum(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let sum = sum_of(lower, call, call.input(0)?)?;
    Ok(vec![lower.elementwise(E::Log, &[&sum])?])
}

/// Shifted by the largest element, so that no exponential overflows.
fn log_sum_exp(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let (axes, keep) = over(lower, call)?;
    let largest = lower.reduce(ReduceKind::Max, x, &axes, true)?;
    let shifted = lower.elementwise(E::Sub, &[x, &largest])?;
    let powers = lower.elementwise(E::Exp, &[&shifted])?;
    let sum = lower.reduce(ReduceKind::Sum, &powers, &axes, true)?;
    let log = lower.elementwise(E::Log, &[&sum])?;
    let result = lower.elementwise(E::Add, &[&log, &largest])?;
    if keep {
        return Ok(vec![result]);
    }
    let shape = lower.shape(&result);
    let kept: Vec<u64> = (0..shape.len()).filter(|i| !axes.contains(i)).map(|i| shape[i]).collect();
    Ok(vec![lower.reshape(&result, &kept)?])
}

fn cumsum(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let given = call.known(1, "axis")?.uniform_int().ok_or("its axis is not one number")?;
    let at = axis(given, lower.rank(x))?;
    let (exclusive, reverse) = (call.flag("exclusive", false)?, call.flag("reverse", false)?);
    if let Some(value) = x.known().and_then(|known| eval::cumsum(known, at, exclusive, reverse)) {
        return Ok(vec![value.into()]);
    }
    Ok(vec![lower.emit_one(Reduction::CumSum { axis: at as u64, exclusive, reverse }, &[x])?])
}

fn place_of_largest(lower: &mut Lower<'_>, call: &Call<'_>, x: &Operand) -> Results {
    let shape = lower.shape(x);
    let at = axis(call.int("axis", 0)?, shape.len())?;
    if call.flag("select_last_index", false)? {
        return Err(Fail::form("select_last_index"));
    }
    let mut place = lower.emit_one(Reduction::ArgMax { axis: at as u64 }, &[x])?;
    if call.flag("keepdims", true)? {
        let mut kept = shape;
        kept[at] = 1;
        place = lower.reshape(&place, &kept)?;
    }
    Ok(vec![place])
}

fn argmax(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    place_of_largest(lower, call, call.input(0)?)
}

fn argmin(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let negated = lower.elementwise(E::Neg, &[call.input(0)?])?;
    place_of_largest(lower, call, &negated)
}

fn top_k(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let rank = lower.rank(x);
    let at = axis(call.int("axis", -1)?, rank)?;
    let k = match call.known_if_given(1, "k")? {
        Some(known) => known.uniform_int().ok_or("its k is not one number")?,
        None => call.int("k", 0)?,
    };
    let k = u64::try_from(k).map_err(|_| format!("its k is {k}"))?;
    let largest = call.flag("largest", true)?;
    let mut perm: Vec<usize> = (0..rank).collect();
    perm.swap(at, rank - 1);
    let mut x = lower.transpose(x, &perm)?;
    if !largest {
        x = lower.elementwise(E::Neg, &[&x])?;
    }
    let found = lower.emit(Reduction::TopK { k }, &[&x])?;
    let mut values = Operand::from(found[0]);
    if !largest {
        values = lower.elementwise(E::Neg, &[&values])?;
    }
    Ok(vec![lower.transpose(&values, &perm)?, lower.transpose(&found[1].into(), &perm)?])
}
