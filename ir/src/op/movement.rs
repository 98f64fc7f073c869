//! Data movement: the same elements in another arrangement.

use super::attr::{Real, family};
use super::rule;
use crate::ty::Type;

family! {
    /// Rearrangements. A reshape moves nothing: its result is its operand under another shape.
    pub enum Movement {
        /// The same elements in row-major order under another shape.
        Reshape = "reshape" {
            /// The new shape.
            shape: Vec<u64>,
        },
        /// Axes in another order: axis `i` of the result is axis `perm[i]` of the operand.
        Transpose = "transpose" {
            /// The permutation.
            perm: Vec<u64>,
        },
        /// Repetition as numpy broadcasts.
        Broadcast = "broadcast" {
            /// The new shape.
            shape: Vec<u64>,
        },
        /// Elements `start, start + step, ..` before `end`, per axis; a negative step walks down to above `end`.
        Slice = "slice" {
            /// First index per axis.
            starts: Vec<i64>,
            /// Bound per axis, exclusive (-1 with a negative step: through index 0).
            ends: Vec<i64>,
            /// Step per axis, not zero.
            steps: Vec<i64>,
        },
        /// `dy -> dx`: zeros of the operand's shape with `dy` at the places that the slice took.
        SliceGrad = "slice_grad" {
            /// The operand's shape.
            shape: Vec<u64>,
            /// As in the slice.
            starts: Vec<i64>,
            /// As in the slice.
            ends: Vec<i64>,
            /// As in the slice.
            steps: Vec<i64>,
        },
        /// Operands one after the other along an axis.
        Concat = "concat" {
            /// The axis.
            axis: u64,
        },
        /// Consecutive parts along an axis.
        Split = "split" {
            /// The axis.
            axis: u64,
            /// Length of each part.
            sizes: Vec<u64>,
        },
        /// Constant borders.
        Pad = "pad" {
            /// Elements before, per axis.
            low: Vec<u64>,
            /// Elements after, per axis.
            high: Vec<u64>,
            /// Their value.
            value: Real,
        },
    }
}

/// Number of elements that a slice takes from an axis of length `dim`, or what is wrong with it.
pub(super) fn slice_len(dim: u64, start: i64, end: i64, step: i64) -> Result<u64, String> {
    let len = i64::try_from(dim).map_err(|_| format!("dimension {dim} is too large"))?;
    let ok = match step {
        0 => false,
        1.. => 0 <= start && start <= end && end <= len,
        _ => -1 <= end && end <= start && start < len.max(1),
    };
    if !ok {
        return Err(format!("slice {start}..{end} by {step} does not fit a dimension of {dim}"));
    }
    Ok((end - start).unsigned_abs().div_ceil(step.unsigned_abs()))
}

fn slice_shape(shape: &[u64], starts: &[i64], ends: &[i64], steps: &[i64]) -> Result<Vec<u64>, String> {
    let rank = shape.len();
    if starts.len() != rank || ends.len() != rank || steps.len() != rank {
        return Err(format!("a slice of rank {rank} needs as many starts, ends and steps"));
    }
    (0..rank).map(|i| slice_len(shape[i], starts[i], ends[i], steps[i])).collect()
}

impl Movement {
    pub(crate) fn infer(&self, inputs: &[&Type]) -> Result<Vec<Type>, String> {
        if let Self::Concat { axis } = self {
            return concat(*axis, inputs).map(|ty| vec![ty]);
        }
        rule::arity(inputs, 1)?;
        let x = inputs[0];
        let with = |shape: Vec<u64>| Ok(vec![Type::new(x.dtype, shape)]);
        match self {
            Self::Reshape { shape } => {
                let out = Type::new(x.dtype, shape.clone());
                if out.checked_elements() != x.checked_elements() {
                    return Err(format!("{x} cannot be reshaped to {out}: the numbers of elements differ"));
                }
                Ok(vec![out])
            }
            Self::Transpose { perm } => {
                let mut seen = vec![false; x.rank()];
                let mut shape = Vec::new();
                for &p in perm {
                    let axis = rule::axis(p, x)?;
                    if std::mem::replace(&mut seen[axis], true) {
                        return Err(format!("{perm:?} names axis {p} twice"));
                    }
                    shape.push(x.shape[axis]);
                }
                if shape.len() != x.rank() {
                    return Err(format!("{perm:?} does not permute the {} axes of {x}", x.rank()));
                }
                with(shape)
            }
            Self::Broadcast { shape } => {
                if rule::broadcast(&[&x.shape, shape])? != *shape {
                    return Err(format!("{x} does not broadcast to {shape:?}"));
                }
                with(shape.clone())
            }
            Self::Slice { starts, ends, steps } => with(slice_shape(&x.shape, starts, ends, steps)?),
            Self::SliceGrad { shape, starts, ends, steps } => {
                let taken = slice_shape(shape, starts, ends, steps)?;
                if taken != x.shape {
                    return Err(format!("the slice of {shape:?} has shape {taken:?}, its gradient {x}"));
                }
                with(shape.clone())
            }
            Self::Split { axis, sizes } => {
                let axis = rule::axis(*axis, x)?;
                let total = sizes.iter().try_fold(0u64, |sum, &size| sum.checked_add(size));
                if sizes.is_empty() || total != Some(x.shape[axis]) {
                    return Err(format!("parts {sizes:?} do not add up to axis {axis} of {x}"));
                }
                let part = |&size: &u64| {
                    let mut shape = x.shape.clone();
                    shape[axis] = size;
                    Type::new(x.dtype, shape)
                };
                Ok(sizes.iter().map(part).collect())
            }
            Self::Pad { low, high, value: _ } => {
                if low.len() != x.rank() || high.len() != x.rank() {
                    return Err(format!("a pad of {x} needs {} borders on each side", x.rank()));
                }
                let dims = x.shape.iter().zip(low).zip(high);
                let shape = dims.map(|((d, l), h)| d.checked_add(*l)?.checked_add(*h)).collect::<Option<_>>();
                with(shape.ok_or("the padded shape is too large")?)
            }
            Self::Concat { axis: _ } => unreachable!("concat returned above"),
        }
    }
}

fn concat(axis: u64, inputs: &[&Type]) -> Result<Type, String> {
    let Some((first, rest)) = inputs.split_first() else {
        return Err("concat needs at least one operand".to_owned());
    };
    let axis = rule::axis(axis, first)?;
    let mut out = (*first).clone();
    for ty in rest {
        let fits = |(i, (x, y)): (usize, (&u64, &u64))| i == axis || x == y;
        let same_rank = ty.rank() == first.rank();
        if ty.dtype != first.dtype || !same_rank || !ty.shape.iter().zip(&first.shape).enumerate().all(fits) {
            return Err(format!("{ty} and {first} differ in more than axis {axis}"));
        }
        out.shape[axis] = out.shape[axis].checked_add(ty.shape[axis]).ok_or("the concatenation is too large")?;
    }
    Ok(out)
}
