//! Attention: softmax of scaled, masked scores times values.

use super::Fuser;
use super::heads::{unrepeated, unscaled};
use super::mask::{self, Mask};
use crate::transform::view;
use trainc_ir::op::{Attention, Contraction, Elementwise, Movement, Normalization, Real};
use trainc_ir::{Graph, Op, Type, ValueId};

pub(super) fn fuse(f: &mut Fuser, value: ValueId) -> Option<ValueId> {
    let Product { a: weights, b: v, transpose_b: false } = product(f.graph(), value)? else { return None };
    let (softmax, guarded) = unguarded(f.graph(), weights);
    let node = &f.graph().nodes[f.graph().producer(softmax)?];
    if !matches!(node.op, Op::Normalization(Normalization::Softmax)) {
        return None;
    }
    let logits = node.inputs[0];
    let scores = f.ty(softmax).clone();
    let rank = scores.rank();
    if rank != 3 && rank != 4 {
        return None;
    }
    let Scores { q, k, scale, mask } = scores_of(f, logits, &scores)?;
    if guarded && !mask.finite {
        return None;
    }
    let op = Attention::Attention { scale: Real::new(scale), causal: mask.causal };
    let mut operands = vec![q, k, v];
    let single = (unrepeated(f.graph(), k), unrepeated(f.graph(), v));
    if rank == 3 {
        operands = operands.into_iter().map(|x| with_heads(f, x)).collect();
    } else if let (Some(k), Some(v)) = single
        && f.ty(k).shape[..3] == f.ty(v).shape[..3]
    {
        operands = vec![q, k, v];
    }
    if let Some(mask) = mask.added {
        let per_sample = rank == 3 && f.ty(mask).rank() == 3;
        operands.push(if per_sample { with_heads(f, mask) } else { mask });
    }
    let out = f.one(op, &operands);
    let ty = f.ty(value).clone();
    Some(if *f.ty(out) == ty { out } else { f.one(Movement::Reshape { shape: ty.shape }, &[out]) })
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
        if scale < 0.0 || (scale != 1.0 && found.added.is_some()) {
            return None;
        }
        mask = mask.and(f, found);
        inner = next;
    }
    let Product { a, b, transpose_b } = product(f.graph(), inner)?;
    let ((q, q_factor), (k, k_factor)) = (unscaled(f.graph(), a), unscaled(f.graph(), b));
    let k = if transpose_b { k } else { swapped(f, k) };
    Some(Scores { q, k, scale: scale * q_factor * k_factor, mask })
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
    if product(graph, inner).is_some() || depth == 0 {
        return depth > 0;
    }
    let through = |op: &Elementwise| view::elementwise(graph, inner, op).unwrap_or_default();
    let mut operands = through(&Elementwise::Add).iter().chain(through(&Elementwise::Select));
    operands.any(|&v| graph.ty(v) == graph.ty(value) && is_scores(graph, v, depth - 1))
}

/// `[n, s, d]` as `[n, 1, s, d]`: one head per sample.
fn with_heads(f: &mut Fuser, value: ValueId) -> ValueId {
    let mut shape = f.ty(value).shape.clone();
    shape.insert(1, 1);
    f.one(Movement::Reshape { shape }, &[value])
}
