//! Masks of attention: which ones are causal, and which must stay operands.
//!
//! A position that is hidden has no weight as long as another one of its row is not hidden. Where every position of a row
//! is hidden by a finite number, all of them have weight again, so that a causal mask of finite numbers next to another
//! mask that may hide what it leaves stays an operand. Where positions are hidden by -inf, a row that sees nothing is 0.

use super::Fuser;
use crate::transform::view;
use trainc_ir::ValueId;
use trainc_ir::op::{Elementwise, Literal, Movement};
use trainc_ir::{DType, Type};

/// A score lowered by this much has no weight: `e^-9999` is 0 in every precision.
const HIDDEN: f64 = -9999.0;
/// Sums nested deeper than any model's masks are not looked into.
const MAX_PARTS: usize = 4;
/// Scores replaced by a number below this one are hidden whatever the others are.
const FAR: f64 = -1e30;

/// What the masks of one attention come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mask {
    /// Position `s` of `S` sees positions up to `s + T - S` of `T` only.
    pub(super) causal: Option<Causal>,
    /// A value that is added to the scores.
    pub(super) added: Option<ValueId>,
    /// Whether that value is known to hold neither NaN nor +inf, so that a row of it gives no NaN.
    pub(super) sound: bool,
    /// Whether that value may hide positions.
    hides: bool,
}

/// How a causal mask hides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Causal {
    /// By -inf.
    Fully,
    /// By a finite number, and the value that is added to the scores where it is added.
    Finitely(Option<ValueId>),
}

impl Mask {
    /// Every position sees all.
    pub(super) const OPEN: Self = Self { causal: None, added: None, sound: true, hides: false };
    const CAUSAL: Self = Self { causal: Some(Causal::Fully), ..Self::OPEN };

    /// Both masks on the same scores.
    pub(super) fn and(self, f: &mut Fuser, other: Self) -> Self {
        Self {
            causal: match (self.causal, other.causal) {
                (Some(Causal::Fully), _) | (_, Some(Causal::Fully)) => Some(Causal::Fully),
                (one, other) => one.or(other),
            },
            added: sum(f, self.added, other.added),
            sound: self.sound && other.sound,
            hides: self.hides || other.hides,
        }
    }

    /// The mask of the operator; `None` where it has no such form.
    pub(super) fn settled(self, f: &mut Fuser) -> Option<Self> {
        match self.causal {
            Some(Causal::Finitely(dense)) if self.hides => {
                let added = sum(f, self.added, Some(dense?));
                Some(Self { causal: None, added, ..self })
            }
            Some(_) | None => Some(self),
        }
    }

    /// Whether numbers are added that a factor would change.
    pub(super) fn is_dense(self) -> bool {
        self.added.is_some()
    }
}

fn sum(f: &mut Fuser, a: Option<ValueId>, b: Option<ValueId>) -> Option<ValueId> {
    match (a, b) {
        (Some(a), Some(b)) => Some(f.one(Elementwise::Add, &[a, b])),
        (one, None) | (None, one) => one,
    }
}

/// What the elements of a mask say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// Open or causal, where the mask hides or not and does it like one of them.
    shape: Option<Shape>,
    /// Whether it holds neither NaN nor +inf.
    sound: bool,
    /// Whether an element hides a position.
    hides: bool,
    /// Whether what hides is -inf everywhere.
    fully: bool,
}

/// A mask that is no operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Open,
    Causal,
}

/// Looks into a mask: `seen` says of an element whether the score stays, `None` where it is changed in another way.
fn look(f: &mut Fuser, value: ValueId, keep: bool, scores: &Type, seen: impl Fn(f64) -> Option<bool>) -> Option<Known> {
    let key = (value, keep, scores.clone());
    if let Some(known) = f.masks.get(&key) {
        return *known;
    }
    let known = f.evaluator.value(f.builder.graph(), value).map(|mask| {
        let elements = mask.to_f64s();
        let seen: Option<Vec<bool>> = elements.iter().map(|&v| seen(v)).collect();
        Known {
            shape: seen.and_then(|seen| pattern(&seen, &mask.stored, &scores.shape)),
            sound: elements.iter().all(|&v| v < f64::INFINITY),
            hides: elements.iter().any(|&v| v <= HIDDEN),
            fully: elements.iter().all(|&v| v > HIDDEN || v == f64::NEG_INFINITY),
        }
    });
    f.masks.insert(key, known);
    known
}

/// A mask that is added to scores of this type; it may be trained.
pub(super) fn added(f: &mut Fuser, value: ValueId, scores: &Type) -> Option<Mask> {
    sum_of(f, value, scores, MAX_PARTS)
}

