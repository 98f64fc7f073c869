//! The vocabulary in which the families write their type rules.

use crate::ty::{DType, Shape, Type};

pub(super) fn arity(inputs: &[&Type], expected: usize) -> Result<(), String> {
    if inputs.len() == expected {
        return Ok(());
    }
    Err(format!("expected {expected} operands, found {}", inputs.len()))
}

pub(super) fn float(ty: &Type, operand: usize) -> Result<(), String> {
    if ty.dtype.is_float() {
        return Ok(());
    }
    Err(format!("operand {operand}: expected a float type, found {ty}"))
}

pub(super) fn integer(ty: &Type, operand: usize) -> Result<(), String> {
    match ty.dtype {
        DType::U8 | DType::I8 | DType::I32 | DType::I64 => Ok(()),
        DType::Bool | DType::F16 | DType::BF16 | DType::F32 | DType::F64 => {
            Err(format!("operand {operand}: expected an integer type, found {ty}"))
        }
    }
}

pub(super) fn numeric(ty: &Type, operand: usize) -> Result<(), String> {
    if ty.dtype != DType::Bool {
        return Ok(());
    }
    Err(format!("operand {operand}: expected a numeric type, found {ty}"))
}

pub(super) fn dtype(ty: &Type, operand: usize, expected: DType) -> Result<(), String> {
    if ty.dtype == expected {
        return Ok(());
    }
    Err(format!("operand {operand}: expected element type {expected}, found {ty}"))
}

pub(super) fn same_dtype(a: &Type, b: &Type) -> Result<(), String> {
    if a.dtype == b.dtype {
        return Ok(());
    }
    Err(format!("operands must have one element type, found {a} and {b}"))
}

pub(super) fn same(a: &Type, b: &Type) -> Result<(), String> {
    if a == b {
        return Ok(());
    }
    Err(format!("operands must have the same type, found {a} and {b}"))
}

pub(super) fn is(ty: &Type, operand: usize, expected: &Type) -> Result<(), String> {
    if ty == expected {
        return Ok(());
    }
    Err(format!("operand {operand}: expected {expected}, found {ty}"))
}

pub(super) fn rank_at_least(ty: &Type, operand: usize, rank: usize) -> Result<(), String> {
    if ty.rank() >= rank {
        return Ok(());
    }
    Err(format!("operand {operand}: expected rank {rank} or more, found {ty}"))
}

pub(super) fn axis(axis: u64, ty: &Type) -> Result<usize, String> {
    let index = usize::try_from(axis).unwrap_or(usize::MAX);
    if index < ty.rank() {
        return Ok(index);
    }
    Err(format!("axis {axis} is out of range for {ty}"))
}

/// Numpy broadcasting of several shapes.
pub(super) fn broadcast(shapes: &[&Shape]) -> Result<Shape, String> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut out = vec![1; rank];
    for shape in shapes {
        for (i, &dim) in shape.iter().enumerate() {
            let slot = &mut out[rank - shape.len() + i];
            if *slot == 1 {
                *slot = dim;
            } else if dim != 1 && dim != *slot {
                return Err(format!("shapes {shapes:?} do not broadcast: {dim} meets {slot}"));
            }
        }
    }
    Ok(out)
}
