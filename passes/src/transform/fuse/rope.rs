//! Rotary position embedding in its spellings: `x cos + rotate_half(x) sin`, or both parts on their own; parts are halves
//! of the last axis, or its even and odd positions.

use super::Fuser;
use super::product::{factors, sums};
use crate::transform::view;
use trainc_ir::op::{Attention, Elementwise, Movement};
use trainc_ir::{Def, Graph, Op, ValueId};

/// How the last axis is taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parts {
    Halves,
    EvenAndOdd,
}

/// A rotation: of what, by which tables.
struct Rotation {
    x: ValueId,
    cos: ValueId,
    sin: ValueId,
    parts: Parts,
}

/// The fused form of a sum.
pub(super) fn fuse(f: &mut Fuser, value: ValueId) -> Option<ValueId> {
    let Rotation { x, cos, sin, parts } = whole(f.graph(), value)?;
    if f.ty(value) != f.ty(x) {
        return None;
    }
    let axis = positions(f, x, &[cos, sin], 1)?;
    emit(f, x, (cos, sin), axis, parts)
}

/// The fused form of two parts that are joined.
pub(super) fn fuse_joined(f: &mut Fuser, value: ValueId) -> Option<ValueId> {
    let (first, second, parts) = joined(f.graph(), value)?;
    let (a, b) = (difference(f.graph(), first)?, total(f.graph(), second)?);
    let (x, low) = part(f.graph(), a.straight, parts)?;
    let (same, high) = part(f.graph(), a.across, parts)?;
    // The second part is the other one straight and the first one across, in either order.
    let b = if b.straight == a.across {
        b
    } else {
        Turned { straight: b.across, across: b.straight, cos: b.sin, sin: b.cos }
    };
    let turns = b.straight == a.across && b.across == a.straight;
    if x != same || (low, high) != (0, 1) || !turns || f.ty(value) != f.ty(x) {
        return None;
    }
    let axis = positions(f, x, &[a.cos, a.sin, b.cos, b.sin], 2)?;
    let width = f.ty(x).shape.last().copied()?;
    let length = f.ty(x).shape[axis];
    let mut table = |a: ValueId, b: ValueId| {
        let shape = if parts == Parts::Halves { vec![length, width / 2] } else { vec![length, width / 2, 1] };
        let (a, b) = (f.reshape(a, shape.clone()), f.reshape(b, shape.clone()));
        let both = f.one(Movement::Concat { axis: shape.len() as u64 - 1 }, &[a, b]);
        f.reshape(both, vec![length, width])
    };
    let tables = (table(a.cos, b.cos), table(a.sin, b.sin));
    emit(f, x, tables, axis, parts)
}

/// Why a rotation is not fused.
pub(super) fn almost(f: &mut Fuser, value: ValueId) -> Option<&'static str> {
    let Rotation { x, cos, sin, parts: _ } = whole(f.graph(), value)?;
    if f.has_parameter(cos) || f.has_parameter(sin) {
        return Some("its tables are trained");
    }
    if positions(f, x, &[cos, sin], 1).is_none() {
        return Some("its tables differ between samples or heads");
    }
    Some("its result has another type than its operand")
}

/// The axis of positions, where all tables fit the value and its last axis cut into `divisor` parts. Tables get no
/// gradient, so trained ones stay visible to differentiation.
fn positions(f: &mut Fuser, x: ValueId, tables: &[ValueId], divisor: u64) -> Option<usize> {
    if tables.iter().any(|&table| f.has_parameter(table)) {
        return None;
    }
    let ty = f.ty(x);
    let rank = ty.rank();
    let width = *ty.shape.last()? / divisor;
    let fits = |axis: usize, table: ValueId| {
        let found = f.ty(table);
        let mut wanted = vec![1; rank];
        (wanted[axis], wanted[rank - 1]) = (ty.shape[axis], width);
        let lead = rank.saturating_sub(found.rank());
        found.dtype == ty.dtype && found.rank() <= rank && found.shape[..] == wanted[lead..] && axis >= lead
    };
    let candidates = [rank.checked_sub(2), rank.checked_sub(3)];
    candidates.into_iter().flatten().find(|&axis| tables.iter().all(|&table| fits(axis, table)))
}

