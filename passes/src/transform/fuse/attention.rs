//! Attention: softmax of scaled, masked scores times values.

use super::Fuser;
use super::heads::{shared, unscaled};
use super::mask::{self, Mask};
use super::product::close;
use crate::transform::view;
use trainc_ir::op::{Attention, Contraction, Elementwise, Movement, Normalization, Random, Real};
use trainc_ir::{DType, Graph, Op, Type, ValueId};

/// Why a product of a softmax and something else is no attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Miss {
    /// There is no softmax behind its first operand.
    NoSoftmax,
    /// Weights go through dropout.
    Dropout,
    /// Scores of this rank.
    Rank(usize),
    /// The scores are no product of queries and keys.
    Scores,
    /// A guard against rows that see nothing, with a mask that may be more than a mask.
    Guard,
    /// Softmax in another element type than the products.
    Precision,
}

impl Miss {
    /// In words.
    pub(super) fn reason(self) -> String {
        match self {
            Self::NoSoftmax => "its result is not multiplied with values".to_owned(),
            Self::Dropout => "the fused operator has no dropout between weights and values".to_owned(),
            Self::Rank(rank) => format!("its scores have rank {rank}"),
            Self::Scores => "its scores are more than a scaled, masked product of queries and keys".to_owned(),
            Self::Guard => "it is guarded against NaN, and its mask may hold other things than numbers".to_owned(),
            Self::Precision => "its element type is another than that of the products".to_owned(),
        }
    }
}

pub(super) fn fuse(f: &mut Fuser, value: ValueId) -> Option<ValueId> {
    recognise(f, value).ok()
}

/// The fused form of a product, or why there is none.
pub(super) fn recognise(f: &mut Fuser, value: ValueId) -> Result<ValueId, Miss> {
    let Some(Product { a: weights, b: v, transpose_b: false }) = product(f.graph(), value) else {
        return Err(Miss::NoSoftmax);
    };
    let (softmax, guarded) = unguarded(f.graph(), uncast(f.graph(), weights));
    let node = f.graph().producer(softmax).map(|node| &f.graph().nodes[node]).ok_or(Miss::NoSoftmax)?;
    match node.op {
        Op::Normalization(Normalization::Softmax) => {}
        Op::Random(Random::Dropout { p: _, site: _ }) => return Err(dropped(f.graph(), node.inputs[0])),
        _ => return Err(Miss::NoSoftmax),
    }
    let logits = node.inputs[0];
    let scores = f.ty(softmax).clone();
    let rank = scores.rank();
    if rank != 3 && rank != 4 {
        return Err(Miss::Rank(rank));
    }
    let Scores { q, k, scale, mask } = scores_of(f, logits, &scores).ok_or(Miss::Scores)?;
    let dtype = f.ty(q).dtype;
    if dtype != f.ty(v).dtype || (dtype != scores.dtype && mask.added.is_some()) {
        return Err(Miss::Precision);
    }
    if guarded && !mask.sound {
        return Err(Miss::Guard);
    }
    let op = Attention::Attention { scale: Real::new(scale), causal: mask.causal.is_some() };
    let mut operands = vec![q, k, v];
    if rank == 3 {
        operands = operands.into_iter().map(|x| with_heads(f, x)).collect();
    } else if let Some((k, v)) = shared(f, k, v) {
        operands = vec![q, k, v];
    }
    if let Some(mask) = mask.added {
        let per_sample = rank == 3 && f.ty(mask).rank() == 3;
        operands.push(if per_sample { with_heads(f, mask) } else { mask });
    }
    let out = f.one(op, &operands);
    let ty = f.ty(value).clone();
    Ok(if *f.ty(out) == ty { out } else { f.one(Movement::Reshape { shape: ty.shape }, &[out]) })
}

/// Why a product of something that went through dropout is no attention.
fn dropped(graph: &Graph, value: ValueId) -> Miss {
    let (value, _) = unguarded(graph, uncast(graph, value));
    match graph.producer_op(value) {
        Some(Op::Normalization(Normalization::Softmax)) => Miss::Dropout,
        Some(_) | None => Miss::NoSoftmax,
    }
}

/// A product of operands of equal ranks.
struct Product {
    a: ValueId,
    b: ValueId,
    transpose_b: bool,
}

fn product(graph: &Graph, value: ValueId) -> Option<Product> {
    let node = &graph.nodes[graph.producer(value)?];
    let Op::Contraction(Contraction::MatMul { transpose_a: false, transpose_b }) = node.op else { return None };
    let (a, b) = (node.inputs[0], node.inputs[1]);
    (graph.ty(a).rank() == graph.ty(b).rank()).then_some(Product { a, b, transpose_b })
}

/// The value behind a cast between float types one of which is narrow: a softmax in single precision between products
/// in half precision is what the operator does inside.
fn uncast(graph: &Graph, value: ValueId) -> ValueId {
    let to = graph.ty(value).dtype;
    let source = view::elementwise(graph, value, &Elementwise::Cast { to }).map(|operands| operands[0]);
    let narrow = |dtype: DType| matches!(dtype, DType::F16 | DType::BF16);
    let source = source.filter(|&source| {
        let from = graph.ty(source).dtype;
        (narrow(from) && to == DType::F32) || (from == DType::F32 && narrow(to))
    });
    source.unwrap_or(value)
}

