//! Convolutions. One whose windows are laid side by side (a patch embedding) is a matrix product.

use super::Rule;
use super::normalization::per_channel;
use super::window::{Windows, list};
use crate::onnx::call::{Call, Fail, Operand, Results};
use crate::onnx::constant::Const;
use crate::onnx::lower::Lower;
use trainc_ir::op::{Contraction, Convolution, Elementwise as E};

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "Conv" => conv,
        "ConvTranspose" => conv_transpose,
        _ => return None,
    })
}

fn conv(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let (x, weight) = (call.input(0)?, call.input(1)?);
    let (shape, kernel, groups) = operands(lower, call)?;
    let windows = Windows::read(call, &shape[2..], kernel[2..].to_vec())?;
    if is_patch(&windows, &shape[2..]) && groups == 1 {
        return Ok(vec![patches(lower, (x, &shape), (weight, &kernel), bias(call))?]);
    }
    let Windows { kernel: _, strides, low, high, dilations } = windows;
    let y = lower.emit_one(Convolution::Conv { strides, low, high, dilations, groups }, &[x, weight])?;
    biased(lower, call, y)
}

/// The gradient of a convolution by its data, applied to data.
fn conv_transpose(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let (x, weight) = (call.input(0)?, call.input(1)?);
    let (shape, kernel, groups) = operands(lower, call)?;
    let dims = &shape[2..];
    let Windows { kernel: sizes, strides, mut low, mut high, dilations } =
        Windows::read(call, dims, kernel[2..].to_vec())?;
    let beyond = list(call, "output_padding", dims.len(), 0)?;
    let auto_pad = call.string("auto_pad", "NOTSET")?;
    let is_same = auto_pad.starts_with("SAME");
    let places = match call.ints("output_shape")? {
        Some(_) => Some(list(call, "output_shape", dims.len(), 0)?),
        None if is_same => Some(dims.iter().zip(&strides).map(|(dim, stride)| dim.saturating_mul(*stride)).collect()),
        None => None,
    };
    let mut result = vec![shape[0], kernel[1].saturating_mul(groups)];
    for (axis, &dim) in dims.iter().enumerate() {
        // Without padding.
        let mut full = (dim.saturating_sub(1))
            .checked_mul(strides[axis])
            .and_then(|last| last.checked_add((sizes[axis] - 1).checked_mul(dilations[axis])?))
            .and_then(|last| last.checked_add(beyond[axis])?.checked_add(1))
            .ok_or("its result is larger than any memory")?;
        if let Some(places) = &places {
            // A result that is larger has zeros behind it.
            full = full.max(places[axis]);
            let padding = full - places[axis];
            let less = padding / 2;
            // Automatic padding differs in where an odd position goes.
            (low[axis], high[axis]) =
                if auto_pad == "SAME_UPPER" { (less, padding - less) } else { (padding - less, less) };
        }
        let padding = low[axis].checked_add(high[axis]);
        result.push(padding.and_then(|padding| full.checked_sub(padding)).ok_or("its padding leaves nothing")?);
    }
    let op = Convolution::ConvInputGrad { shape: result, strides, low, high, dilations, groups };
    let y = lower.emit_one(op, &[weight, x])?;
    biased(lower, call, y)
}

/// Shapes of data and weights, and the number of groups.
fn operands(lower: &Lower<'_>, call: &Call<'_>) -> Result<(Vec<u64>, Vec<u64>, u64), Fail> {
    let (shape, kernel) = (lower.shape(call.input(0)?), lower.shape(call.input(1)?));
    if shape.len() < 3 || kernel.len() != shape.len() {
        return Err(format!("data of shape {shape:?} and weights of shape {kernel:?} do not fit").into());
    }
    let groups = u64::try_from(call.int("group", 1)?).map_err(|_| Fail::form("a negative number of groups"))?;
    Ok((shape, kernel, groups))
}

/// The bias of each channel, unless it is known to be zero.
fn bias<'c>(call: &'c Call<'_>) -> Option<&'c Operand> {
    call.optional(2).filter(|bias| bias.known().and_then(Const::uniform_f64) != Some(0.0))
}

/// Adds the bias of each channel, if there is one.
fn biased(lower: &mut Lower<'_>, call: &Call<'_>, y: Operand) -> Results {
    let Some(bias) = bias(call) else { return Ok(vec![y]) };
    let rank = lower.rank(&y);
    let bias = per_channel(lower, bias, rank)?;
    Ok(vec![lower.elementwise(E::Add, &[&y, &bias])?])
}

/// Whether the windows, larger than one element, are laid side by side.
fn is_patch(windows: &Windows, dims: &[u64]) -> bool {
    windows.kernel == windows.strides
        && windows.kernel.iter().any(|&size| size > 1)
        && dims.iter().zip(&windows.kernel).all(|(&dim, &size)| dim % size == 0)
        && windows.low.iter().chain(&windows.high).all(|&pad| pad == 0)
        && windows.dilations.iter().zip(&windows.kernel).all(|(&dilation, &size)| dilation == 1 || size == 1)
}

fn patches(
    lower: &mut Lower<'_>,
    (x, shape): (&Operand, &[u64]),
    (weight, kernel): (&Operand, &[u64]),
    bias: Option<&Operand>,
) -> Result<Operand, Fail> {
    if shape[1] != kernel[1] {
        return Err(format!("{} channels of data meet {} of the weights", shape[1], kernel[1]).into());
    }
    let n_axes = shape.len() - 2;
    // [batch, channels, n0, w0, n1, w1, ..] with the places first and the windows last.
    let mut apart = vec![shape[0], shape[1]];
    let mut perm = vec![0];
    let mut places = vec![shape[0]];
    for (i, &size) in kernel[2..].iter().enumerate() {
        apart.extend([shape[2 + i] / size, size]);
        places.push(shape[2 + i] / size);
        perm.push(2 + 2 * i);
    }
    perm.push(1);
    perm.extend((0..n_axes).map(|i| 3 + 2 * i));
    let patch: u64 = kernel[1..].iter().product();
    let apart = lower.reshape(x, &apart)?;
    let turned = lower.transpose(&apart, &perm)?;
    let rows = lower.reshape(&turned, &[places.iter().product(), patch])?;
    let matrix = lower.reshape(weight, &[kernel[0], patch])?;
    let mut y = lower.emit_one(Contraction::MatMul { transpose_a: false, transpose_b: true }, &[&rows, &matrix])?;
    if let Some(bias) = bias {
        y = lower.elementwise(E::Add, &[&y, bias])?;
    }
    places.push(kernel[0]);
    let y = lower.reshape(&y, &places)?;
    let perm: Vec<usize> = [0, n_axes + 1].into_iter().chain(1..=n_axes).collect();
    lower.transpose(&y, &perm)
}