/// The operator, which wants positions before the last axis.
fn emit(f: &mut Fuser, x: ValueId, (cos, sin): (ValueId, ValueId), axis: usize, parts: Parts) -> Option<ValueId> {
    let ty = f.ty(x).clone();
    let rank = ty.rank();
    if !ty.dtype.is_float() || !ty.shape[rank - 1].is_multiple_of(2) {
        return None;
    }
    let table = vec![ty.shape[axis], ty.shape[rank - 1]];
    let (cos, sin) = (f.reshape(cos, table.clone()), f.reshape(sin, table));
    let op = Attention::Rope { interleaved: parts == Parts::EvenAndOdd };
    if axis == rank - 2 {
        return Some(f.one(op, &[x, cos, sin]));
    }
    let mut perm: Vec<u64> = (0..rank as u64).collect();
    perm.swap(axis, rank - 2);
    let turned = f.one(Movement::Transpose { perm: perm.clone() }, &[x]);
    let y = f.one(op, &[turned, cos, sin]);
    Some(f.one(Movement::Transpose { perm }, &[y]))
}

/// `x cos + rotate_half(x) sin`.
fn whole(graph: &Graph, value: ValueId) -> Option<Rotation> {
    sums(graph, value).into_iter().find_map(|(direct, turned)| {
        let (x, sin, parts) = factors(graph, turned).into_iter().find_map(|(half, sin)| {
            let (x, parts) = rotated(graph, half)?;
            Some((x, sin, parts))
        })?;
        let (_, cos) = factors(graph, direct).into_iter().find(|&(found, _)| found == x)?;
        Some(Rotation { x, cos, sin, parts })
    })
}

/// `straight cos` and `across sin`.
#[derive(Clone, Copy, Debug)]
struct Turned {
    straight: ValueId,
    across: ValueId,
    cos: ValueId,
    sin: ValueId,
}

/// `a cos - b sin`, where `a` and `b` are parts of one value.
fn difference(graph: &Graph, value: ValueId) -> Option<Turned> {
    let &[a, b] = view::elementwise(graph, value, &Elementwise::Sub)? else { return None };
    turned(graph, a, b)
}

/// `a cos + b sin`.
fn total(graph: &Graph, value: ValueId) -> Option<Turned> {
    let &[a, b] = view::elementwise(graph, value, &Elementwise::Add)? else { return None };
    turned(graph, a, b)
}

fn turned(graph: &Graph, a: ValueId, b: ValueId) -> Option<Turned> {
    let one = |value: ValueId| {
        let is_part =
            |v: ValueId| part(graph, v, Parts::Halves).is_some() || part(graph, v, Parts::EvenAndOdd).is_some();
        factors(graph, value).into_iter().find(|&(x, table)| is_part(x) && !is_part(table))
    };
    let ((straight, cos), (across, sin)) = (one(a)?, one(b)?);
    Some(Turned { straight, across, cos, sin })
}

/// `x` of `[-b, a]`, where `a` and `b` are the parts of `x` along the last axis.
fn rotated(graph: &Graph, value: ValueId) -> Option<(ValueId, Parts)> {
    let (minus, first, parts) = joined(graph, value)?;
    let second = view::elementwise(graph, minus, &Elementwise::Neg)?[0];
    let ((x, low), (same, high)) = (part(graph, first, parts)?, part(graph, second, parts)?);
    (x == same && (low, high) == (0, 1)).then_some((x, parts))
}

