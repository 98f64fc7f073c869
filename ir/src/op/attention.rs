//! Scaled dot-product attention and rotary position embedding.

use super::attr::{Real, family};
use super::normalization::stat_dtype;
use super::rule;
use crate::ty::Type;

family! {
    /// Operators of attention blocks. Heads come before positions: `[batch, heads, positions, head width]`.
    pub enum Attention {
        /// `(q[B,H,S,D], k[B,G,T,D], v[B,G,T,E] [, mask]) -> (out[B,H,S,E], lse[B,H,S])`: softmax(scale q k^T + mask) v.
        /// `G` divides `H` (grouped heads: query head `h` reads group `h G / H`). The mask is added to the scores and
        /// broadcasts to `[B,H,S,T]`; a row that sees nothing gives zeros. `lse` is the logarithm of the softmax denominator,
        /// f32 (f64 for f64).
        Attention = "attention" {
            /// Factor of the scores.
            scale: Real,
            /// Position `s` sees only positions up to `s + T - S`.
            causal: bool,
        },
        /// `(q, k, v [, mask], out, lse, dout) -> (dq, dk, dv)`.
        AttentionGrad = "attention_grad" {
            /// Factor of the scores.
            scale: Real,
            /// As in the forward.
            causal: bool,
        },
        /// `(q, k, v, mask, out, lse, dout) -> dmask`: the gradient of the scores, summed over what the mask was
        /// broadcast along. An operator of its own, so that masks that are not trained cost nothing, and a schedule can
        /// run it later.
        AttentionMaskGrad = "attention_mask_grad" {
            /// Factor of the scores.
            scale: Real,
            /// As in the forward.
            causal: bool,
        },
        /// `(x[.., S, D], cos[S, D], sin[S, D]) -> y`: `x cos + rotate(x) sin`, where `rotate([a, b]) = [-b, a]` over
        /// the two parts of the last axis.
        Rope = "rope" {
            /// Whether the parts are even and odd positions; else they are the halves.
            interleaved: bool,
        },
        /// `(dy, cos, sin) -> dx`.
        RopeGrad = "rope_grad" {
            /// As in the forward.
            interleaved: bool,
        },
    }
}

impl Attention {
    pub(crate) fn infer(&self, inputs: &[&Type]) -> Result<Vec<Type>, String> {
        match self {
            Self::Attention { scale: _, causal: _ } => {
                if inputs.len() != 3 && inputs.len() != 4 {
                    return Err(format!("expected 3 or 4 operands, found {}", inputs.len()));
                }
                let [out, lse] = forward(inputs[0], inputs[1], inputs[2], inputs.get(3).copied())?;
                Ok(vec![out, lse])
            }
            Self::AttentionGrad { scale: _, causal: _ } => {
                if inputs.len() != 6 && inputs.len() != 7 {
                    return Err(format!("expected 6 or 7 operands, found {}", inputs.len()));
                }
                let mask = if inputs.len() == 7 { Some(inputs[3]) } else { None };
                let [out, lse] = forward(inputs[0], inputs[1], inputs[2], mask)?;
                let rest = inputs.len() - 3;
                rule::is(inputs[rest], rest, &out)?;
                rule::is(inputs[rest + 1], rest + 1, &lse)?;
                rule::is(inputs[rest + 2], rest + 2, &out)?;
                Ok(inputs[..3].iter().map(|&t| t.clone()).collect())
            }
            Self::AttentionMaskGrad { scale: _, causal: _ } => {
                rule::arity(inputs, 7)?;
                let [out, lse] = forward(inputs[0], inputs[1], inputs[2], Some(inputs[3]))?;
                rule::is(inputs[4], 4, &out)?;
                rule::is(inputs[5], 5, &lse)?;
                rule::is(inputs[6], 6, &out)?;
                Ok(vec![inputs[3].clone()])
            }
            Self::Rope { interleaved: _ } | Self::RopeGrad { interleaved: _ } => {
                rule::arity(inputs, 3)?;
                let x = inputs[0];
                rule::float(x, 0)?;
                rule::rank_at_least(x, 0, 2)?;
                let table = Type::new(x.dtype, &x.shape[x.rank() - 2..]);
                rule::is(inputs[1], 1, &table)?;
                rule::is(inputs[2], 2, &table)?;
                if !table.shape[1].is_multiple_of(2) {
                    return Err(format!("the last dimension of {x} must be even"));
                }
                Ok(vec![x.clone()])
            }
        }
    }

    /// Score and value products; a causal mask halves them (positions that no query sees are not computed).
    pub(crate) fn flops(&self, inputs: &[&Type], outputs: &[&Type]) -> u64 {
        let products = |causal: bool, per_pair: u64| {
            let (q, k, v) = (&inputs[0].shape, &inputs[1].shape, &inputs[2].shape);
            let pairs = q[0] * q[1] * q[2] * k[2];
            let pairs = if causal { pairs.div_ceil(2) } else { pairs };
            per_pair * pairs * (q[3] + v[3])
        };
        match self {
            Self::Attention { scale: _, causal } | Self::AttentionMaskGrad { scale: _, causal } => products(*causal, 2),
            Self::AttentionGrad { scale: _, causal } => products(*causal, 5),
            Self::Rope { interleaved: _ } | Self::RopeGrad { interleaved: _ } => 3 * outputs[0].elements(),
        }
    }
}

fn forward(q: &Type, k: &Type, v: &Type, mask: Option<&Type>) -> Result<[Type; 2], String> {
    rule::float(q, 0)?;
    rule::same_dtype(q, k)?;
    rule::same_dtype(q, v)?;
    let (&[b, h, s, d], &[kb, g, t, kd], &[vb, vg, vt, e]) = (&q.shape[..], &k.shape[..], &v.shape[..]) else {
        return Err(format!("expected q, k and v of rank 4, found {q}, {k} and {v}"));
    };
    if kb != b || vb != b || vg != g || vt != t || kd != d || g == 0 || h % g != 0 {
        return Err(format!("q {q}, k {k} and v {v} do not fit together"));
    }
    if let Some(mask) = mask {
        rule::same_dtype(q, mask)?;
        let scores = vec![b, h, s, t];
        if rule::broadcast(&[&scores, &mask.shape])? != scores {
            return Err(format!("the mask {mask} does not broadcast to the scores {scores:?}"));
        }
    }
    Ok([Type::new(q.dtype, [b, h, s, e]), Type::new(stat_dtype(q.dtype), [b, h, s])])
}
