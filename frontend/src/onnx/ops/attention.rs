//! Attention and rotary embedding as operators of their own: opset 23's and ONNX Runtime's.

use super::Rule;
use crate::onnx::call::{Call, Fail, Operand, Results};
use crate::onnx::code;
use crate::onnx::constant::Const;
use crate::onnx::emit::number_of;
use crate::onnx::lower::Lower;
use trainc_ir::DType;
use trainc_ir::op::{Attention, Elementwise as E, Real};

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "Attention" => attention,
        "RotaryEmbedding" => |lower, call| rotary(lower, call, Tables { cos: 1, sin: 2, positions: 3 }),
        _ => return None,
    })
}

/// Rules of ONNX Runtime's domain.
pub(super) fn contrib_rule(op: &str) -> Option<Rule> {
    Some(match op {
        "Attention" => packed_attention,
        "MultiHeadAttention" => multi_head_attention,
        "RotaryEmbedding" => |lower, call| rotary(lower, call, Tables { cos: 2, sin: 3, positions: 1 }),
        _ => return None,
    })
}

/// What an attention is, however its operator spells it. Operands are `[batch, heads, positions, width]`.
pub(super) struct Heads {
    pub(super) q: Operand,
    pub(super) k: Operand,
    pub(super) v: Operand,
    /// Added to the scores, or where it is a bool, whether a position is seen.
    pub(super) mask: Option<Operand>,
    pub(super) causal: bool,
    /// Factor of the scores; one over the root of the width where it is left out.
    pub(super) scale: Option<f64>,
}

/// The attention's result, `[batch, heads, positions, width]`.
pub(super) fn attend(lower: &mut Lower<'_>, heads: Heads) -> Result<Operand, Fail> {
    let width = *lower.shape(&heads.q).last().ok_or("attention of scalars")?;
    let scale = Real::new(heads.scale.unwrap_or(1.0 / (width as f64).sqrt()));
    let op = Attention::Attention { scale, causal: heads.causal };
    let Some(mask) = heads.mask else { return lower.emit_one(op, &[&heads.q, &heads.k, &heads.v]) };
    let dtype = lower.ty(&heads.q).dtype;
    let mask = if lower.ty(&mask).dtype == DType::Bool {
        let (zero, hidden) = (number_of(dtype, 0.0), number_of(dtype, lowest(dtype)));
        lower.elementwise(E::Select, &[&mask, &zero, &hidden])?
    } else {
        lower.cast(&mask, dtype)?
    };
    lower.emit_one(op, &[&heads.q, &heads.k, &heads.v, &mask])
}

/// The lowest finite number, as exporters write for a hidden position.
fn lowest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => -65504.0,
        DType::BF16 => -3.389_531_389_251_535_5e38,
        DType::F64 => f64::MIN,
        DType::F32 | DType::Bool | DType::U8 | DType::I8 | DType::I32 | DType::I64 => f64::from(f32::MIN),
    }
}

/// `[batch, positions, heads * width]` as `[batch, heads, positions, width]`.
pub(super) fn split_heads(lower: &mut Lower<'_>, x: &Operand, n_heads: u64) -> Result<Operand, Fail> {
    let shape = lower.shape(x);
    let &[batch, positions, width] = &shape[..] else {
        return Err(format!("[batch, positions, width] is expected, found shape {shape:?}").into());
    };
    if n_heads == 0 || width % n_heads != 0 {
        return Err(format!("{n_heads} heads do not divide width {width}").into());
    }
    let apart = lower.reshape(x, &[batch, positions, n_heads, width / n_heads])?;
    lower.transpose(&apart, &[0, 2, 1, 3])
}

/// The inverse of [`split_heads`].
pub(super) fn join_heads(lower: &mut Lower<'_>, x: &Operand) -> Result<Operand, Fail> {
    let shape = lower.shape(x);
    let turned = lower.transpose(x, &[0, 2, 1, 3])?;
    lower.reshape(&turned, &[shape[0], shape[2], shape[1] * shape[3]])
}

fn count(call: &Call<'_>, name: &str) -> Result<u64, Fail> {
    let found = call.int(name, 0)?;
    let positive = u64::try_from(found).ok().filter(|&n| n > 0);
    positive.ok_or_else(|| {
        Fail::new(code::BAD_ATTRIBUTE, format!("its attribute `{name}` must be positive, found {found}"))
    })
}

