//! Layer normalization and RMS normalization over the last `width` elements, and their gradients.

use super::float::Float;
use super::parallel::{self, Shared};

/// What layer normalization saves for its gradient: one mean and one reciprocal deviation per row.
pub(crate) struct RowStats<'a, T> {
    /// Mean of each row.
    pub(crate) mean: &'a [T],
    /// 1 / sqrt(variance + epsilon) of each row.
    pub(crate) rstd: &'a [T],
}

/// `y = (x - mean) * rstd * weight + bias` by rows of `width` elements; weight and bias may be absent.
pub(crate) fn layer_norm<T: Float>(
    x: &[T],
    (weight, bias): (Option<&[T]>, Option<&[T]>),
    epsilon: f64,
    y: &mut [T],
    (mean, rstd): (&mut [T], &mut [T]),
    width: usize,
) {
    let (mean, rstd) = (Shared::new(mean), Shared::new(rstd));
    let n = T::of(width as f64);
    parallel::rows(y, width, |first, group| {
        for (i, y) in group.chunks_exact_mut(width).enumerate() {
            let row = first + i;
            let x = &x[row * width..(row + 1) * width];
            let m = T::sum(x) / n;
            for (y, &x) in y.iter_mut().zip(x) {
                *y = (x - m) * (x - m);
            }
            let r = T::ONE / (T::sum(y) / n + T::of(epsilon)).sqrt();
            for (y, &x) in y.iter_mut().zip(x) {
                *y = (x - m) * r;
            }
            scale_and_shift(y, weight, bias);
            // SAFETY: each row writes its own statistics.
            unsafe {
                mean.set(row, m);
                rstd.set(row, r);
            }
        }
    });
}

/// Gradient of layer normalization with respect to its input.
pub(crate) fn layer_norm_input_grad<T: Float>(
    x: &[T],
    weight: Option<&[T]>,
    stats: &RowStats<'_, T>,
    dy: &[T],
    dx: &mut [T],
    width: usize,
) {
    let n = T::of(width as f64);
    parallel::rows(dx, width, |first, group| {
        let mut products = vec![T::ZERO; width];
        for (i, dx) in group.chunks_exact_mut(width).enumerate() {
            let row = first + i;
            let (x, dy) = (&x[row * width..][..width], &dy[row * width..][..width]);
            let (m, r) = (stats.mean[row], stats.rstd[row]);
            weighted(dy, weight, dx);
            for ((product, &g), &x) in products.iter_mut().zip(&*dx).zip(x) {
                *product = g * ((x - m) * r);
            }
            let mean_g = T::sum(dx) / n;
            let mean_gx = T::sum(&products) / n;
            for (dx, &x) in dx.iter_mut().zip(x) {
                *dx = r * (*dx - mean_g - (x - m) * r * mean_gx);
            }
        }
    });
}

/// Gradient of layer normalization with respect to its weight: rows of `dy * (x - mean) * rstd`, summed.
pub(crate) fn layer_norm_weight_grad<T: Float>(x: &[T], stats: &RowStats<'_, T>, dy: &[T], dweight: &mut [T]) {
    let width = dweight.len();
    sum_rows(dweight, dy.len() / width.max(1), |row, first, len, sums| {
        let at = row * width + first;
        let (m, r) = (stats.mean[row], stats.rstd[row]);
        for ((sum, &dy), &x) in sums.iter_mut().zip(&dy[at..at + len]).zip(&x[at..at + len]) {
            *sum += dy * ((x - m) * r);
        }
    });
}

/// Gradient of a bias over the last axis: the sum of the rows of `dy`.
pub(crate) fn bias_grad<T: Float>(dy: &[T], dbias: &mut [T]) {
    let width = dbias.len();
    sum_rows(dbias, dy.len() / width.max(1), |row, first, len, sums| {
        let at = row * width + first;
        for (sum, &dy) in sums.iter_mut().zip(&dy[at..at + len]) {
            *sum += dy;
        }
    });
}

