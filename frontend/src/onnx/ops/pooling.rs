//! Pooling.

use super::Rule;
use super::window::{Windows, list};
use crate::onnx::call::{Call, Fail, Results};
use crate::onnx::lower::Lower;
use trainc_ir::op::{Pooling, ReduceKind};

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "MaxPool" => max_pool,
        "AveragePool" => average_pool,
        "GlobalMaxPool" => global_max_pool,
        "GlobalAveragePool" => global_average_pool,
        _ => return None,
    })
}

/// The places of each channel.
fn dims(lower: &Lower<'_>, call: &Call<'_>) -> Result<Vec<u64>, Fail> {
    let shape = lower.shape(call.input(0)?);
    if shape.len() < 3 {
        return Err(format!("rank 3 or more is expected, found {}", shape.len()).into());
    }
    Ok(shape[2..].to_vec())
}

fn windows(lower: &Lower<'_>, call: &Call<'_>) -> Result<Windows, Fail> {
    let dims = dims(lower, call)?;
    let kernel = list(call, "kernel_shape", dims.len(), 0)?;
    Windows::read(call, &dims, kernel)
}

fn max_pool(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let Windows { kernel, strides, low, high, dilations } = windows(lower, call)?;
    let ceil = call.flag("ceil_mode", false)?;
    let op = Pooling::MaxPool { kernel, strides, low, high, dilations, ceil };
    Ok(vec![lower.emit_one(op, &[call.input(0)?])?])
}

fn average_pool(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let Windows { kernel, strides, low, high, dilations } = windows(lower, call)?;
    let (ceil, pads) = (call.flag("ceil_mode", false)?, call.flag("count_include_pad", false)?);
    let op = Pooling::AveragePool { kernel, strides, low, high, dilations, ceil, pads };
    Ok(vec![lower.emit_one(op, &[call.input(0)?])?])
}

/// One window over everything.
fn global_max_pool(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let kernel = dims(lower, call)?;
    let n = kernel.len();
    let (strides, low, high, dilations) = (vec![1; n], vec![0; n], vec![0; n], vec![1; n]);
    let op = Pooling::MaxPool { kernel, strides, low, high, dilations, ceil: false };
    Ok(vec![lower.emit_one(op, &[call.input(0)?])?])
}

fn global_average_pool(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let axes: Vec<usize> = (2..2 + dims(lower, call)?.len()).collect();
    Ok(vec![lower.reduce(ReduceKind::Mean, call.input(0)?, &axes, true)?])
}
