//! Reads and writes at places given by index operands: embedding, gather, scatter-add, one-hot.

use super::parallel::{self, Shared};
use super::scan::AxisView;
use std::fmt;
use std::ops::AddAssign;

/// An index operand points outside the axis it indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexOutOfRange {
    /// The index.
    pub(crate) index: i64,
    /// Length of the axis.
    pub(crate) len: usize,
}

impl fmt::Display for IndexOutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "index {} is out of range, expected -{len} to {len} - 1", self.index, len = self.len)
    }
}

impl std::error::Error for IndexOutOfRange {}

/// The position that `index` means: negative indices count from the end.
fn resolve(index: i64, len: usize) -> Result<usize, IndexOutOfRange> {
    let at = if index < 0 { index + len as i64 } else { index };
    usize::try_from(at).ok().filter(|&at| at < len).ok_or(IndexOutOfRange { index, len })
}

/// Checks every index before any task runs.
fn resolve_all(indices: &[i64], len: usize) -> Result<(), IndexOutOfRange> {
    indices.iter().try_for_each(|&index| resolve(index, len).map(drop))
}

/// A checked index.
fn at(index: i64, len: usize) -> usize {
    if index < 0 { (index + len as i64) as usize } else { index as usize }
}

/// `out[o, i, ..] = x[o, indices[i], ..]` along the axis of `view`; an embedding is a gather of rows.
pub(crate) fn gather<T: Copy + Send + Sync>(
    x: &[T],
    view: AxisView,
    indices: &[i64],
    out: &mut [T],
) -> Result<(), IndexOutOfRange> {
    let AxisView { len, inner, .. } = view;
    resolve_all(indices, len)?;
    parallel::rows(out, inner, |first, group| {
        for (i, out) in group.chunks_exact_mut(inner).enumerate() {
            let (o, i) = ((first + i) / indices.len(), (first + i) % indices.len());
            out.copy_from_slice(&x[(o * len + at(indices[i], len)) * inner..][..inner]);
        }
    });
    Ok(())
}

/// `dx = 0; dx[o, indices[i], ..] += dy[o, i, ..]`, with i ascending: the gradient of [`gather`].
///
/// Entries equal to `skip` add nothing (the padding index of an embedding).
pub(crate) fn scatter_add<T: Copy + Default + AddAssign + Send + Sync>(
    dy: &[T],
    view: AxisView,
    indices: &[i64],
    skip: Option<i64>,
    dx: &mut [T],
) -> Result<(), IndexOutOfRange> {
    /// Columns that one task owns.
    const STRIPE: usize = 64;
    let AxisView { outer, len, inner } = view;
    resolve_all(indices, len)?;
    let stripes = inner.div_ceil(STRIPE);
    let dx = Shared::new(dx);
    parallel::indices(outer * stripes, (indices.len() + len) * STRIPE.min(inner), |task| {
        let (o, first) = (task / stripes, task % stripes * STRIPE);
        let width = STRIPE.min(inner - first);
        for row in 0..len {
            // SAFETY: each task owns its own columns of its own outer block.
            unsafe { dx.range((o * len + row) * inner + first, width) }.fill(T::default());
        }
        for (i, &index) in indices.iter().enumerate() {
            if skip == Some(index) {
                continue;
            }
            // SAFETY: as above.
            let to = unsafe { dx.range((o * len + at(index, len)) * inner + first, width) };
            let from = &dy[(o * indices.len() + i) * inner + first..][..width];
            to.iter_mut().zip(from).for_each(|(to, &from)| *to += from);
        }
    });
    Ok(())
}

/// `out[i, j] = on where j == indices[i], else off`; an index out of range gives a row of `off`, as in ONNX.
pub(crate) fn one_hot<T: Copy + Send + Sync>(indices: &[i64], depth: usize, (off, on): (T, T), out: &mut [T]) {
    parallel::rows(out, depth, |first, group| {
        for (i, out) in group.chunks_exact_mut(depth).enumerate() {
            out.fill(off);
            if let Ok(at) = resolve(indices[first + i], depth) {
                out[at] = on;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{AxisView, IndexOutOfRange, gather, one_hot, scatter_add};

    #[test]
    fn gather_reads_along_any_axis() {
        let x: Vec<i32> = (0..24).collect();
        let mut out = [0; 16];
        gather(&x, AxisView::new(&[2, 3, 4], 1), &[2, -3], &mut out).unwrap();
        assert_eq!(out, [8, 9, 10, 11, 0, 1, 2, 3, 20, 21, 22, 23, 12, 13, 14, 15]);
        let out_of_range = gather(&x, AxisView::new(&[2, 3, 4], 1), &[3, 0], &mut out);
        assert_eq!(out_of_range, Err(IndexOutOfRange { index: 3, len: 3 }));
    }

    #[test]
    fn scatter_add_is_the_transpose_of_gather() {
        // Truth: <gather(x), dy> == <x, scatter_add(dy)> for every x and dy (integers, so exactly).
        let view = AxisView::new(&[2, 5, 130], 1);
        let indices = [4, 0, 4, -1, 2, 2, 2];
        let x: Vec<i64> = (0..1300).map(|i| i * 37 % 101 - 50).collect();
        let dy: Vec<i64> = (0..2 * 7 * 130).map(|i| i * 53 % 97 - 48).collect();
        let (mut y, mut dx) = (vec![0; dy.len()], vec![9; x.len()]);
        gather(&x, view, &indices, &mut y).unwrap();
        scatter_add(&dy, view, &indices, None, &mut dx).unwrap();
        let dot = |a: &[i64], b: &[i64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<i64>();
        assert_eq!(dot(&y, &dy), dot(&x, &dx));
        scatter_add(&dy, view, &indices, Some(4), &mut dx).unwrap();
        assert_eq!(dx[4 * 130..5 * 130], dy[3 * 130..4 * 130], "only the entry spelled -1 is left");
    }

    #[test]
    fn one_hot_marks_one_place() {
        let mut out = [9.0; 9];
        one_hot(&[2, -3, 7], 3, (0.0, 1.0), &mut out);
        assert_eq!(out, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    }
}