/// `y = x * rstd * weight` with `rstd = 1 / sqrt(mean(x^2) + epsilon)`, by rows.
pub(crate) fn rms_norm<T: Float>(
    x: &[T],
    weight: Option<&[T]>,
    epsilon: f64,
    y: &mut [T],
    rstd: &mut [T],
    width: usize,
) {
    let rstd = Shared::new(rstd);
    let n = T::of(width as f64);
    parallel::rows(y, width, |first, group| {
        for (i, y) in group.chunks_exact_mut(width).enumerate() {
            let row = first + i;
            let x = &x[row * width..(row + 1) * width];
            for (y, &x) in y.iter_mut().zip(x) {
                *y = x * x;
            }
            let r = T::ONE / (T::sum(y) / n + T::of(epsilon)).sqrt();
            for (y, &x) in y.iter_mut().zip(x) {
                *y = x * r;
            }
            scale_and_shift(y, weight, None);
            // SAFETY: each row writes its own statistic.
            unsafe { rstd.set(row, r) };
        }
    });
}

/// Gradient of RMS normalization with respect to its input.
pub(crate) fn rms_norm_input_grad<T: Float>(
    x: &[T],
    weight: Option<&[T]>,
    rstd: &[T],
    dy: &[T],
    dx: &mut [T],
    width: usize,
) {
    let n = T::of(width as f64);
    parallel::rows(dx, width, |first, group| {
        let mut products = vec![T::ZERO; width];
        for (i, dx) in group.chunks_exact_mut(width).enumerate() {
            let row = first + i;
            let (x, dy) = (&x[row * width..][..width], &dy[row * width..][..width]);
            let r = rstd[row];
            weighted(dy, weight, dx);
            for ((product, &g), &x) in products.iter_mut().zip(&*dx).zip(x) {
                *product = g * (x * r);
            }
            let mean_gx = T::sum(&products) / n;
            for (dx, &x) in dx.iter_mut().zip(x) {
                *dx = r * (*dx - x * r * mean_gx);
            }
        }
    });
}

/// Gradient of RMS normalization with respect to its weight.
pub(crate) fn rms_norm_weight_grad<T: Float>(x: &[T], rstd: &[T], dy: &[T], dweight: &mut [T]) {
    let width = dweight.len();
    sum_rows(dweight, dy.len() / width.max(1), |row, first, len, sums| {
        let at = row * width + first;
        let r = rstd[row];
        for ((sum, &dy), &x) in sums.iter_mut().zip(&dy[at..at + len]).zip(&x[at..at + len]) {
            *sum += dy * (x * r);
        }
    });
}

fn scale_and_shift<T: Float>(y: &mut [T], weight: Option<&[T]>, bias: Option<&[T]>) {
    if let Some(weight) = weight {
        y.iter_mut().zip(weight).for_each(|(y, &w)| *y *= w);
    }
    if let Some(bias) = bias {
        y.iter_mut().zip(bias).for_each(|(y, &b)| *y += b);
    }
}

fn weighted<T: Float>(dy: &[T], weight: Option<&[T]>, out: &mut [T]) {
    match weight {
        Some(weight) => out.iter_mut().zip(dy).zip(weight).for_each(|((out, &dy), &w)| *out = dy * w),
        None => out.copy_from_slice(dy),
    }
}

/// Columns that one task owns.
const STRIPE: usize = 256;
/// Rows that are added up before they join the total.
const ROW_BLOCK: usize = 64;

