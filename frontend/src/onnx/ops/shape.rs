//! Shapes as values and values under other shapes: nothing of these but reshapes and transposes reaches the graph.

use super::Rule;
use crate::onnx::call::{Call, Fail, Results, axes, axis};
use crate::onnx::code;
use crate::onnx::constant::{Const, broadcast};
use crate::onnx::lower::Lower;
use trainc_ir::DType;

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "Identity" => identity,
        "Shape" => shape,
        "Size" => size,
        "Reshape" => reshape,
        "Flatten" => flatten,
        "Squeeze" => squeeze,
        "Unsqueeze" => unsqueeze,
        "Transpose" => transpose,
        "Expand" => expand,
        _ => return None,
    })
}

fn identity(_lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    Ok(vec![call.input(0)?.clone()])
}

fn shape(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let shape = lower.shape(call.input(0)?);
    let rank = shape.len() as i64;
    let bound = |given: i64| (if given < 0 { given.saturating_add(rank) } else { given }).clamp(0, rank) as usize;
    let (start, end) = (bound(call.int("start", 0)?), bound(call.int("end", rank)?));
    let dims = shape.get(start..end).unwrap_or_default();
    Ok(vec![Const::vector(dims.iter().map(|&dim| dim as i64).collect()).into()])
}

fn size(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let n = lower.ty(call.input(0)?).elements();
    Ok(vec![Const::scalar_int(DType::I64, n as i64).into()])
}

fn reshape(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let wanted = call.known(1, "shape")?.ints();
    let target = resolve(&lower.shape(x), &wanted, call.flag("allowzero", false)?)?;
    Ok(vec![lower.reshape(x, &target)?])
}

/// The shape that a reshape asks for: 0 copies a dimension, -1 takes what is left.
fn resolve(shape: &[u64], wanted: &[i64], allow_zero: bool) -> Result<Vec<u64>, Fail> {
    let mut open = None;
    let mut target = Vec::with_capacity(wanted.len());
    for (i, &dim) in wanted.iter().enumerate() {
        target.push(match dim {
            -1 if open.is_none() => {
                open = Some(i);
                1
            }
            0 if !allow_zero => {
                *shape.get(i).ok_or_else(|| format!("shape {wanted:?} copies axis {i} of {shape:?}"))?
            }
            _ => u64::try_from(dim).map_err(|_| format!("{wanted:?} is not a shape"))?,
        });
    }
    if let Some(open) = open {
        let total: u64 = shape.iter().product();
        let rest = target.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim)).unwrap_or(0);
        if rest == 0 || !total.is_multiple_of(rest) {
            return Err(format!("{shape:?} cannot be reshaped to {wanted:?}: {total} elements over {rest}").into());
        }
        target[open] = total / rest;
    }
    Ok(target)
}

fn flatten(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let shape = lower.shape(x);
    let at = call.int("axis", 1)?;
    let at = if at == shape.len() as i64 { shape.len() } else { axis(at, shape.len())? };
    let target = [shape[..at].iter().product(), shape[at..].iter().product()];
    Ok(vec![lower.reshape(x, &target)?])
}

/// Axes given as an attribute by older operator sets and as an input by newer ones.
fn given_axes(call: &Call<'_>) -> Result<Option<Vec<i64>>, Fail> {
    if let Some(list) = call.ints("axes")? {
        return Ok(Some(list.to_vec()));
    }
    Ok(call.known_if_given(1, "axes")?.map(Const::ints))
}

fn squeeze(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let shape = lower.shape(x);
    let gone = match given_axes(call)? {
        Some(list) => axes(&list, shape.len())?,
        None => (0..shape.len()).filter(|&i| shape[i] == 1).collect(),
    };
    if let Some(&bad) = gone.iter().find(|&&i| shape[i] != 1) {
        return Err(format!("axis {bad} of {shape:?} cannot be squeezed: it is {}, not 1", shape[bad]).into());
    }
    let kept: Vec<u64> = (0..shape.len()).filter(|i| !gone.contains(i)).map(|i| shape[i]).collect();
    Ok(vec![lower.reshape(x, &kept)?])
}

fn unsqueeze(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let shape = lower.shape(x);
    let list = given_axes(call)?.ok_or_else(|| Fail::new(code::BAD_ATTRIBUTE, "its axes are missing"))?;
    let rank = shape.len() + list.len();
    let added = axes(&list, rank)?;
    let mut old = shape.iter();
    let target: Vec<u64> =
        (0..rank).map(|i| if added.contains(&i) { 1 } else { *old.next().expect("as many as not added") }).collect();
    Ok(vec![lower.reshape(x, &target)?])
}

fn transpose(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let rank = lower.rank(x);
    let perm = match call.ints("perm")? {
        Some(list) => {
            let perm = list.iter().map(|&i| axis(i, rank)).collect::<Result<Vec<_>, _>>()?;
            if axes(list, rank)?.len() != rank {
                return Err(Fail::new(code::BAD_ATTRIBUTE, format!("{list:?} does not permute {rank} axes")));
            }
            perm
        }
        None => (0..rank).rev().collect(),
    };
    Ok(vec![lower.transpose(x, &perm)?])
}

fn expand(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let wanted = call.known(1, "shape")?.ints();
    let wanted = wanted.iter().map(|&dim| u64::try_from(dim)).collect::<Result<Vec<_>, _>>();
    let wanted = wanted.map_err(|_| "the shape to expand to has a negative dimension")?;
    let target = broadcast(&[&lower.shape(x), &wanted])?;
    Ok(vec![lower.broadcast(x, &target)?])
}

#[cfg(test)]
mod tests {
    use super::resolve;

    /// Truths from the ONNX description of Reshape.
    #[test]
    fn reshapes_resolve() {
        assert_eq!(resolve(&[2, 3, 4], &[0, -1], false).unwrap(), [2, 12]);
        assert_eq!(resolve(&[2, 3, 4], &[-1, 6], false).unwrap(), [4, 6]);
        assert_eq!(resolve(&[0, 3], &[0, 7], true).unwrap(), [0, 7]);
        assert!(resolve(&[2, 3], &[-1, 4], false).is_err());
        assert!(resolve(&[2, 3], &[-1, -1], false).is_err());
        assert!(resolve(&[2], &[1, 0], false).is_err());
    }
}
