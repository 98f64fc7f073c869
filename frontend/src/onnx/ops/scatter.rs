//! Scatters at places known at compile time: every element comes from the data or from one update.

use super::Rule;
use crate::onnx::call::{Call, Fail, Operand, Results, axis};
use crate::onnx::constant::{Const, Data, MAX_ELEMENTS};
use crate::onnx::lower::Lower;
use trainc_ir::op::Elementwise as E;
use trainc_ir::{DType, Type};

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "ScatterND" => scatter_nd,
        "ScatterElements" | "Scatter" => scatter_elements,
        _ => return None,
    })
}

fn check(lower: &Lower<'_>, call: &Call<'_>) -> Result<Vec<u64>, Fail> {
    let reduction = call.string("reduction", "none")?;
    if reduction != "none" {
        return Err(Fail::form(format!("reduction `{reduction}`")));
    }
    let shape = lower.shape(call.input(0)?);
    if shape.iter().product::<u64>() > MAX_ELEMENTS {
        return Err(Fail::form(format!("a scatter into shape {shape:?}")));
    }
    Ok(shape)
}

/// `updates` where a place is written, else the data. `source[i]` is the update that place `i` gets, -1 for none.
fn merge(lower: &mut Lower<'_>, call: &Call<'_>, shape: &[u64], source: &[i64]) -> Results {
    let (data, updates) = (call.input(0)?, call.input(2)?);
    let n = lower.ty(updates).elements();
    let flat = lower.reshape(updates, &[n])?;
    let known = |dtype: DType, values: Vec<i64>| -> Operand {
        Const::new(Type::new(dtype, shape), shape.to_vec(), Data::Int(values)).into()
    };
    let written = known(DType::Bool, source.iter().map(|&from| i64::from(from >= 0)).collect());
    let from = known(DType::I64, source.iter().map(|&from| from.max(0)).collect());
    if n == 0 {
        return Ok(vec![data.clone()]);
    }
    let taken = lower.gather(&flat, &from, 0)?;
    Ok(vec![lower.elementwise(E::Select, &[&written, &taken, data])?])
}

fn place(index: i64, dim: u64) -> Result<usize, Fail> {
    let signed = i64::try_from(dim).unwrap_or(i64::MAX);
    let wrapped = if index < 0 { index + signed } else { index };
    usize::try_from(wrapped)
        .ok()
        .filter(|_| wrapped < signed)
        .ok_or_else(|| format!("index {index} is out of range for a dimension of {dim}").into())
}

fn scatter_nd(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let shape = check(lower, call)?;
    let indices = call.known(1, "indices")?;
    let n_coordinates = indices.ty.shape.last().map_or(0, |&n| usize::try_from(n).unwrap_or(usize::MAX));
    if n_coordinates == 0 || n_coordinates > shape.len() {
        return Err(format!("indices {} do not fit data of shape {shape:?}", indices.ty).into());
    }
    let inner = shape[n_coordinates..].iter().product::<u64>() as usize;
    if indices.ty.elements() > MAX_ELEMENTS
        || lower.ty(call.input(2)?).elements() != indices.ty.elements() / n_coordinates as u64 * inner as u64
    {
        return Err("its updates do not fit its indices".into());
    }
    let mut source = vec![-1; shape.iter().product::<u64>() as usize];
    for (update, coordinates) in indices.ints().chunks(n_coordinates).enumerate() {
        let mut row = 0;
        for (&index, &dim) in coordinates.iter().zip(&shape) {
            row = row * dim as usize + place(index, dim)?;
        }
        for i in 0..inner {
            source[row * inner + i] = (update * inner + i) as i64;
        }
    }
    merge(lower, call, &shape, &source)
}

fn scatter_elements(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let shape = check(lower, call)?;
    let at = axis(call.int("axis", 0)?, shape.len())?;
    let indices = call.known(1, "indices")?;
    let own = &indices.ty.shape;
    let fits = own.len() == shape.len() && (0..shape.len()).all(|i| i == at || own[i] <= shape[i]);
    if !fits || lower.shape(call.input(2)?) != *own || indices.ty.elements() > MAX_ELEMENTS {
        return Err(format!("indices {} and its updates do not fit data of shape {shape:?}", indices.ty).into());
    }
    let mut source = vec![-1; shape.iter().product::<u64>() as usize];
    for (update, index) in indices.ints().into_iter().enumerate() {
        let mut rest = update as u64;
        let mut coordinates = vec![0usize; shape.len()];
        for i in (0..shape.len()).rev() {
            coordinates[i] = (rest % own[i]) as usize;
            rest /= own[i];
        }
        coordinates[at] = place(index, shape[at])?;
        let target = coordinates.iter().zip(&shape).fold(0, |sum, (&i, &dim)| sum * dim as usize + i);
        source[target] = update as i64;
    }
    merge(lower, call, &shape, &source)
}
