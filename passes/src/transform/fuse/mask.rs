//! Masks of attention: which ones are causal, and which must stay operands.

use super::Fuser;
use crate::transform::view;
use trainc_ir::ValueId;
use trainc_ir::op::{Elementwise, Literal, Movement};
use trainc_ir::{DType, Type};

/// A score lowered by this much has no weight: `e^-9999` is 0 in every precision.
const HIDDEN: f64 = -9999.0;
/// Scores replaced by a number below this one are hidden whatever the others are.
const FAR: f64 = -1e30;

/// What the masks of one attention come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mask {
    /// Position `s` of `S` sees positions up to `s + T - S` of `T` only.
    pub(super) causal: bool,
    /// A value that is added to the scores.
    pub(super) added: Option<ValueId>,
    /// Whether that value is known to have no infinities, so that a row that sees nothing is no NaN.
    pub(super) finite: bool,
}

impl Mask {
    /// Every position sees all.
    pub(super) const OPEN: Self = Self { causal: false, added: None, finite: true };
    const CAUSAL: Self = Self { causal: true, added: None, finite: true };

    /// Both masks on the same scores.
    pub(super) fn and(self, f: &mut Fuser, other: Self) -> Self {
        let added = match (self.added, other.added) {
            (Some(a), Some(b)) => Some(f.one(Elementwise::Add, &[a, b])),
            (one, None) | (None, one) => one,
        };
        Self { causal: self.causal || other.causal, added, finite: self.finite && other.finite }
    }
}

/// What the elements of a mask say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// Open or causal, where the mask hides or not and does it like one of them.
    shape: Option<Mask>,
    /// Whether it is constant and has no infinities.
    finite: bool,
}

/// Looks into a mask: `seen` says of an element whether the score stays, `None` where it is changed in another way.
fn look(f: &mut Fuser, value: ValueId, keep: bool, scores: &Type, seen: impl Fn(f64) -> Option<bool>) -> Known {
    let key = (value, keep, scores.clone());
    if let Some(known) = f.masks.get(&key) {
        return *known;
    }
    let known = match f.evaluator.value(f.builder.graph(), value) {
        None => Known { shape: None, finite: false },
        Some(mask) => {
            let elements = mask.to_f64s();
            let seen: Option<Vec<bool>> = elements.iter().map(|&v| seen(v)).collect();
            Known {
                shape: seen.and_then(|seen| pattern(&seen, &mask.stored, &scores.shape)),
                finite: elements.iter().all(|v| v.is_finite()),
            }
        }
    };
    f.masks.insert(key, known);
    known
}

/// A mask that is added to scores of this type. One that is trained stays visible to differentiation.
pub(super) fn added(f: &mut Fuser, value: ValueId, scores: &Type) -> Option<Mask> {
    if f.ty(value).dtype != scores.dtype || !fits(&f.ty(value).shape, &scores.shape) || f.has_parameter(value) {
        return None;
    }
    let known = look(f, value, true, scores, |v| if v == 0.0 { Some(true) } else { (v <= HIDDEN).then_some(false) });
    let finite = known.finite || chosen(f, value);
    Some(known.shape.unwrap_or(Mask { causal: false, added: Some(value), finite }))
}

/// Whether the value is one of two finite numbers everywhere.
fn chosen(f: &Fuser, value: ValueId) -> bool {
    let finite = |v: ValueId| view::uniform(f.graph(), v).is_some_and(f64::is_finite);
    if let Some((Movement::Broadcast { shape: _ } | Movement::Reshape { shape: _ }, source)) =
        view::movement(f.graph(), value)
    {
        return chosen(f, source);
    }
    view::elementwise(f.graph(), value, &Elementwise::Select).is_some_and(|c| finite(c[1]) && finite(c[2]))
}

/// A mask that replaces scores: `condition` says which are kept, or which are not; the others become `hidden`.
pub(super) fn replaced(
    f: &mut Fuser,
    condition: ValueId,
    keep_where: bool,
    hidden: f64,
    scores: &Type,
) -> Option<Mask> {
    if hidden > HIDDEN || !fits(&f.ty(condition).shape, &scores.shape) {
        return None;
    }
    let known = look(f, condition, keep_where, scores, |v| Some((v != 0.0) == keep_where));
    if known.shape.is_some() || hidden > FAR {
        return known.shape;
    }
    let zero = scalar(f, scores.dtype, 0.0);
    let hidden_value = scalar(f, scores.dtype, hidden);
    let (kept, dropped) = if keep_where { (zero, hidden_value) } else { (hidden_value, zero) };
    let value = f.one(Elementwise::Select, &[condition, kept, dropped]);
    Some(Mask { causal: false, added: Some(value), finite: hidden.is_finite() })
}

fn scalar(f: &mut Fuser, dtype: DType, value: f64) -> ValueId {
    f.builder.constant(Literal::splat_f64(Type::scalar(dtype), value))
}

fn fits(mask: &[u64], scores: &[u64]) -> bool {
    mask.len() <= scores.len() && mask.iter().rev().zip(scores.iter().rev()).all(|(&m, &s)| m == s || m == 1)
}

/// Open or causal, where `seen` over the `stored` shape is one of them for every batch and head.
fn pattern(seen: &[bool], stored: &[u64], scores: &[u64]) -> Option<Mask> {
    if seen.iter().all(|&s| s) {
        return Some(Mask::OPEN);
    }
    let &[.., s, t] = scores else { return None };
    let &[ref lead @ .., ms, mt] = stored else { return None };
    if lead.iter().any(|&d| d != 1) || t < s {
        return None;
    }
    let at = |i: u64, j: u64| seen[((i % ms) * mt + j % mt) as usize];
    let causal = (0..s).all(|i| (0..t).all(|j| at(i, j) == (j <= i + t - s)));
    causal.then_some(Mask::CAUSAL)
}