/// What is joined along the last axis, as halves or in turns.
fn joined(graph: &Graph, value: ValueId) -> Option<(ValueId, ValueId, Parts)> {
    let rank = graph.ty(value).rank();
    let concat = |value: ValueId| {
        let node = &graph.nodes[graph.producer(value)?];
        let Op::Movement(Movement::Concat { axis }) = node.op else { return None };
        let &[a, b] = &node.inputs[..] else { return None };
        (axis as usize + 1 == graph.ty(value).rank()).then_some((a, b))
    };
    if rank < 2 {
        return None;
    }
    if let Some((a, b)) = concat(value) {
        return Some((a, b, Parts::Halves));
    }
    // Each as a column, `[.., d, 1]`, side by side.
    let (Movement::Reshape { shape: _ }, columns) = view::movement(graph, value)? else { return None };
    let column = |value: ValueId| {
        let (Movement::Reshape { shape }, source) = view::movement(graph, value)? else { return None };
        let (&one, rows) = shape.split_last()?;
        (one == 1 && graph.ty(source).shape == rows).then_some(source)
    };
    let (a, b) = concat(columns)?;
    let (a, b) = (column(a)?, column(b)?);
    let (&[ref lead @ .., width], part) = (&graph.ty(value).shape[..], &graph.ty(a).shape) else { return None };
    let in_turns = part.len() == rank && part[..rank - 1] == *lead && 2 * part[rank - 1] == width;
    in_turns.then_some((a, b, Parts::EvenAndOdd))
}

/// The value that this is a part of along the last axis, and which part it is, 0 or 1.
fn part(graph: &Graph, value: ValueId, parts: Parts) -> Option<(ValueId, u64)> {
    match parts {
        Parts::Halves => half(graph, value),
        Parts::EvenAndOdd => every_other(graph, value),
    }
}

/// The value that this is half of, and which half.
fn half(graph: &Graph, value: ValueId) -> Option<(ValueId, u64)> {
    let (x, start) = window(graph, value)?;
    let width = *graph.ty(value).shape.last()?;
    (*graph.ty(x).shape.last()? == 2 * width && start % width == 0).then_some((x, start / width))
}

/// The value whose even (0) or odd (1) positions these are: a strided slice, or a column of pairs.
fn every_other(graph: &Graph, value: ValueId) -> Option<(ValueId, u64)> {
    let (op, x) = view::movement(graph, value)?;
    let ty = graph.ty(value);
    let last = ty.rank().checked_sub(1)?;
    if let Movement::Slice { starts, ends: _, steps } = op {
        let source = &graph.ty(x).shape;
        let strided = source[last] == 2 * ty.shape[last] && steps[last] == 2 && source[..last] == ty.shape[..last];
        let plain = steps[..last].iter().all(|&s| s == 1) && (0..2).contains(&starts[last]);
        return (strided && plain).then(|| (x, starts[last] as u64));
    }
    let Movement::Reshape { shape: _ } = op else { return None };
    let (pairs, start) = window(graph, x)?;
    let (Movement::Reshape { shape }, source) = view::movement(graph, pairs)? else { return None };
    let mut expected = ty.shape.clone();
    expected.push(2);
    let mut whole = ty.shape.clone();
    whole[last] *= 2;
    let column = graph.ty(x).shape.last() == Some(&1);
    (column && *shape == expected && graph.ty(source).shape == whole).then_some((source, start))
}

/// The value that this is a contiguous piece of along the last axis, and where the piece starts.
fn window(graph: &Graph, value: ValueId) -> Option<(ValueId, u64)> {
    let (op, x) = view::movement(graph, value)?;
    let shape = &graph.ty(x).shape;
    let last = shape.len().checked_sub(1)?;
    match op {
        Movement::Slice { starts, ends: _, steps } => {
            let others = graph.ty(value).shape[..last] == shape[..last];
            (others && steps.iter().all(|&s| s == 1)).then(|| (x, starts[last] as u64))
        }
        Movement::Split { axis, sizes } if *axis as usize == last => match graph.values[value].def {
            Def::Result { node: _, index } => Some((x, sizes[..index].iter().sum())),
            Def::Input(_) => None,
        },
        Movement::Split { axis: _, sizes: _ } | Movement::Reshape { shape: _ } | Movement::Broadcast { shape: _ } => {
            None
        }
        Movement::Transpose { perm: _ } | Movement::Concat { axis: _ } => None,
        Movement::SliceGrad { shape: _, starts: _, ends: _, steps: _ } => None,
        Movement::Pad { low: _, high: _, value: _ } => None,
    }
}