fn attention(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    if call.float("softcap", 0.0)? != 0.0 {
        return Err(Fail::form("an attention with softcap"));
    }
    let is_flat = lower.rank(call.input(0)?) == 3;
    let mut head = |slot: usize, name: &str| {
        let x = call.input(slot)?;
        if is_flat { split_heads(lower, x, count(call, name)?) } else { Ok(x.clone()) }
    };
    let q = head(0, "q_num_heads")?;
    let (mut k, mut v) = (head(1, "kv_num_heads")?, head(2, "kv_num_heads")?);
    if let (Some(past_k), Some(past_v)) = (call.optional(4), call.optional(5)) {
        k = lower.concat(&[past_k, &k], 2)?;
        v = lower.concat(&[past_v, &v], 2)?;
    }
    let causal = call.flag("is_causal", false)?;
    if causal && lower.shape(&q)[2] != lower.shape(&k)[2] {
        return Err(Fail::form("a causal attention over unequal numbers of positions"));
    }
    let scale = if call.has("scale") { Some(call.float("scale", 1.0)?) } else { None };
    let mask = call.optional(3).cloned();
    let y = attend(lower, Heads { q, k: k.clone(), v: v.clone(), mask, causal, scale })?;
    let y = if is_flat { join_heads(lower, &y)? } else { y };
    Ok(vec![y, k, v])
}

/// `x W + b` gives queries, keys and values at once.
fn packed_attention(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    if call.optional(4).is_some() || call.has("qkv_hidden_sizes") || call.flag("do_rotary", false)? {
        return Err(Fail::form("an attention with a past, uneven widths, or rotary embedding inside"));
    }
    let n_heads = count(call, "num_heads")?;
    let mut packed = lower.matmul(call.input(0)?, call.input(1)?)?;
    if let Some(bias) = call.optional(2) {
        packed = lower.elementwise(E::Add, &[&packed, bias])?;
    }
    let width = lower.shape(&packed)[2] / 3;
    let mut third = |i: u64| -> Result<Operand, Fail> {
        let part = lower.narrow(&packed, 2, i * width, (i + 1) * width)?;
        split_heads(lower, &part, n_heads)
    };
    let (q, k, v) = (third(0)?, third(1)?, third(2)?);
    let mask = key_mask(lower, call.optional(3), &k)?;
    let bias = call.optional(5).cloned();
    let mask = both(lower, mask, bias)?;
    let scale = if call.has("scale") { Some(call.float("scale", 1.0)?) } else { None };
    let causal = call.flag("unidirectional", false)?;
    let y = attend(lower, Heads { q, k, v, mask, causal, scale })?;
    Ok(vec![join_heads(lower, &y)?])
}

fn multi_head_attention(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let n_heads = count(call, "num_heads")?;
    if (6..8).any(|slot| call.optional(slot).is_some()) {
        return Err(Fail::form("an attention with a past"));
    }
    if [0, 1, 2].iter().any(|&slot| call.optional(slot).is_none_or(|x| lower.rank(x) != 3)) {
        return Err(Fail::form("packed queries, keys and values"));
    }
    let mut parts = Vec::new();
    let mut offset = 0;
    for slot in 0..3 {
        let mut part = call.input(slot)?.clone();
        if let Some(bias) = call.optional(3) {
            let width = lower.shape(&part)[2];
            let own = lower.narrow(bias, 0, offset, offset + width)?;
            offset += width;
            part = lower.elementwise(E::Add, &[&part, &own])?;
        }
        parts.push(split_heads(lower, &part, n_heads)?);
    }
    let v = parts.remove(2);
    let k = parts.remove(1);
    let mask = key_mask(lower, call.optional(4), &k)?;
    let mask = both(lower, mask, call.optional(5).cloned())?;
    let scale = if call.has("scale") { Some(call.float("scale", 1.0)?) } else { None };
    let causal = call.flag("unidirectional", false)?;
    let y = attend(lower, Heads { q: parts.remove(0), k, v, mask, causal, scale })?;
    Ok(vec![join_heads(lower, &y)?])
}

