//! Concatenation, splitting, padding, tiling.

use super::Rule;
use crate::onnx::call::{Call, Fail, Operand, Results, axis};
use crate::onnx::code;
use crate::onnx::constant::Const;
use crate::onnx::emit::check_size;
use crate::onnx::lower::Lower;
use trainc_ir::op::{Movement, Real};

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "Concat" => concat,
        "Split" => split,
        "Pad" => pad,
        "Tile" => tile,
        _ => return None,
    })
}

fn concat(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let mut parts = call.all_inputs()?;
    // Graph editors leave scalars among the numbers of a shape.
    if parts.iter().any(|part| lower.rank(part) == 1) {
        for part in parts.iter_mut().filter(|part| part.known().is_some_and(|known| known.ty.rank() == 0)) {
            *part = lower.reshape(part, &[1])?;
        }
    }
    let at = axis(call.int("axis", 0)?, lower.rank(&parts[0]))?;
    Ok(vec![lower.concat(&parts.iter().collect::<Vec<_>>(), at)?])
}

fn split(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let shape = lower.shape(x);
    let at = axis(call.int("axis", 0)?, shape.len())?;
    let given = match call.ints("split")? {
        Some(list) => Some(list.to_vec()),
        None => call.known_if_given(1, "split")?.map(Const::ints),
    };
    let sizes: Vec<u64> = match given {
        Some(list) => list
            .iter()
            .map(|&size| u64::try_from(size))
            .collect::<Result<_, _>>()
            .map_err(|_| Fail::new(code::BAD_ATTRIBUTE, format!("{list:?} are not sizes of parts")))?,
        None => {
            let n = u64::try_from(call.int("num_outputs", call.node.output.len() as i64)?).unwrap_or(0);
            if n == 0 || n > shape[at].max(1) {
                return Err(format!("axis {at} of {shape:?} cannot be split into {n} parts").into());
            }
            let part = shape[at].div_ceil(n);
            (0..n).map(|i| part.min(shape[at].saturating_sub(i * part))).collect()
        }
    };
    if sizes.iter().try_fold(0u64, |sum, &size| sum.checked_add(size)) != Some(shape[at]) {
        return Err(format!("parts {sizes:?} do not add up to axis {at} of {shape:?}").into());
    }
    if x.known().is_some() {
        let mut start = 0;
        let mut parts = Vec::new();
        for size in sizes {
            parts.push(lower.narrow(x, at, start, start + size)?);
            start += size;
        }
        return Ok(parts);
    }
    if sizes.len() == 1 {
        return Ok(vec![x.clone()]);
    }
    let parts = lower.emit(Movement::Split { axis: at as u64, sizes }, &[x])?;
    Ok(parts.into_iter().map(Operand::from).collect())
}

fn pad(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let rank = lower.rank(x);
    let mode = call.string("mode", "constant")?;
    let amounts = match call.ints("pads")? {
        Some(list) => list.to_vec(),
        None => call.known(1, "pads")?.ints(),
    };
    let which: Vec<usize> = match call.known_if_given(3, "axes")? {
        Some(list) => list.ints().iter().map(|&i| axis(i, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).collect(),
    };
    if amounts.len() != 2 * which.len() {
        return Err(format!("{} pads for {} axes", amounts.len(), which.len()).into());
    }
    if amounts.iter().all(|&amount| amount == 0) {
        return Ok(vec![x.clone()]);
    }
    if mode != "constant" {
        return Err(Fail::form(format!("padding mode `{mode}`")));
    }
    let value = match call.known_if_given(2, "value")? {
        Some(known) => known.uniform_f64().ok_or("its padding value is not one number")?,
        None => call.float("value", 0.0)?,
    };
    // Negative amounts cut off.
    let shape = lower.shape(x);
    let (mut starts, mut ends) = (vec![0; rank], shape.iter().map(|&dim| dim as i64).collect::<Vec<_>>());
    let (mut low, mut high) = (vec![0u64; rank], vec![0u64; rank]);
    for (i, &at) in which.iter().enumerate() {
        let (before, after) = (amounts[i], amounts[i + which.len()]);
        starts[at] = before.saturating_neg().max(0).min(ends[at]);
        ends[at] = (ends[at] - after.saturating_neg().max(0)).max(starts[at]);
        (low[at], high[at]) = (before.max(0) as u64, after.max(0) as u64);
    }
    let cut = lower.slice(x, &starts, &ends, &vec![1; rank])?;
    if low.iter().chain(&high).all(|&amount| amount == 0) {
        return Ok(vec![cut]);
    }
    if cut.known().is_some() {
        return Ok(vec![pad_known(lower, cut, &low, &high, value)?]);
    }
    Ok(vec![lower.emit_one(Movement::Pad { low, high, value: Real::new(value) }, &[&cut])?])
}

/// Known values are padded by concatenation, axis by axis.
fn pad_known(lower: &mut Lower<'_>, x: Operand, low: &[u64], high: &[u64], value: f64) -> Result<Operand, Fail> {
    let mut result = x;
    for at in 0..low.len() {
        let mut ty = lower.ty(&result).clone();
        let scalar = crate::onnx::emit::number_of(ty.dtype, value);
        let mut border = |amount: u64| -> Result<Option<Operand>, Fail> {
            ty.shape[at] = amount;
            check_size(&ty)?;
            Ok(scalar.known().map(|scalar| Operand::from(Const::splat(ty.clone(), scalar))))
        };
        let (before, after) = (border(low[at])?, border(high[at])?);
        let parts: Vec<&Operand> = before.iter().chain([&result]).chain(after.iter()).collect();
        result = lower.concat(&parts, at)?;
    }
    Ok(result)
}

/// A repetition is a broadcast along a new axis before each repeated one.
fn tile(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let shape = lower.shape(x);
    let repeats = call.known(1, "repeats")?.ints();
    let repeats = repeats.iter().map(|&n| u64::try_from(n)).collect::<Result<Vec<_>, _>>();
    let repeats = repeats.map_err(|_| "its repeats are negative")?;
    if repeats.len() != shape.len() {
        return Err(format!("{} repeats for rank {}", repeats.len(), shape.len()).into());
    }
    let (mut apart, mut wide, mut target) = (Vec::new(), Vec::new(), Vec::new());
    for (&dim, &n) in shape.iter().zip(&repeats) {
        if n != 1 {
            apart.push(1);
            wide.push(n);
        }
        apart.push(dim);
        wide.push(dim);
        target.push(dim.checked_mul(n).ok_or("its repeats are too large")?);
    }
    let apart = lower.reshape(x, &apart)?;
    let wide = lower.broadcast(&apart, &wide)?;
    Ok(vec![lower.reshape(&wide, &target)?])
}
