//! Softmax and log-softmax along one axis, and their gradients.

use super::float::Float;
use super::parallel::{self, Shared};
use super::scan::AxisView;

/// `out = softmax(x)` along the axis; a row of negative infinities becomes zeros.
pub(crate) fn softmax<T: Float>(x: &[T], view: AxisView, out: &mut [T]) {
    along(view, out, [x, x], |[x, _], out| {
        softmax_row(x, out);
    });
}

/// `out = x - log(sum(exp(x)))` along the axis.
pub(crate) fn log_softmax<T: Float>(x: &[T], view: AxisView, out: &mut [T]) {
    along(view, out, [x, x], |[x, _], out| {
        let lse = log_sum_exp(x);
        for (out, &x) in out.iter_mut().zip(x) {
            *out = x - lse;
        }
    });
}

/// Gradient of softmax from its output `y`: `y * (dy - sum(y * dy))`.
pub(crate) fn softmax_grad<T: Float>(y: &[T], dy: &[T], view: AxisView, out: &mut [T]) {
    along(view, out, [y, dy], |[y, dy], out| {
        for ((out, &y), &dy) in out.iter_mut().zip(y).zip(dy) {
            *out = y * dy;
        }
        let dot = T::sum(out);
        for ((out, &y), &dy) in out.iter_mut().zip(y).zip(dy) {
            *out = y * (dy - dot);
        }
    });
}

/// Gradient of log-softmax from its output `y`: `dy - exp(y) * sum(dy)`.
pub(crate) fn log_softmax_grad<T: Float>(y: &[T], dy: &[T], view: AxisView, out: &mut [T]) {
    along(view, out, [y, dy], |[y, dy], out| {
        let total = T::sum(dy);
        for ((out, &y), &dy) in out.iter_mut().zip(y).zip(dy) {
            *out = dy - y.exp() * total;
        }
    });
}

/// Softmax of one contiguous row; returns the log of the sum of exponentials.
pub(super) fn softmax_row<T: Float>(x: &[T], out: &mut [T]) -> T {
    let max = T::greatest(x);
    if max == T::NEG_INFINITY {
        out.fill(T::ZERO);
        return T::NEG_INFINITY;
    }
    for (out, &x) in out.iter_mut().zip(x) {
        *out = (x - max).exp();
    }
    let sum = T::sum(out);
    let inverse = T::ONE / sum;
    out.iter_mut().for_each(|out| *out *= inverse);
    max + sum.log()
}

/// log(sum(exp(x))) of one contiguous row.
pub(super) fn log_sum_exp<T: Float>(x: &[T]) -> T {
    const BLOCK: usize = 1024;
    let max = T::greatest(x);
    if max == T::NEG_INFINITY {
        return T::NEG_INFINITY;
    }
    let mut block = [T::ZERO; BLOCK];
    let sum = x.chunks(BLOCK).fold(T::ZERO, |sum, x| {
        for (out, &x) in block.iter_mut().zip(x) {
            *out = (x - max).exp();
        }
        sum + T::sum(&block[..x.len()])
    });
    max + sum.log()
}

/// Runs `body` on every line along the axis; lines that are not contiguous are gathered and scattered.
fn along<T: Float>(view: AxisView, out: &mut [T], operands: [&[T]; 2], body: impl Fn([&[T]; 2], &mut [T]) + Sync) {
    let AxisView { outer, len, inner } = view;
    if inner == 1 {
        parallel::rows(out, len, |first, group| {
            for (i, out) in group.chunks_exact_mut(len).enumerate() {
                let at = (first + i) * len;
                body(operands.map(|x| &x[at..at + len]), out);
            }
        });
        return;
    }
    let out = Shared::new(out);
    parallel::indices(outer, len * inner, |o| {
        // SAFETY: each outer index owns its own block.
        let out = unsafe { out.range(o * len * inner, len * inner) };
        let mut lines = [vec![T::ZERO; len], vec![T::ZERO; len], vec![T::ZERO; len]];
        for i in 0..inner {
            let [a, b, result] = &mut lines;
            for j in 0..len {
                a[j] = operands[0][(o * len + j) * inner + i];
                b[j] = operands[1][(o * len + j) * inner + i];
            }
            body([a, b], result);
            for j in 0..len {
                out[j * inner + i] = result[j];
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{AxisView, log_softmax, log_softmax_grad, softmax, softmax_grad};

    const SHAPE: [usize; 3] = [2, 5, 3];
    type Forward = fn(&[f64], AxisView, &mut [f64]);
    type Backward = fn(&[f64], &[f64], AxisView, &mut [f64]);

    /// The truth is the central difference in double precision.
    fn check_grad(forward: Forward, backward: Backward, axis: usize) {
        let view = AxisView::new(&SHAPE, axis);
        let n: usize = SHAPE.iter().product();
        let x: Vec<f64> = (0..n).map(|i| ((i * 37) % 17) as f64 * 0.2).collect();
        let dy: Vec<f64> = (0..n).map(|i| ((i * 11) % 13) as f64 - 6.0).collect();
        let value = |x: &[f64]| {
            let mut y = vec![0.0; n];
            forward(x, view, &mut y);
            y.iter().zip(&dy).map(|(y, dy)| y * dy).sum::<f64>()
        };
        let (mut y, mut dx) = (vec![0.0; n], vec![0.0; n]);
        forward(&x, view, &mut y);
        backward(&y, &dy, view, &mut dx);
        let h = 1e-6;
        for i in 0..n {
            let (mut above, mut below) = (x.clone(), x.clone());
            above[i] += h;
            below[i] -= h;
            let want = (value(&above) - value(&below)) / (2.0 * h);
            assert!((dx[i] - want).abs() < 1e-7, "axis {axis}, element {i}: {} expected {want}", dx[i]);
        }
    }

    #[test]
    fn gradients_match_finite_differences() {
        for axis in 0..3 {
            check_grad(softmax, softmax_grad, axis);
            check_grad(log_softmax, log_softmax_grad, axis);
        }
    }

    #[test]
    fn rows_sum_to_one_and_large_values_do_not_overflow() {
        let x = [1000.0f32, 1000.0, f32::NEG_INFINITY, -5.0, f32::NEG_INFINITY, f32::NEG_INFINITY];
        let mut y = [0.0; 6];
        softmax(&x, AxisView::new(&[2, 3], 1), &mut y);
        assert_eq!(y[..3], [0.5, 0.5, 0.0]);
        assert_eq!(y[3..], [1.0, 0.0, 0.0]);
        softmax(&[f32::NEG_INFINITY; 3], AxisView::new(&[1, 3], 1), &mut y[..3]);
        assert_eq!(y[..3], [0.0; 3], "a row that is wholly masked");
    }
}
