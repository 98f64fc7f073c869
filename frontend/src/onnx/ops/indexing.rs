//! Lookups by index, and slices.

use super::Rule;
use crate::onnx::call::{Call, Fail, Operand, Results, axis};
use crate::onnx::code;
use crate::onnx::constant::Const;
use crate::onnx::eval;
use crate::onnx::lower::Lower;
use trainc_ir::DType;
use trainc_ir::op::{Elementwise as E, Indexing, ReduceKind};

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "Gather" => gather,
        "GatherElements" => gather_elements,
        "GatherND" => gather_nd,
        "Slice" => slice,
        _ => return None,
    })
}

fn gather(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let (x, indices) = (call.input(0)?, call.input(1)?);
    let shape = lower.shape(x);
    let at = axis(call.int("axis", 0)?, shape.len())?;
    if let Some(known) = indices.known() {
        check_range(lower, known, shape[at], &call.node.input[0])?;
        if let (Operand::Value(_), Some(index)) = (x, known.uniform_int())
            && known.ty.elements() == 1
        {
            let index = if index < 0 { index + shape[at] as i64 } else { index } as u64;
            let one = lower.narrow(x, at, index, index + 1)?;
            let target = [&shape[..at], &known.ty.shape[..], &shape[at + 1..]].concat();
            return Ok(vec![lower.reshape(&one, &target)?]);
        }
    }
    Ok(vec![lower.gather(x, indices, at)?])
}

/// Known indices must lie in the table; where they do not, the dimension that the user bound is at fault.
fn check_range(lower: &Lower<'_>, indices: &Const, dim: u64, table: &str) -> Result<(), Fail> {
    if indices.ty.elements() == 0 {
        return Ok(());
    }
    let whole = (0..indices.core.len()).collect::<Vec<_>>();
    let whole: Vec<u64> = whole.iter().map(|&i| i as u64).collect();
    let extreme = |kind| eval::reduce(kind, indices, &whole, false).ok().flatten().and_then(|v| v.uniform_int());
    let (low, high) = if whole.is_empty() {
        let only = indices.uniform_int();
        (only, only)
    } else {
        (extreme(ReduceKind::Min), extreme(ReduceKind::Max))
    };
    let (Some(low), Some(high)) = (low, high) else { return Ok(()) };
    let dim_signed = i64::try_from(dim).unwrap_or(i64::MAX);
    if low >= -dim_signed && high < dim_signed {
        return Ok(());
    }
    let wanted = if high >= dim_signed { high } else { low };
    let mut message = format!("index {wanted} is out of range for `{table}`, which has {dim} entries");
    let needed = u64::try_from(high).unwrap_or(0).saturating_add(1);
    let Some(place) = lower.bound.places.iter().find(|place| place.value == needed) else {
        return Err(Fail::new(code::BAD_SHAPE, message));
    };
    let (symbol, axis, input) = (&place.symbol, place.axis, &place.input);
    message =
        format!("`{symbol}` (axis {axis} of input `{input}`) is bound to {needed}, but `{table}` has {dim} entries");
    Err(Fail::new(code::IMPOSSIBLE_BINDING, message))
}

fn gather_elements(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let (x, indices) = (call.input(0)?, call.input(1)?);
    let at = axis(call.int("axis", 0)?, lower.rank(x))?;
    let target = lower.shape(indices);
    let mut shape = lower.shape(x);
    if shape.len() != target.len() {
        return Err(format!("indices of shape {target:?} do not fit data of shape {shape:?}").into());
    }
    let mut x = x.clone();
    for i in (0..shape.len()).filter(|&i| i != at) {
        if target[i] < shape[i] {
            x = lower.narrow(&x, i, 0, target[i])?;
            shape[i] = target[i];
        }
    }
    Ok(vec![lower.emit_one(Indexing::GatherElements { axis: at as u64 }, &[&x, indices])?])
}