/// What scores are made of.
struct Scores {
    q: ValueId,
    k: ValueId,
    scale: f64,
    mask: Mask,
}

/// Takes factors and masks off the scores, from the outside to the product of queries and keys.
fn scores_of(f: &mut Fuser, logits: ValueId, scores: &Type) -> Option<Scores> {
    let (mut inner, mut scale, mut mask) = (logits, 1.0, Mask::OPEN);
    loop {
        let (unscaled, factor) = unscaled(f.graph(), inner);
        (inner, scale) = (unscaled, scale * factor);
        let Some((next, found)) = masked(f, inner, scores) else { break };
        // A factor outside of a mask would scale the mask as well.
        if scale < 0.0 || (!close(scale, 1.0) && found.is_dense()) {
            return None;
        }
        mask = mask.and(f, found);
        inner = next;
    }
    let narrow = uncast(f.graph(), inner);
    let (inner, factor) = unscaled(f.graph(), narrow);
    let Product { a, b, transpose_b } = product(f.graph(), inner)?;
    let ((q, q_factor), (k, k_factor)) = (unscaled(f.graph(), a), unscaled(f.graph(), b));
    let k = if transpose_b { k } else { swapped(f, k) };
    // Keys are scaled before or after they are turned.
    let (k, turned_factor) = unscaled(f.graph(), k);
    let scale = scale * factor * q_factor * k_factor * turned_factor;
    Some(Scores { q, k, scale, mask: mask.settled(f)? })
}

/// The value with its last two axes exchanged.
fn swapped(f: &mut Fuser, value: ValueId) -> ValueId {
    let rank = f.ty(value).rank();
    let (source, mut perm) = match view::movement(f.graph(), value) {
        Some((Movement::Transpose { perm }, source)) => (source, perm.clone()),
        _ => (value, (0..rank as u64).collect()),
    };
    perm.swap(rank - 1, rank - 2);
    if perm.is_sorted() { source } else { f.one(Movement::Transpose { perm }, &[source]) }
}

/// The value behind `is_nan(p) ? 0 : p`, and whether there was such a guard.
fn unguarded(graph: &Graph, value: ValueId) -> (ValueId, bool) {
    let guard = || {
        let &[condition, a, b] = view::elementwise(graph, value, &Elementwise::Select)? else { return None };
        let nan = view::elementwise(graph, condition, &Elementwise::IsNan)?[0];
        (view::uniform(graph, a) == Some(0.0) && nan == b).then_some(b)
    };
    guard().map_or((value, false), |inner| (inner, true))
}

/// The scores under one mask, and the mask.
fn masked(f: &mut Fuser, value: ValueId, scores: &Type) -> Option<(ValueId, Mask)> {
    let behind = |f: &Fuser, v: ValueId| f.ty(v) == scores && is_scores(f.graph(), v, MAX_MASKS);
    if let Some(&[a, b]) = view::elementwise(f.graph(), value, &Elementwise::Add) {
        let (inner, added) = [(a, b), (b, a)].into_iter().find(|&(inner, _)| behind(f, inner))?;
        return mask::added(f, added, scores).map(|mask| (inner, mask));
    }
    if let Some(&[inner, taken]) = view::elementwise(f.graph(), value, &Elementwise::Sub) {
        if !behind(f, inner) {
            return None;
        }
        let added = f.one(Elementwise::Neg, &[taken]);
        return mask::added(f, added, scores).map(|mask| (inner, mask));
    }
    let &[condition, a, b] = view::elementwise(f.graph(), value, &Elementwise::Select)? else { return None };
    let (inner, hidden, keep_where) = match (view::uniform(f.graph(), a), view::uniform(f.graph(), b)) {
        (None, Some(hidden)) => (a, hidden, true),
        (Some(hidden), None) => (b, hidden, false),
        (Some(_), Some(_)) | (None, None) => return None,
    };
    if f.ty(inner) != scores {
        return None;
    }
    mask::replaced(f, condition, keep_where, hidden, scores).map(|mask| (inner, mask))
}

/// Deeper nests of masks than any model has.
const MAX_MASKS: usize = 4;

/// Whether a product of queries and keys is behind the value, through factors and masks.
fn is_scores(graph: &Graph, value: ValueId, depth: usize) -> bool {
    let (inner, _) = unscaled(graph, value);
    let (narrow, _) = unscaled(graph, uncast(graph, inner));
    if product(graph, narrow).is_some() || depth == 0 {
        return depth > 0;
    }
    let through = |op: &Elementwise| view::elementwise(graph, inner, op).unwrap_or_default();
    let first = through(&Elementwise::Sub).iter().take(1);
    let mut operands = through(&Elementwise::Add).iter().chain(first).chain(through(&Elementwise::Select));
    operands.any(|&v| graph.ty(v) == graph.ty(value) && is_scores(graph, v, depth - 1))
}

/// `[n, s, d]` as `[n, 1, s, d]`: one head per sample.
fn with_heads(f: &mut Fuser, value: ValueId) -> ValueId {
    let mut shape = f.ty(value).shape.clone();
    shape.insert(1, 1);
    f.one(Movement::Reshape { shape }, &[value])
}