/// A `[batch, positions]` mask of seen keys, as what is added to the scores.
fn key_mask(lower: &mut Lower<'_>, mask: Option<&Operand>, k: &Operand) -> Result<Option<Operand>, Fail> {
    let Some(mask) = mask else { return Ok(None) };
    let (keys, shape) = (lower.shape(k), lower.shape(mask));
    if shape != [keys[0], keys[2]] {
        return Err(Fail::form(format!("a mask of shape {shape:?}")));
    }
    let wide = lower.reshape(mask, &[shape[0], 1, 1, shape[1]])?;
    let seen = lower.with_number(E::Ne, &wide, 0.0)?;
    let dtype = lower.ty(k).dtype;
    let (zero, hidden) = (number_of(dtype, 0.0), number_of(dtype, lowest(dtype)));
    Ok(Some(lower.elementwise(E::Select, &[&seen, &zero, &hidden])?))
}

fn both(lower: &mut Lower<'_>, a: Option<Operand>, b: Option<Operand>) -> Result<Option<Operand>, Fail> {
    match (a, b) {
        (Some(a), Some(b)) => Ok(Some(lower.elementwise(E::Add, &[&a, &b])?)),
        (a, b) => Ok(a.or(b)),
    }
}

/// Which inputs hold the tables and the positions.
#[derive(Clone, Copy)]
struct Tables {
    cos: usize,
    sin: usize,
    positions: usize,
}

/// The tables have half the width: `[positions, width / 2]`, or one row for every position of every sample.
fn rotary(lower: &mut Lower<'_>, call: &Call<'_>, tables: Tables) -> Results {
    let x = call.input(0)?;
    let interleaved = call.flag("interleaved", false)?;
    let is_flat = lower.rank(x) == 3;
    let heads = if is_flat {
        let head_width = 2 * lower.shape(call.input(tables.cos)?).last().copied().unwrap_or(0);
        let width = lower.shape(x)[2];
        let n_heads = if call.int("num_heads", 0)? > 0 { count(call, "num_heads")? } else { width / head_width.max(1) };
        split_heads(lower, x, n_heads)?
    } else {
        x.clone()
    };
    let shape = lower.shape(&heads);
    let &[_, _, positions, width] = &shape[..] else {
        return Err(format!("[batch, heads, positions, width] is expected, found shape {shape:?}").into());
    };
    let turned = call.int("rotary_embedding_dim", 0)?;
    if turned != 0 && u64::try_from(turned) != Ok(width) {
        return Err(Fail::form("rotary embedding of a part of the width"));
    }
    let mut rows = |slot: usize| -> Result<Operand, Fail> {
        let table = call.input(slot)?.clone();
        let table = match call.optional(tables.positions) {
            Some(which) if lower.ty(which).elements() > 1 => lower.gather(&table, which, 0)?,
            Some(which) if lower.rank(&table) == 2 => {
                let first = which.known().and_then(Const::uniform_int).unwrap_or(-1);
                let first = u64::try_from(first).map_err(|_| Fail::form("a start known only at run time"))?;
                lower.narrow(&table, 0, first, first + positions)?
            }
            Some(_) | None => table,
        };
        let shape = lower.shape(&table);
        let lead = if shape.len() == 3 { shape[0] } else { 1 };
        if interleaved {
            // Each entry stands for two neighbours.
            let table = lower.reshape(&table, &[lead, 1, positions, width / 2, 1])?;
            let twice = lower.concat(&[&table, &table], 4)?;
            return lower.reshape(&twice, &[lead, 1, positions, width]);
        }
        let table = lower.reshape(&table, &[lead, 1, positions, width / 2])?;
        lower.concat(&[&table, &table], 3)
    };
    let (cos, sin) = (rows(tables.cos)?, rows(tables.sin)?);
    if interleaved {
        let shape = lower.shape(&cos);
        if shape[0] != 1 {
            return Err(Fail::form("interleaved rotary embedding with positions of each sample"));
        }
        let (cos, sin) = (lower.reshape(&cos, &shape[2..])?, lower.reshape(&sin, &shape[2..])?);
        let y = lower.emit_one(Attention::Rope { interleaved }, &[&heads, &cos, &sin])?;
        return Ok(vec![if is_flat { join_heads(lower, &y)? } else { y }]);
    }
    let low = lower.narrow(&heads, 3, 0, width / 2)?;
    let high = lower.narrow(&heads, 3, width / 2, width)?;
    let minus = lower.elementwise(E::Neg, &[&high])?;
    let half_turn = lower.concat(&[&minus, &low], 3)?;
    let straight = lower.elementwise(E::Mul, &[&heads, &cos])?;
    let across = lower.elementwise(E::Mul, &[&half_turn, &sin])?;
    let y = lower.elementwise(E::Add, &[&straight, &across])?;
    Ok(vec![if is_flat { join_heads(lower, &y)? } else { y }])
}