/// Coordinates become one index into the flattened leading axes.
fn gather_nd(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let (x, indices) = (call.input(0)?, call.input(1)?);
    let (shape, at) = (lower.shape(x), lower.shape(indices));
    if call.int("batch_dims", 0)? != 0 {
        return Err(Fail::form("batch_dims other than 0"));
    }
    let (&n_coordinates, lead) = at.split_last().ok_or("its indices have rank 0")?;
    let n = usize::try_from(n_coordinates).unwrap_or(usize::MAX);
    if n == 0 || n > shape.len() {
        return Err(format!("indices of shape {at:?} do not fit data of shape {shape:?}").into());
    }
    if let Some(known) = indices.known() {
        for (k, &dim) in shape[..n].iter().enumerate() {
            let column = lower.narrow(indices, lead.len(), k as u64, k as u64 + 1)?;
            if known.ty.elements() > 0 {
                check_range(
                    lower,
                    column.known().ok_or("a slice of known values is known")?,
                    dim,
                    &call.node.input[0],
                )?;
            }
        }
        if let Some(value) = x.known().and_then(|x| eval::gather_nd(x, known)) {
            return Ok(vec![value.into()]);
        }
    }
    let mut flat: Option<Operand> = None;
    for (k, &dim) in shape[..n].iter().enumerate() {
        let column = lower.narrow(indices, lead.len(), k as u64, k as u64 + 1)?;
        let column = lower.reshape(&column, lead)?;
        let column = lower.cast(&column, DType::I64)?;
        let column = lower.with_number(E::Mod, &column, dim as f64)?;
        flat = Some(match flat {
            None => column,
            Some(flat) => {
                let scaled = lower.with_number(E::Mul, &flat, dim as f64)?;
                lower.elementwise(E::Add, &[&scaled, &column])?
            }
        });
    }
    let flat = flat.ok_or("its indices have no coordinates")?;
    let rows = shape[..n].iter().product::<u64>();
    let table = lower.reshape(x, &[&[rows], &shape[n..]].concat())?;
    Ok(vec![lower.gather(&table, &flat, 0)?])
}

fn slice(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let shape = lower.shape(x);
    let given = |slot: usize, name: &str| -> Result<Option<Vec<i64>>, Fail> {
        match call.ints(name)? {
            Some(list) => Ok(Some(list.to_vec())),
            None => Ok(call.known_if_given(slot, name)?.map(Const::ints)),
        }
    };
    let missing = || Fail::new(code::BAD_ARITY, "its starts or ends are missing");
    let starts = given(1, "starts")?.ok_or_else(missing)?;
    let ends = given(2, "ends")?.ok_or_else(missing)?;
    let which = given(3, "axes")?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = given(4, "steps")?.unwrap_or_else(|| vec![1; starts.len()]);
    if starts.len() != ends.len() || starts.len() != which.len() || starts.len() != steps.len() {
        return Err("its starts, ends, axes and steps differ in number".into());
    }
    let mut bounds: Vec<(i64, i64, i64)> = shape.iter().map(|&dim| (0, dim as i64, 1)).collect();
    for i in 0..starts.len() {
        let at = axis(which[i], shape.len())?;
        bounds[at] = clamp(shape[at] as i64, starts[i], ends[i], steps[i])?;
    }
    let of = |pick: fn(&(i64, i64, i64)) -> i64| bounds.iter().map(pick).collect::<Vec<_>>();
    Ok(vec![lower.slice(x, &of(|b| b.0), &of(|b| b.1), &of(|b| b.2))?])
}

/// Bounds within the dimension, as the IR wants them.
fn clamp(dim: i64, start: i64, end: i64, step: i64) -> Result<(i64, i64, i64), Fail> {
    let wrap = |bound: i64| if bound < 0 { bound.saturating_add(dim) } else { bound };
    let (start, end) = (wrap(start), wrap(end));
    match step {
        0 => Err(Fail::new(code::BAD_ATTRIBUTE, "a slice with step 0")),
        1.. => {
            let start = start.clamp(0, dim);
            Ok((start, end.clamp(start, dim), step))
        }
        _ if dim == 0 => Ok((0, 0, 1)),
        _ => {
            let start = start.clamp(0, dim - 1);
            Ok((start, end.clamp(-1, dim - 1).min(start), step.max(-dim)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::clamp;

    /// Truths from numpy: `x[start:end:step]` for an x of five elements.
    #[test]
    fn slice_bounds_clamp_as_numpy_does() {
        assert_eq!(clamp(5, 1, i64::MAX, 1).unwrap(), (1, 5, 1));
        assert_eq!(clamp(5, i64::MIN, -2, 1).unwrap(), (0, 3, 1));
        assert_eq!(clamp(5, 4, 2, 1).unwrap(), (4, 4, 1));
        assert_eq!(clamp(5, -1, i64::MIN, -1).unwrap(), (4, -1, -1));
        assert_eq!(clamp(5, 100, 0, -2).unwrap(), (4, 0, -2));
        assert_eq!(clamp(0, 0, 5, -1).unwrap(), (0, 0, 1));
        assert!(clamp(5, 0, 5, 0).is_err());
    }
}
