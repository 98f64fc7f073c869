//! Reductions over any set of axes, in one fixed order: sums go over blocks, so that rounding errors grow slowly.

use super::float::Float;
use super::parallel::{self, Shared};
use super::walk::{Walk, strides};
use std::marker::PhantomData;

/// How elements combine: associative up to rounding.
pub(crate) trait Monoid<T>: Sync {
    /// The result of no elements.
    const EMPTY: T;
    /// Combines two partial results.
    fn combine(a: T, b: T) -> T;
}

/// Sum.
pub(crate) struct Sum<T>(PhantomData<fn() -> T>);
/// Maximum; NaN wins.
pub(crate) struct Max<T>(PhantomData<fn() -> T>);
/// Minimum; NaN wins.
pub(crate) struct Min<T>(PhantomData<fn() -> T>);
/// Product.
pub(crate) struct Product<T>(PhantomData<fn() -> T>);

macro_rules! monoids {
    ($t:ty, $zero:expr, $one:expr, $least:expr, $most:expr, $add:expr, $mul:expr, $max:expr, $min:expr) => {
        impl Monoid<$t> for Sum<$t> {
            const EMPTY: $t = $zero;
            #[inline(always)]
            fn combine(a: $t, b: $t) -> $t {
                $add(a, b)
            }
        }
        impl Monoid<$t> for Product<$t> {
            const EMPTY: $t = $one;
            #[inline(always)]
            fn combine(a: $t, b: $t) -> $t {
                $mul(a, b)
            }
        }
        impl Monoid<$t> for Max<$t> {
            const EMPTY: $t = $least;
            #[inline(always)]
            fn combine(a: $t, b: $t) -> $t {
                $max(a, b)
            }
        }
        impl Monoid<$t> for Min<$t> {
            const EMPTY: $t = $most;
            #[inline(always)]
            fn combine(a: $t, b: $t) -> $t {
                $min(a, b)
            }
        }
    };
}
macro_rules! float_monoids {
    ($($t:ty),*) => {$(monoids!(
        $t, 0.0, 1.0, <$t>::NEG_INFINITY, <$t>::INFINITY,
        |a, b| a + b, |a, b| a * b, <$t as Float>::maximum, <$t as Float>::minimum
    );)*};
}
macro_rules! integer_monoids {
    ($($t:ty),*) => {$(monoids!(
        $t, 0, 1, <$t>::MIN, <$t>::MAX, <$t>::wrapping_add, <$t>::wrapping_mul, <$t>::max, <$t>::min
    );)*};
}
float_monoids!(f32, f64);
integer_monoids!(u8, i8, i32, i64);

/// `out = combine of x over axes`, then `finish` on each element; `out` is x's shape without the axes, in order.
pub(crate) fn reduce<T: Copy + Send + Sync, M: Monoid<T>>(
    x: &[T],
    shape: &[usize],
    axes: &[usize],
    out: &mut [T],
    finish: impl Fn(T) -> T + Sync,
) {
    let own = strides(shape);
    let side = |reduced: bool| {
        let picked = (0..shape.len()).filter(|axis| axes.contains(axis) == reduced);
        let (dims, steps): (Vec<usize>, Vec<isize>) = picked.map(|axis| (shape[axis], own[axis])).unzip();
        Walk::new(&dims, [&steps])
    };
    let (kept, folded) = (side(false), side(true));
    if folded.dims.contains(&0) {
        out.fill(finish(M::EMPTY));
        return;
    }
    if out.is_empty() {
        return;
    }
    if kept.inner_strides()[0] == 1 && kept.inner() > 1 {
        columns::<T, M>(x, &kept, &folded, out, &finish);
    } else if kept.inner() * kept.outer() == 1 {
        out[0] = finish(whole::<T, M>(x));
    } else {
        let inner = kept.inner();
        let work = folded.inner() * folded.outer();
        let out = Shared::new(out);
        parallel::indices(kept.outer() * inner, work, |i| {
            // SAFETY: each index writes its own element.
            let out = unsafe { out.range(i, 1) };
            kept.visit(i / inner, 1, |_, [at]| {
                let at = at + (i % inner) as isize * kept.inner_strides()[0];
                out[0] = finish(one::<T, M>(&x[at as usize..], &folded));
            });
        });
    }
}

