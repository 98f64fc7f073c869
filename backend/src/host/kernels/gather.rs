//! Reads and writes at places given by index operands: embedding, gather, scatter-add.

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
pub(crate) fn scatter_add<T: Copy + Default + AddAssign + Send + Sync>(
    dy: &[T],
    view: AxisView,
    indices: &[i64],
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
            // SAFETY: as above.
            let to = unsafe { dx.range((o * len + at(index, len)) * inner + first, width) };
            let from = &dy[(o * indices.len() + i) * inner + first..][..width];
            to.iter_mut().zip(from).for_each(|(to, &from)| *to += from);
        }
    });
    Ok(())
}

/// `out[i] = x` at `indices[i]` along the axis, elementwise in the other axes; `view` is of the indices, `len` x's axis.
pub(crate) fn gather_elements<T: Copy + Send + Sync>(
    x: &[T],
    len: usize,
    view: AxisView,
    indices: &[i64],
    out: &mut [T],
) -> Result<(), IndexOutOfRange> {
    resolve_all(indices, len)?;
    parallel::pieces(out, parallel::PIECE, |start, out| {
        for (i, out) in out.iter_mut().enumerate() {
            *out = x[element(start + i, len, view, indices)];
        }
    });
    Ok(())
}

/// `dx = 0; dx` at `indices[i] += dy[i]`, with i ascending: the gradient of [`gather_elements`].
pub(crate) fn scatter_add_elements<T: Copy + Default + AddAssign>(
    dy: &[T],
    len: usize,
    view: AxisView,
    indices: &[i64],
    dx: &mut [T],
) -> Result<(), IndexOutOfRange> {
    resolve_all(indices, len)?;
    dx.fill(T::default());
    for (i, &dy) in dy.iter().enumerate() {
        dx[element(i, len, view, indices)] += dy;
    }
    Ok(())
}

/// Where entry `i` of the indices points in a tensor whose axis has length `len`.
fn element(i: usize, len: usize, view: AxisView, indices: &[i64]) -> usize {
    let (outer, inner) = (i / (view.len * view.inner), i % view.inner);
    (outer * len + at(indices[i], len)) * view.inner + inner
}

#[cfg(test)]
mod tests {
    use super::{AxisView, IndexOutOfRange, gather, gather_elements, scatter_add, scatter_add_elements};

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
        scatter_add(&dy, view, &indices, &mut dx).unwrap();
        let dot = |a: &[i64], b: &[i64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<i64>();
        assert_eq!(dot(&y, &dy), dot(&x, &dx));
    }

    #[test]
    fn elements_are_gathered_and_added_back() {
        // Truth: torch.gather(arange(6).view(2, 3), 1, [[2, 0, 0, -1], [1, 1, 0, 2]]) and its gradient for dy = 1..8.
        let view = AxisView::new(&[2, 4], 1);
        let indices = [2, 0, 0, -1, 1, 1, 0, 2];
        let mut y = [0; 8];
        gather_elements(&[0, 1, 2, 3, 4, 5], 3, view, &indices, &mut y).unwrap();
        assert_eq!(y, [2, 0, 0, 2, 4, 4, 3, 5]);
        let mut dx = [9; 6];
        scatter_add_elements(&[1, 2, 3, 4, 5, 6, 7, 8], 3, view, &indices, &mut dx).unwrap();
        assert_eq!(dx, [5, 0, 5, 7, 11, 8]);
    }
}
