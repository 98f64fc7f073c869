//! Values from nothing: constants, fills, ranges, triangles.

use super::Rule;
use crate::onnx::call::{Call, Fail, Operand, Results};
use crate::onnx::code;
use crate::onnx::constant::{Const, Data, MAX_ELEMENTS, round};
use crate::onnx::emit::{check_size, number_of};
use crate::onnx::lower::Lower;
use trainc_ir::op::Elementwise as E;
use trainc_ir::{DType, Type};

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "Constant" => constant,
        "ConstantOfShape" => constant_of_shape,
        "Range" => range,
        "Trilu" => trilu,
        "EyeLike" => eye_like,
        "OneHot" => one_hot,
        "NonZero" => non_zero,
        _ => return None,
    })
}

fn constant(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let value = if let Some(tensor) = call.tensor("value")? {
        lower.tensor(tensor)?
    } else if call.has("value_int") {
        Const::scalar_int(DType::I64, call.int("value_int", 0)?).into()
    } else if let Some(list) = call.ints("value_ints")? {
        Const::vector(list.to_vec()).into()
    } else if call.has("value_float") {
        Const::scalar_float(DType::F32, call.float("value_float", 0.0)?).into()
    } else if let Some(list) = call.floats("value_floats")? {
        let shape = vec![list.len() as u64];
        let data = Data::Float(list.iter().map(|&value| f64::from(value)).collect());
        Const::new(Type::new(DType::F32, shape.clone()), shape, data).into()
    } else {
        return Err(Fail::form("a constant that is neither numbers nor a dense tensor"));
    };
    Ok(vec![value])
}

fn constant_of_shape(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let dims = call.known(0, "shape")?.ints();
    let shape = dims.iter().map(|&dim| u64::try_from(dim)).collect::<Result<Vec<_>, _>>();
    let shape = shape.map_err(|_| format!("{dims:?} is not a shape"))?;
    let value = match call.tensor("value")? {
        Some(tensor) => lower.tensor(tensor)?,
        None => number_of(DType::F32, 0.0),
    };
    let value = value.known().ok_or("its value is not known")?;
    if !value.is_uniform() {
        return Err("its value is not one element".into());
    }
    let ty = Type::new(value.ty.dtype, shape);
    check_size(&ty)?;
    Ok(vec![Const::splat(ty, value).into()])
}

fn range(_lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let start = call.known(0, "start")?;
    let (limit, delta) = (call.known(1, "limit")?, call.known(2, "delta")?);
    let dtype = start.ty.dtype;
    let too_long = || Fail::form(format!("a range of more than {MAX_ELEMENTS} elements"));
    let value = match (&start.data, &limit.data, &delta.data) {
        (Data::Int(start), Data::Int(limit), Data::Int(delta)) => {
            let (&[start], &[limit], &[delta]) = (&start[..], &limit[..], &delta[..]) else {
                return Err("its bounds are not scalars".into());
            };
            if delta == 0 {
                return Err("a range with step 0".into());
            }
            let span = i128::from(limit) - i128::from(start);
            let n = span.signum()
                * i128::from(delta.signum())
                * ((span.abs() + i128::from(delta.unsigned_abs()) - 1) / i128::from(delta.unsigned_abs()));
            let n = u64::try_from(n.max(0)).ok().filter(|&n| n <= MAX_ELEMENTS).ok_or_else(too_long)?;
            let values = (0..n as i64).map(|i| start.wrapping_add(i.wrapping_mul(delta))).collect();
            Const::new(Type::new(dtype, [n]), vec![n], Data::Int(values))
        }
        (Data::Float(start), Data::Float(limit), Data::Float(delta)) => {
            let (&[start], &[limit], &[delta]) = (&start[..], &limit[..], &delta[..]) else {
                return Err("its bounds are not scalars".into());
            };
            let n = ((limit - start) / delta).ceil().max(0.0);
            if n.is_nan() || n > MAX_ELEMENTS as f64 {
                return Err(too_long());
            }
            let values: Vec<f64> =
                (0..n as u64).map(|i| round(dtype, start + round(dtype, i as f64 * delta))).collect();
            let n = values.len() as u64;
            Const::new(Type::new(dtype, [n]), vec![n], Data::Float(values))
        }
        _ => return Err("its bounds differ in type".into()),
    };
    Ok(vec![value.into()])
}