/// Everything in `x`: blocks of a fixed length in parallel, then pairwise.
fn whole<T: Copy + Send + Sync, M: Monoid<T>>(x: &[T]) -> T {
    let mut partials = vec![M::EMPTY; x.len().div_ceil(parallel::PIECE)];
    let shared = Shared::new(&mut partials);
    parallel::indices(x.len().div_ceil(parallel::PIECE), parallel::PIECE, |i| {
        let piece = &x[i * parallel::PIECE..((i + 1) * parallel::PIECE).min(x.len())];
        // SAFETY: each index writes its own element.
        unsafe { shared.set(i, fold::<T, M>(piece)) };
    });
    fold::<T, M>(&partials)
}

/// One kept element: folds the innermost loops, which are contiguous or strided.
fn one<T: Copy, M: Monoid<T>>(x: &[T], folded: &Walk<1>) -> T {
    let n = folded.inner();
    let step = folded.inner_strides()[0] as usize;
    let mut total = M::EMPTY;
    folded.visit(0, folded.outer(), |_, [at]| {
        let x = &x[at as usize..];
        let part =
            if step == 1 { fold::<T, M>(&x[..n]) } else { (0..n).map(|i| x[i * step]).fold(M::EMPTY, M::combine) };
        total = M::combine(total, part);
    });
    total
}

/// Lanes that a contiguous fold keeps apart, so that it vectorizes with one fixed order.
const LANES: usize = 16;
/// Elements that the lanes cover before their results are joined pairwise.
const BLOCK: usize = 1024;

