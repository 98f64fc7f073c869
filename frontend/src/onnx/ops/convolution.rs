//! Convolutions whose windows do not overlap: patch embeddings and pointwise convolutions are matrix products.

use super::Rule;
use crate::onnx::call::{Call, Fail, Results};
use crate::onnx::lower::Lower;
use trainc_ir::op::{Contraction, Elementwise as E};

pub(super) fn rule(op: &str) -> Option<Rule> {
    if op == "Conv" { Some(conv) } else { None }
}

fn conv(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let (x, weight) = (call.input(0)?, call.input(1)?);
    let (shape, kernel) = (lower.shape(x), lower.shape(weight));
    let n_axes = shape.len().saturating_sub(2);
    if n_axes == 0 || kernel.len() != shape.len() {
        return Err(format!("data of shape {shape:?} and weights of shape {kernel:?} do not fit").into());
    }
    let list = |name: &str, default: i64| -> Result<Vec<i64>, Fail> {
        Ok(call.ints(name)?.map_or_else(|| vec![default; n_axes], <[i64]>::to_vec))
    };
    let strides = list("strides", 1)?;
    let (pads, dilations) = (call.ints("pads")?.unwrap_or_default(), list("dilations", 1)?);
    let windows = &kernel[2..];
    let is_patch = windows.iter().zip(&strides).all(|(&size, &stride)| u64::try_from(stride) == Ok(size))
        && shape[2..].iter().zip(windows).all(|(&dim, &size)| size > 0 && dim % size == 0)
        && pads.iter().all(|&pad| pad == 0)
        && dilations.iter().zip(windows).all(|(&dilation, &size)| dilation == 1 || size == 1)
        && call.int("group", 1)? == 1
        && !call.string("auto_pad", "NOTSET")?.starts_with("SAME");
    if !is_patch {
        return Err(Fail::form("a convolution with overlapping windows, padding, dilation or groups"));
    }
    if shape[1] != kernel[1] {
        return Err(format!("{} channels of data meet {} of the weights", shape[1], kernel[1]).into());
    }
    // [batch, channels, n0, w0, n1, w1, ..] with the places first and the windows last.
    let mut apart = vec![shape[0], shape[1]];
    let mut perm = vec![0];
    let mut places = vec![shape[0]];
    for (i, &size) in windows.iter().enumerate() {
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
    if let Some(bias) = call.optional(2) {
        y = lower.elementwise(E::Add, &[&y, bias])?;
    }
    places.push(kernel[0]);
    let y = lower.reshape(&y, &places)?;
    let perm: Vec<usize> = [0, n_axes + 1].into_iter().chain(1..=n_axes).collect();
    Ok(vec![lower.transpose(&y, &perm)?])
}