/// Sums rows into `out` in ascending order, `ROW_BLOCK` rows at a time; `add(row, first, len, sums)` adds one row's stripe.
fn sum_rows<T: Float>(out: &mut [T], n_rows: usize, add: impl Fn(usize, usize, usize, &mut [T]) + Sync) {
    let n_stripes = out.len().div_ceil(STRIPE);
    let width = out.len();
    let out = Shared::new(out);
    parallel::indices(n_stripes, n_rows * STRIPE, |stripe| {
        let first = stripe * STRIPE;
        let len = STRIPE.min(width - first);
        // SAFETY: each task owns its own stripe.
        let totals = unsafe { out.range(first, len) };
        totals.fill(T::ZERO);
        for block in 0..n_rows.div_ceil(ROW_BLOCK) {
            let mut sums = [T::ZERO; STRIPE];
            for row in block * ROW_BLOCK..((block + 1) * ROW_BLOCK).min(n_rows) {
                add(row, first, len, &mut sums[..len]);
            }
            totals.iter_mut().zip(&sums).for_each(|(total, &sum)| *total += sum);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{
        RowStats, bias_grad, layer_norm, layer_norm_input_grad, layer_norm_weight_grad, rms_norm, rms_norm_input_grad,
        rms_norm_weight_grad,
    };

    const ROWS: usize = 70;
    const WIDTH: usize = 9;

    fn values(n: usize, k: usize) -> Vec<f64> {
        (0..n).map(|i| ((i * k) % 23) as f64 * 0.1 - 1.0).collect()
    }

    /// The truth is the central difference in double precision.
    fn difference(x: &[f64], i: usize, f: impl Fn(&[f64]) -> f64) -> f64 {
        let h = 1e-6;
        let (mut above, mut below) = (x.to_vec(), x.to_vec());
        above[i] += h;
        below[i] -= h;
        (f(&above) - f(&below)) / (2.0 * h)
    }

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    fn assert_close(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-6 * want.abs().max(1.0), "{got}, expected {want}");
    }

    #[test]
    fn layer_norm_gradients_match_finite_differences() {
        let (x, w, b) = (values(ROWS * WIDTH, 7), values(WIDTH, 5), values(WIDTH, 3));
        let dy = values(ROWS * WIDTH, 11);
        let run = |x: &[f64], w: &[f64], b: &[f64]| {
            let (mut y, mut mean, mut rstd) = (vec![0.0; x.len()], vec![0.0; ROWS], vec![0.0; ROWS]);
            layer_norm(x, (Some(w), Some(b)), 1e-5, &mut y, (&mut mean, &mut rstd), WIDTH);
            (dot(&y, &dy), mean, rstd)
        };
        let (_, mean, rstd) = run(&x, &w, &b);
        let stats = RowStats { mean: &mean, rstd: &rstd };
        let (mut dx, mut dw, mut db) = (vec![0.0; x.len()], vec![0.0; WIDTH], vec![0.0; WIDTH]);
        layer_norm_input_grad(&x, Some(&w), &stats, &dy, &mut dx, WIDTH);
        layer_norm_weight_grad(&x, &stats, &dy, &mut dw);
        bias_grad(&dy, &mut db);
        for i in (0..x.len()).step_by(13) {
            assert_close(dx[i], difference(&x, i, |x| run(x, &w, &b).0));
        }
        for i in 0..WIDTH {
            assert_close(dw[i], difference(&w, i, |w| run(&x, w, &b).0));
            assert_close(db[i], difference(&b, i, |b| run(&x, &w, b).0));
        }
    }

    #[test]
    fn rms_norm_gradients_match_finite_differences() {
        let (x, w) = (values(ROWS * WIDTH, 7), values(WIDTH, 5));
        let dy = values(ROWS * WIDTH, 11);
        let run = |x: &[f64], w: &[f64]| {
            let (mut y, mut rstd) = (vec![0.0; x.len()], vec![0.0; ROWS]);
            rms_norm(x, Some(w), 1e-6, &mut y, &mut rstd, WIDTH);
            (dot(&y, &dy), rstd)
        };
        let (_, rstd) = run(&x, &w);
        let (mut dx, mut dw) = (vec![0.0; x.len()], vec![0.0; WIDTH]);
        rms_norm_input_grad(&x, Some(&w), &rstd, &dy, &mut dx, WIDTH);
        rms_norm_weight_grad(&x, &rstd, &dy, &mut dw);
        for i in (0..x.len()).step_by(13) {
            assert_close(dx[i], difference(&x, i, |x| run(x, &w).0));
        }
        for (i, &dw) in dw.iter().enumerate() {
            assert_close(dw, difference(&w, i, |w| run(&x, w).0));
        }
    }

    #[test]
    fn rows_have_mean_zero_and_deviation_one() {
        // Closed form: without weight, each row of the output has mean 0 and variance var / (var + eps).
        let x: Vec<f32> = (0..4 * 300).map(|i| (i % 37) as f32 + 1000.0).collect();
        let (mut y, mut mean, mut rstd) = (vec![0.0; x.len()], vec![0.0; 4], vec![0.0; 4]);
        layer_norm(&x, (None, None), 1e-5, &mut y, (&mut mean, &mut rstd), 300);
        for row in y.chunks(300) {
            assert!(row.iter().sum::<f32>().abs() < 1e-3);
            assert!((row.iter().map(|y| y * y).sum::<f32>() / 300.0 - 1.0).abs() < 1e-4);
        }
    }
}