/// Folds a contiguous slice: lanes inside a block, pairwise over blocks.
pub(super) fn fold<T: Copy, M: Monoid<T>>(x: &[T]) -> T {
    if x.len() > BLOCK {
        let half = (x.len() / 2).next_multiple_of(BLOCK);
        return M::combine(fold::<T, M>(&x[..half]), fold::<T, M>(&x[half..]));
    }
    let mut lanes = [M::EMPTY; LANES];
    let chunks = x.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = M::combine(*lane, x);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = M::combine(*lane, x);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = M::combine(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// Columns that one task of a column reduction owns.
const STRIPE: usize = 256;
/// Rows that a column reduction adds up before it joins them, and blocks it joins before they reach the total.
const ROW_BLOCK: usize = 64;

/// The kept innermost axis is contiguous: adds rows, a stripe of columns at a time.
fn columns<T: Copy + Send + Sync, M: Monoid<T>>(
    x: &[T],
    kept: &Walk<1>,
    folded: &Walk<1>,
    out: &mut [T],
    finish: &(impl Fn(T) -> T + Sync),
) {
    let width = kept.inner();
    let stripes = width.div_ceil(STRIPE);
    let (n, step) = (folded.inner(), folded.inner_strides()[0] as usize);
    let out = Shared::new(out);
    parallel::indices(kept.outer() * stripes, n * folded.outer() * STRIPE, |task| {
        let (row, first) = (task / stripes, task % stripes * STRIPE);
        let len = STRIPE.min(width - first);
        // SAFETY: each task writes its own stripe of its own row.
        let out = unsafe { out.range(row * width + first, len) };
        out.fill(M::EMPTY);
        let (mut block, mut blocks) = ([M::EMPTY; STRIPE], [M::EMPTY; STRIPE]);
        let mut n_rows = 0;
        kept.visit(row, 1, |_, [base]| {
            folded.visit(0, folded.outer(), |_, [at]| {
                for i in 0..n {
                    let x = &x[(base + at) as usize + i * step + first..][..len];
                    for (sum, &x) in block.iter_mut().zip(x) {
                        *sum = M::combine(*sum, x);
                    }
                    n_rows += 1;
                    if n_rows % ROW_BLOCK == 0 {
                        flush::<T, M>(&mut blocks, &mut block);
                        if n_rows % (ROW_BLOCK * ROW_BLOCK) == 0 {
                            flush::<T, M>(out, &mut blocks);
                        }
                    }
                }
            });
        });
        flush::<T, M>(&mut blocks, &mut block);
        flush::<T, M>(out, &mut blocks);
        out.iter_mut().for_each(|x| *x = finish(*x));
    });
}

/// Joins a block's partial results to the totals and empties the block.
fn flush<T: Copy, M: Monoid<T>>(totals: &mut [T], block: &mut [T; STRIPE]) {
    for (total, part) in totals.iter_mut().zip(block.iter_mut()) {
        *total = M::combine(*total, *part);
        *part = M::EMPTY;
    }
}

#[cfg(test)]
mod tests {
    use super::{Max, Sum, reduce};

    #[test]
    fn every_axis_subset_matches_index_arithmetic() {
        let shape = [3usize, 5, 130, 7];
        let n: usize = shape.iter().product();
        let x: Vec<i64> = (0..n as i64).map(|i| i * 37 % 1009 - 500).collect();
        for mask in 0..16usize {
            let axes: Vec<usize> = (0..4).filter(|axis| mask >> axis & 1 == 1).collect();
            let kept: usize = (0..4).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).product();
            let (mut sum, mut max) = (vec![0i64; kept], vec![i64::MIN; kept]);
            for (i, &x) in x.iter().enumerate() {
                let (mut at, mut rest, mut below) = (0, i, 1);
                for axis in (0..4).rev() {
                    if !axes.contains(&axis) {
                        at += rest % shape[axis] * below;
                        below *= shape[axis];
                    }
                    rest /= shape[axis];
                }
                sum[at] += x;
                max[at] = max[at].max(x);
            }
            let mut out = vec![0; kept];
            reduce::<i64, Sum<i64>>(&x, &shape, &axes, &mut out, |x| x);
            assert_eq!(out, sum, "sum over {axes:?}");
            reduce::<i64, Max<i64>>(&x, &shape, &axes, &mut out, |x| x);
            assert_eq!(out, max, "max over {axes:?}");
        }
    }

    #[test]
    fn long_sums_stay_accurate_in_single_precision() {
        // Truth: the closed form n * x; plain left-to-right f32 summation is off by more than 1e-4 here.
        let x = vec![0.1f32; 4_000_000];
        let mut out = [0.0];
        reduce::<f32, Sum<f32>>(&x, &[4_000_000], &[0], &mut out, |x| x);
        assert!((f64::from(out[0]) / (4e6 * f64::from(0.1f32)) - 1.0).abs() < 1e-6, "{}", out[0]);
        let mut columns = [0.0; 4];
        reduce::<f32, Sum<f32>>(&x, &[1_000_000, 4], &[0], &mut columns, |x| x / 1e6);
        assert!(columns.iter().all(|mean| (mean / 0.1 - 1.0).abs() < 1e-5), "{columns:?}");
    }

    #[test]
    fn results_do_not_depend_on_the_thread_count() {
        let x: Vec<f32> = (0..300_000u64).map(|i| ((i * 7919) % 100_003) as f32 * 1e-3).collect();
        for (shape, axes) in [(vec![300_000], vec![0]), (vec![100, 3000], vec![0]), (vec![100, 3000], vec![1])] {
            let runs: Vec<Vec<f32>> = (1..=4)
                .map(|threads| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    let kept: usize =
                        shape.iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, d)| d).product();
                    let mut out = vec![0.0; kept];
                    pool.install(|| reduce::<f32, Sum<f32>>(&x, &shape, &axes, &mut out, |x| x));
                    out
                })
                .collect();
            assert!(runs.windows(2).all(|pair| pair[0] == pair[1]));
        }
    }

    #[test]
    fn nothing_sums_to_zero() {
        let mut out = [7.0f64; 3];
        reduce::<f64, Sum<f64>>(&[], &[3, 0], &[1], &mut out, |x| x);
        assert_eq!(out, [0.0; 3]);
    }
}
