//! Resizing by whole factors to the nearest place, as up-sampling layers do: each place is repeated.

use super::Rule;
use crate::onnx::call::{Call, Fail, Results};
use crate::onnx::constant::Const;
use crate::onnx::lower::Lower;

pub(super) fn rule(op: &str) -> Option<Rule> {
    match op {
        "Resize" => Some(resize),
        "Upsample" => Some(upsample),
        _ => None,
    }
}

/// `(x, region, scales, sizes)`; one of the last two is given.
fn resize(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    only_nearest(call)?;
    if call.ints("axes")?.is_some() || call.int("antialias", 0)? != 0 {
        return Err(Fail::form("a resize of chosen axes, or with antialiasing"));
    }
    // The first before opset 11 and in PyTorch's up-sampling; the second is the default since then.
    let place = call.string("coordinate_transformation_mode", "half_pixel")?;
    let round = call.string("nearest_mode", "round_prefer_floor")?;
    let repeats = match place.as_str() {
        "asymmetric" => round == "floor",
        "half_pixel" | "half_pixel_symmetric" | "pytorch_half_pixel" => round.starts_with("round_prefer"),
        _ => false,
    };
    if !repeats && call.opset > 10 {
        return Err(Fail::form(format!("a resize with coordinates `{place}` and rounding `{round}`")));
    }
    let slot = if call.opset > 10 { 2 } else { 1 };
    let sizes = call.known_if_given(3, "sizes")?.filter(|known| known.n_stored() > 0).map(Const::ints);
    let shape = lower.shape(call.input(0)?);
    let factors = match sizes {
        Some(sizes) => shape.iter().zip(sizes).map(|(&own, size)| whole_ratio(size, own)).collect::<Option<Vec<_>>>(),
        None => factors_of(call, slot)?,
    };
    repeat(lower, call, &shape, factors)
}

/// The name of the operator before opset 10, with its scales as second operand.
fn upsample(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    only_nearest(call)?;
    let shape = lower.shape(call.input(0)?);
    let factors = factors_of(call, 1)?;
    repeat(lower, call, &shape, factors)
}

fn only_nearest(call: &Call<'_>) -> Result<(), Fail> {
    match call.string("mode", "nearest")?.as_str() {
        "nearest" => Ok(()),
        mode => Err(Fail::form(format!("a resize of mode `{mode}`: only `nearest` is"))),
    }
}

fn whole_ratio(size: i64, own: u64) -> Option<u64> {
    let size = u64::try_from(size).ok().filter(|&size| size > 0)?;
    size.checked_rem(own).filter(|&rest| rest == 0).map(|_| size / own)
}

/// The scales, where they all are whole.
fn factors_of(call: &Call<'_>, slot: usize) -> Result<Option<Vec<u64>>, Fail> {
    let scales = call.known(slot, "scales")?.floats();
    let whole = |&scale: &f64| (scale >= 1.0 && scale.fract() == 0.0 && scale < 65536.0).then_some(scale as u64);
    Ok(scales.iter().map(whole).collect())
}

/// Each axis `n` becomes `(n, factor)` by repetition, and then one axis.
fn repeat(lower: &mut Lower<'_>, call: &Call<'_>, shape: &[u64], factors: Option<Vec<u64>>) -> Results {
    let factors = factors.ok_or_else(|| Fail::form("a resize by a factor that is not a whole number"))?;
    if factors.len() != shape.len() {
        return Err(format!("{} factors are given for rank {}", factors.len(), shape.len()).into());
    }
    let (mut single, mut many, mut joined) = (Vec::new(), Vec::new(), Vec::new());
    for (&own, &factor) in shape.iter().zip(&factors) {
        single.push(own);
        many.push(own);
        if factor > 1 {
            single.push(1);
            many.push(factor);
        }
        joined.push(own.checked_mul(factor).ok_or("its result is larger than any memory")?);
    }
    let x = lower.reshape(call.input(0)?, &single)?;
    let x = lower.broadcast(&x, &many)?;
    Ok(vec![lower.reshape(&x, &joined)?])
}