/// `[.., rows, 1]` and `[1, columns]` counters of the last two axes.
fn counters(shape: &[u64]) -> Result<(Operand, Operand), Fail> {
    let [.., rows, columns] = shape else {
        return Err(format!("a matrix is expected, found shape {shape:?}").into());
    };
    if rows * columns > MAX_ELEMENTS {
        return Err(Fail::form(format!("a triangle of {rows} x {columns}")));
    }
    let count = |n: u64, shape: Vec<u64>| {
        let ty = Type::new(DType::I64, shape.clone());
        Operand::from(Const::new(ty, shape, Data::Int((0..n as i64).collect())))
    };
    Ok((count(*rows, vec![*rows, 1]), count(*columns, vec![1, *columns])))
}

/// The elements on one side of a diagonal, zeros elsewhere.
fn trilu(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let k = match call.known_if_given(1, "k")? {
        Some(known) => known.uniform_int().ok_or("its k is not one number")?,
        None => 0,
    };
    let (rows, columns) = counters(&lower.shape(x))?;
    let diagonal = lower.with_number(E::Add, &rows, k as f64)?;
    let side = if call.flag("upper", true)? { E::Ge } else { E::Le };
    let keep = lower.elementwise(side, &[&columns, &diagonal])?;
    let zero = number_of(lower.ty(x).dtype, 0.0);
    Ok(vec![lower.elementwise(E::Select, &[&keep, x, &zero])?])
}

fn eye_like(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let dtype = call.dtype("dtype")?.unwrap_or(lower.ty(x).dtype);
    let (rows, columns) = counters(&lower.shape(x))?;
    let diagonal = lower.with_number(E::Add, &rows, call.int("k", 0)? as f64)?;
    let ones = lower.elementwise(E::Eq, &[&columns, &diagonal])?;
    Ok(vec![lower.cast(&ones, dtype)?])
}

fn one_hot(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let indices = call.input(0)?;
    let depth = call.known(1, "depth")?.uniform_f64().ok_or("its depth is not one number")?;
    let n = depth as u64;
    if n == 0 || n > MAX_ELEMENTS {
        return Err(Fail::new(code::BAD_SHAPE, format!("its depth is {depth}")));
    }
    let values = call.input(2)?.clone();
    let two = lower.shape(&values);
    if two != [2] {
        return Err(Fail::new(code::BAD_SHAPE, format!("its values have the shape {two:?}; expected [2], off and on")));
    }
    let shape = lower.shape(indices);
    let at = crate::onnx::call::axis(call.int("axis", -1)?, shape.len() + 1)?;
    let indices = lower.cast(indices, DType::I64)?;
    let indices = lower.reshape(&indices, &[&shape[..at], &[1], &shape[at..]].concat())?;
    let indices = lower.with_number(E::Mod, &indices, depth)?;
    let mut classes = vec![1; shape.len() + 1];
    classes[at] = n;
    let counter = Const::new(Type::new(DType::I64, classes.clone()), classes, Data::Int((0..n as i64).collect()));
    let hot = lower.elementwise(E::Eq, &[&indices, &counter.into()])?;
    let off = lower.narrow(&values, 0, 0, 1)?;
    let on = lower.narrow(&values, 0, 1, 2)?;
    let (off, on) = (lower.reshape(&off, &[])?, lower.reshape(&on, &[])?);
    Ok(vec![lower.elementwise(E::Select, &[&hot, &on, &off])?])
}

fn non_zero(_lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.known(0, "data")?;
    if x.ty.elements() > MAX_ELEMENTS {
        return Err(Fail::form("the nonzero places of a large constant"));
    }
    let shape = &x.ty.shape;
    let places: Vec<u64> = crate::onnx::constant::positions(shape, &x.strides())
        .enumerate()
        .filter(|&(_, at)| match &x.data {
            Data::Int(values) => values[at] != 0,
            Data::Float(values) => values[at] != 0.0,
        })
        .map(|(place, _)| place as u64)
        .collect();
    let mut data = Vec::new();
    for axis in 0..shape.len() {
        let inner: u64 = shape[axis + 1..].iter().product();
        data.extend(places.iter().map(|place| (place / inner % shape[axis]) as i64));
    }
    let out = vec![shape.len() as u64, places.len() as u64];
    Ok(vec![Const::new(Type::new(DType::I64, out.clone()), out, Data::Int(data)).into()])
}
