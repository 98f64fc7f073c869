//! Operations that look along one axis: index of the extreme, running sums, the k greatest.

use super::parallel;
use std::cmp::Ordering;
use std::ops::Add;

/// A shape seen from one axis: `outer` blocks of `len` slices of `inner` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AxisView {
    /// Product of the dimensions before the axis.
    pub(crate) outer: usize,
    /// The axis.
    pub(crate) len: usize,
    /// Product of the dimensions behind the axis.
    pub(crate) inner: usize,
}

impl AxisView {
    /// Looks at `axis` of `shape`.
    pub(crate) fn new(shape: &[usize], axis: usize) -> Self {
        Self { outer: shape[..axis].iter().product(), len: shape[axis], inner: shape[axis + 1..].iter().product() }
    }
}

/// Index of the greatest element along the axis, the first of equals; a NaN beats every number. `out` lacks the axis.
pub(crate) fn argmax<T: Copy + PartialOrd + Sync>(x: &[T], view: AxisView, out: &mut [i64]) {
    let AxisView { len, inner, .. } = view;
    let is_nan = |x: T| x.partial_cmp(&x).is_none();
    parallel::pieces(out, parallel::rows_per_piece(len), |start, out| {
        for (i, out) in out.iter_mut().enumerate() {
            let at = (start + i) / inner * len * inner + (start + i) % inner;
            let mut best = 0;
            for j in 1..len {
                let (new, old) = (x[at + j * inner], x[at + best * inner]);
                if !is_nan(old) && (new > old || is_nan(new)) {
                    best = j;
                }
            }
            *out = best as i64;
        }
    });
}

/// How a running sum runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Running {
    /// Leaves out the element itself.
    pub(crate) exclusive: bool,
    /// Starts from the last element.
    pub(crate) reverse: bool,
}

/// Running sum along the axis.
pub(crate) fn cumsum<T>(x: &[T], view: AxisView, running: Running, out: &mut [T])
where
    T: Copy + Default + Add<Output = T> + Send + Sync,
{
    let AxisView { len, inner, .. } = view;
    parallel::pieces(out, (len * inner).max(1), |start, out| {
        let x = &x[start..start + out.len()];
        let mut sums = vec![T::default(); inner];
        for j in 0..len {
            let at = if running.reverse { len - 1 - j } else { j } * inner;
            for ((out, &x), sum) in out[at..at + inner].iter_mut().zip(&x[at..at + inner]).zip(&mut sums) {
                let after = *sum + x;
                *out = if running.exclusive { *sum } else { after };
                *sum = after;
            }
        }
    });
}

/// The k greatest elements along the axis in descending order, equals in index order, with their indices.
pub(crate) fn topk<T: Copy + PartialOrd>(x: &[T], view: AxisView, k: usize, values: &mut [T], indices: &mut [i64]) {
    let AxisView { outer, len, inner } = view;
    let mut order: Vec<usize> = Vec::with_capacity(len);
    for o in 0..outer {
        for i in 0..inner {
            let at = |j: usize| x[(o * len + j) * inner + i];
            order.clear();
            order.extend(0..len);
            order.sort_by(|&a, &b| descending(&at(a), &at(b)));
            for (rank, &j) in order[..k].iter().enumerate() {
                values[(o * k + rank) * inner + i] = at(j);
                indices[(o * k + rank) * inner + i] = j as i64;
            }
        }
    }
}

/// Descending order with NaN first.
fn descending<T: PartialOrd>(a: &T, b: &T) -> Ordering {
    let nan = |x: &T| x.partial_cmp(x).is_none();
    b.partial_cmp(a).unwrap_or_else(|| nan(b).cmp(&nan(a)))
}

#[cfg(test)]
mod tests {
    use super::{AxisView, Running, argmax, cumsum, topk};

    #[test]
    fn argmax_takes_the_first_of_equals() {
        let x = [1.0, 5.0, 5.0, 2.0, -1.0, -3.0];
        let mut out = [9; 2];
        argmax(&x, AxisView::new(&[2, 3], 1), &mut out);
        assert_eq!(out, [1, 0]);
        let mut out = [9; 1];
        argmax(&[1.0, f32::NAN, 7.0], AxisView::new(&[3], 0), &mut out);
        assert_eq!(out, [1]);
    }

    #[test]
    fn cumsum_runs_both_ways() {
        let x = [1, 2, 3, 10, 20, 30];
        let mut out = [0; 6];
        cumsum(&x, AxisView::new(&[2, 3], 1), Running::default(), &mut out);
        assert_eq!(out, [1, 3, 6, 10, 30, 60]);
        cumsum(&x, AxisView::new(&[2, 3], 0), Running { reverse: true, exclusive: false }, &mut out);
        assert_eq!(out, [11, 22, 33, 10, 20, 30]);
        cumsum(&x, AxisView::new(&[2, 3], 1), Running { reverse: true, exclusive: true }, &mut out);
        assert_eq!(out, [5, 3, 0, 50, 30, 0]);
    }

    #[test]
    fn topk_is_stable() {
        let (mut values, mut indices) = ([0.0; 2], [0; 2]);
        topk(&[1.0, 4.0, 2.0, 4.0], AxisView::new(&[4], 0), 2, &mut values, &mut indices);
        assert_eq!((values, indices), ([4.0, 4.0], [1, 3]));
        topk(&[1.0, f64::NAN, 2.0, 4.0], AxisView::new(&[4], 0), 2, &mut values, &mut indices);
        assert_eq!(indices, [1, 3]);
    }
}
