//! Blocks of places as channels and back, as in pixel shuffles.

use super::Rule;
use crate::onnx::call::{Call, Fail, Results};
use crate::onnx::code;
use crate::onnx::lower::Lower;

pub(super) fn rule(op: &str) -> Option<Rule> {
    match op {
        "DepthToSpace" => Some(depth_to_space),
        "SpaceToDepth" => Some(space_to_depth),
        _ => None,
    }
}

/// The block size, and the four dimensions of images.
fn sizes(lower: &Lower<'_>, call: &Call<'_>) -> Result<(u64, [u64; 4]), Fail> {
    let found = call.int("blocksize", 0)?;
    let block = u64::try_from(found).ok().filter(|block| (1..1 << 16).contains(block)).ok_or_else(|| {
        let text = format!("its attribute `blocksize` must be from 1 to 65535, found {found}");
        Fail::new(code::BAD_ATTRIBUTE, text)
    })?;
    let shape = lower.shape(call.input(0)?);
    let shape = shape.try_into().map_err(|shape: Vec<u64>| format!("rank 4 is expected, found {}", shape.len()))?;
    Ok((block, shape))
}

fn depth_to_space(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let (n, [batch, channels, rows, columns]) = sizes(lower, call)?;
    if !channels.is_multiple_of(n * n) {
        return Err(format!("{channels} channels cannot become blocks of {n} by {n} places").into());
    }
    let left = channels / (n * n);
    let (apart, order) = match call.string("mode", "DCR")?.as_str() {
        "DCR" => ([batch, n, n, left, rows, columns], [0, 3, 4, 1, 5, 2]),
        "CRD" => ([batch, left, n, n, rows, columns], [0, 1, 4, 2, 5, 3]),
        mode => return Err(Fail::form(format!("mode `{mode}`"))),
    };
    let x = lower.reshape(call.input(0)?, &apart)?;
    let x = lower.transpose(&x, &order)?;
    let too_large = "its result is larger than any memory";
    let (rows, columns) = (rows.checked_mul(n).ok_or(too_large)?, columns.checked_mul(n).ok_or(too_large)?);
    Ok(vec![lower.reshape(&x, &[batch, left, rows, columns])?])
}

fn space_to_depth(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let (n, [batch, channels, rows, columns]) = sizes(lower, call)?;
    if !rows.is_multiple_of(n) || !columns.is_multiple_of(n) {
        return Err(format!("{rows} by {columns} places are not whole blocks of {n} by {n}").into());
    }
    let (rows, columns) = (rows / n, columns / n);
    let x = lower.reshape(call.input(0)?, &[batch, channels, rows, n, columns, n])?;
    let order = match call.string("mode", "DCR")?.as_str() {
        "DCR" => [0, 3, 5, 1, 2, 4],
        "CRD" => [0, 1, 3, 5, 2, 4],
        mode => return Err(Fail::form(format!("mode `{mode}`"))),
    };
    let x = lower.transpose(&x, &order)?;
    let channels = channels.checked_mul(n * n).ok_or("its result is larger than any memory")?;
    Ok(vec![lower.reshape(&x, &[batch, channels, rows, columns])?])
}