/// A mask that is added, of sums nested so deep.
fn sum_of(f: &mut Fuser, value: ValueId, scores: &Type, depth: usize) -> Option<Mask> {
    if f.ty(value).dtype != scores.dtype || !fits(&f.ty(value).shape, &scores.shape) {
        return None;
    }
    let seen = |v| if v == 0.0 { Some(true) } else { (v <= HIDDEN).then_some(false) };
    if let Some(known) = look(f, value, true, scores, seen) {
        return Some(match known.shape {
            Some(Shape::Open) => Mask::OPEN,
            Some(Shape::Causal) if known.fully => Mask::CAUSAL,
            Some(Shape::Causal) => Mask { causal: Some(Causal::Finitely(Some(value))), ..Mask::OPEN },
            None => Mask { added: Some(value), sound: known.sound, hides: known.hides, ..Mask::OPEN },
        });
    }
    // The parts of a sum may be known where the sum is not.
    if depth > 0
        && let Some(&[a, b]) = view::elementwise(f.graph(), value, &Elementwise::Add)
        && let (Some(a), Some(b)) = (sum_of(f, a, scores, depth - 1), sum_of(f, b, scores, depth - 1))
    {
        let apart = a.added.is_none() || b.added.is_none();
        let both = Mask { sound: a.sound && b.sound, hides: a.hides || b.hides, ..Mask::OPEN };
        return Some(if apart { a.and(f, b) } else { Mask { added: Some(value), ..both } });
    }
    if let Some((condition, keep_where, hidden)) = chosen(f, value) {
        if let Some(mask) = split(f, condition, keep_where, hidden, scores) {
            return Some(mask);
        }
        return Some(Mask { added: Some(value), sound: true, hides: true, ..Mask::OPEN });
    }
    let trained = f.has_parameter(value) && !f.has_data(value);
    Some(Mask { added: Some(value), sound: trained, hides: !trained, ..Mask::OPEN })
}

/// Condition, which of its values keeps a position, and the other number, of a value that is 0 or one number below 0.
fn chosen(f: &Fuser, mut value: ValueId) -> Option<(ValueId, bool, f64)> {
    while let Some((Movement::Broadcast { shape: _ } | Movement::Reshape { shape: _ }, source)) =
        view::movement(f.graph(), value)
    {
        value = source;
    }
    let &[condition, a, b] = view::elementwise(f.graph(), value, &Elementwise::Select)? else { return None };
    match (view::uniform(f.graph(), a)?, view::uniform(f.graph(), b)?) {
        (0.0, hidden) if hidden < 0.0 => Some((condition, true, hidden)),
        (hidden, 0.0) if hidden < 0.0 => Some((condition, false, hidden)),
        _ => None,
    }
}

/// Conditions that must both hold are masks of their own, where what they hide is hidden by -inf.
fn split(f: &mut Fuser, condition: ValueId, keep_where: bool, hidden: f64, scores: &Type) -> Option<Mask> {
    if hidden != f64::NEG_INFINITY {
        return None;
    }
    let op = if keep_where { Elementwise::And } else { Elementwise::Or };
    let &[a, b] = view::elementwise(f.graph(), condition, &op)? else { return None };
    let (a, b) = (replaced(f, a, keep_where, hidden, scores)?, replaced(f, b, keep_where, hidden, scores)?);
    (a.added.is_none() || b.added.is_none()).then(|| a.and(f, b))
}

/// A mask that replaces scores: `condition` says which are kept, or which are not; the others become `hidden`.
pub(super) fn replaced(
    f: &mut Fuser,
    condition: ValueId,
    keep_where: bool,
    hidden: f64,
    scores: &Type,
) -> Option<Mask> {
    if hidden.is_nan() || hidden > HIDDEN || !fits(&f.ty(condition).shape, &scores.shape) {
        return None;
    }
    let known =
        look(f, condition, keep_where, scores, |v| Some((v != 0.0) == keep_where)).and_then(|known| known.shape);
    if known == Some(Shape::Open) {
        return Some(Mask::OPEN);
    }
    if known == Some(Shape::Causal) && hidden == f64::NEG_INFINITY {
        return Some(Mask::CAUSAL);
    }
    if let Some(mask) = split(f, condition, keep_where, hidden, scores) {
        return Some(mask);
    }
    // A number that is added comes to the same as one that replaces only where it is far away.
    let far = hidden <= FAR;
    if !far {
        return (known == Some(Shape::Causal)).then_some(Mask { causal: Some(Causal::Finitely(None)), ..Mask::OPEN });
    }
    let (zero, number) = (scalar(f, scores.dtype, 0.0), scalar(f, scores.dtype, hidden));
    let (kept, dropped) = if keep_where { (zero, number) } else { (number, zero) };
    let value = f.one(Elementwise::Select, &[condition, kept, dropped]);
    Some(match known {
        Some(_) => Mask { causal: Some(Causal::Finitely(Some(value))), ..Mask::OPEN },
        None => Mask { added: Some(value), hides: true, ..Mask::OPEN },
    })
}

fn scalar(f: &mut Fuser, dtype: DType, value: f64) -> ValueId {
    f.builder.constant(Literal::splat_f64(Type::scalar(dtype), value))
}

fn fits(mask: &[u64], scores: &[u64]) -> bool {
    mask.len() <= scores.len() && mask.iter().rev().zip(scores.iter().rev()).all(|(&m, &s)| m == s || m == 1)
}

/// Open or causal, where `seen` over the `stored` shape is one of them for every batch and head.
fn pattern(seen: &[bool], stored: &[u64], scores: &[u64]) -> Option<Shape> {
    if seen.iter().all(|&s| s) {
        return Some(Shape::Open);
    }
    let &[.., s, t] = scores else { return None };
    let &[ref lead @ .., ms, mt] = stored else { return None };
    if lead.iter().any(|&d| d != 1) || t < s {
        return None;
    }
    let at = |i: u64, j: u64| seen[((i % ms) * mt + j % mt) as usize];
    let causal = (0..s).all(|i| (0..t).all(|j| at(i, j) == (j <= i + t - s)));
    causal.then_some(Shape::Causal)
}
