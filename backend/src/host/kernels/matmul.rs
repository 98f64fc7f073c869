//! Matrix products, single and batched, on the `gemm` crate.

use super::float::Float;
use super::parallel::{self, Shared};
use super::walk::{Walk, broadcast_strides, strides};
use gemm::Parallelism;

/// A matrix inside a slice: its first element is the slice's first.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a, T> {
    /// The elements.
    pub(super) data: &'a [T],
    /// Elements from one row to the next.
    pub(super) row_stride: usize,
    /// Elements from one column to the next.
    pub(super) col_stride: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// A row-major matrix with `width` stored columns, read as its transpose where `transposed`.
    pub(super) fn new(data: &'a [T], width: usize, transposed: bool) -> Self {
        let (row_stride, col_stride) = if transposed { (1, width) } else { (width, 1) };
        Self { data, row_stride, col_stride }
    }
}

/// What to do with the product.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Store {
    /// Replace the output.
    Replace,
    /// Add to the output.
    Add,
}

/// `out = scale * a b`, or `out += scale * a b`: `out` is m x n with `out_stride` elements between rows, the sum has k terms.
///
/// The order of each element's sum depends on the sizes alone, not on `parallelism`.
pub(super) fn product<T: Float>(
    (m, n, k): (usize, usize, usize),
    out: &mut [T],
    out_stride: usize,
    (a, b): (Matrix<'_, T>, Matrix<'_, T>),
    (scale, store): (T, Store),
    parallelism: Parallelism,
) {
    if m == 0 || n == 0 {
        return;
    }
    if k == 0 {
        if store == Store::Replace {
            for i in 0..m {
                out[i * out_stride..i * out_stride + n].fill(T::ZERO);
            }
        }
        return;
    }
    let last = |rows: usize, cols: usize, row: usize, col: usize| (rows - 1) * row + (cols - 1) * col;
    assert!(last(m, n, out_stride, 1) < out.len(), "the product's output holds {m} x {n}");
    assert!(last(m, k, a.row_stride, a.col_stride) < a.data.len(), "the left operand holds {m} x {k}");
    assert!(last(k, n, b.row_stride, b.col_stride) < b.data.len(), "the right operand holds {k} x {n}");
    // SAFETY: the assertions above keep every access inside the slices; `out` is borrowed exclusively.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            out_stride as isize,
            store == Store::Add,
            a.data.as_ptr(),
            a.col_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.col_stride as isize,
            b.row_stride as isize,
            T::ONE,
            scale,
            false,
            false,
            false,
            parallelism,
        );
    }
}

/// Which operands are stored transposed in their last two axes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transposes {
    /// The left operand is stored as [.., k, m].
    pub(crate) a: bool,
    /// The right operand is stored as [.., n, k].
    pub(crate) b: bool,
}

/// `out = scale * a b` over the last two axes, the leading axes broadcast as in NumPy. Every shape has rank two or more.
pub(crate) fn matmul<T: Float>(
    (a, a_shape): (&[T], &[usize]),
    (b, b_shape): (&[T], &[usize]),
    (out, out_shape): (&mut [T], &[usize]),
    transposes: Transposes,
    scale: T,
) {
    let (batch_shape, tail) = out_shape.split_at(out_shape.len() - 2);
    let (mut m, n) = (tail[0], tail[1]);
    let (a_batch, a_tail) = a_shape.split_at(a_shape.len() - 2);
    let (b_batch, b_tail) = b_shape.split_at(b_shape.len() - 2);
    let k = if transposes.a { a_tail[0] } else { a_tail[1] };
    let mut batch: usize = batch_shape.iter().product();
    let b_is_shared = b_batch.iter().product::<usize>() == 1;
    let a_is_whole = a_batch.iter().product::<usize>() == batch;
    if b_is_shared && a_is_whole && !transposes.a {
        m *= batch;
        batch = 1;
    }
    let (a_width, b_width) = (a_tail[1], b_tail[1]);
    if batch == 1 {
        let a = Matrix::new(a, a_width, transposes.a);
        let b = Matrix::new(b, b_width, transposes.b);
        product((m, n, k), out, n, (a, b), (scale, Store::Replace), Parallelism::Rayon(0));
        return;
    }
    let scaled = |strides: Vec<isize>, by: usize| -> Vec<isize> {
        strides.into_iter().map(|stride| stride * by as isize).collect()
    };
    let walk = Walk::new(
        batch_shape,
        [
            &scaled(broadcast_strides(a_batch, batch_shape), a_tail[0] * a_tail[1]),
            &scaled(broadcast_strides(b_batch, batch_shape), b_tail[0] * b_tail[1]),
            &scaled(strides(batch_shape), m * n),
        ],
    );
    let mut starts = Vec::with_capacity(batch);
    let inner = walk.inner_strides();
    walk.visit(0, walk.outer(), |_, at| {
        starts.extend((0..walk.inner() as isize).map(|i| {
            let offset = |operand: usize| (at[operand] + i * inner[operand]) as usize;
            (offset(0), offset(1), offset(2))
        }));
    });
    let small = m * n * k <= SMALL_PRODUCT;
    let parallelism = if small { Parallelism::None } else { Parallelism::Rayon(0) };
    let out = Shared::new(out);
    let one = |i: usize| {
        let (a_at, b_at, out_at): (usize, usize, usize) = starts[i];
        // SAFETY: the output's strides are its own, so each product writes its own m * n elements.
        let out = unsafe { out.range(out_at, m * n) };
        let a = Matrix::new(&a[a_at..], a_width, transposes.a);
        let b = Matrix::new(&b[b_at..], b_width, transposes.b);
        product((m, n, k), out, n, (a, b), (scale, Store::Replace), parallelism);
    };
    if small {
        parallel::indices(batch, m * n * k, one);
    } else {
        (0..batch).for_each(one);
    }
}

/// Multiplications below which one product of a batch is not worth splitting over threads.
const SMALL_PRODUCT: usize = 1 << 24;

#[cfg(test)]
mod tests {
    use super::{Float, Transposes, matmul};

    fn values<T: Float>(n: usize, seed: usize) -> Vec<T> {
        (0..n).map(|i| T::of(((i * 7919 + seed * 104_729) % 2003) as f64 / 1001.5 - 1.0)).collect()
    }

    /// The truth: three loops in double precision.
    fn naive(m: usize, n: usize, k: usize, a: &[f64], b: &[f64], t: Transposes) -> Vec<f64> {
        let mut out = vec![0.0; m * n];
        for i in 0..m {
            for j in 0..n {
                for p in 0..k {
                    let a = if t.a { a[p * m + i] } else { a[i * k + p] };
                    let b = if t.b { b[j * k + p] } else { b[p * n + j] };
                    out[i * n + j] += a * b;
                }
            }
        }
        out
    }

    const FLAGS: [Transposes; 4] = [
        Transposes { a: false, b: false },
        Transposes { a: true, b: false },
        Transposes { a: false, b: true },
        Transposes { a: true, b: true },
    ];

    #[test]
    fn all_transposes_match_three_loops() {
        for (m, n, k) in [(1, 1, 1), (3, 5, 7), (1, 33, 17), (33, 1, 17), (65, 70, 129), (4, 4, 0)] {
            for t in FLAGS {
                let (a, b): (Vec<f64>, Vec<f64>) = (values(m * k, 1), values(k * n, 2));
                let mut out = vec![f64::NAN; m * n];
                let a_shape = if t.a { [k, m] } else { [m, k] };
                let b_shape = if t.b { [n, k] } else { [k, n] };
                matmul((&a, &a_shape), (&b, &b_shape), (&mut out, &[m, n]), t, 1.0);
                for (got, want) in out.iter().zip(naive(m, n, k, &a, &b, t)) {
                    assert!((got - want).abs() < 1e-12, "{m} {n} {k} {t:?}");
                }
            }
        }
    }

    #[test]
    fn batches_broadcast() {
        let (m, n, k) = (3, 4, 5);
        let t = Transposes { a: true, b: true };
        let (a, b): (Vec<f64>, Vec<f64>) = (values(2 * m * k, 1), values(3 * k * n, 2));
        let mut out = vec![0.0; 6 * m * n];
        matmul((&a, &[2, 1, k, m]), (&b, &[3, n, k]), (&mut out, &[2, 3, m, n]), t, 0.5);
        for i in 0..2 {
            for j in 0..3 {
                let want = naive(m, n, k, &a[i * m * k..][..m * k], &b[j * n * k..][..n * k], t);
                let got = &out[(i * 3 + j) * m * n..][..m * n];
                assert!(got.iter().zip(&want).all(|(got, want)| (got - 0.5 * want).abs() < 1e-12));
            }
        }
    }

    #[test]
    fn results_do_not_depend_on_the_thread_count() {
        let cases: [(&[usize], usize, usize, usize); 6] = [
            (&[], 127, 513, 1025),
            (&[], 1, 3001, 777),
            (&[], 3001, 1, 777),
            (&[], 515, 517, 5),
            (&[7], 65, 67, 129),
            (&[3], 257, 259, 301),
        ];
        for (batch, m, n, k) in cases {
            for t in FLAGS {
                let count: usize = batch.iter().product();
                let (a, b): (Vec<f32>, Vec<f32>) = (values(count * m * k, 3), values(count * k * n, 4));
                let shape = |rows, cols| [batch, &[rows, cols]].concat();
                let a_shape = if t.a { shape(k, m) } else { shape(m, k) };
                let b_shape = if t.b { shape(n, k) } else { shape(k, n) };
                let runs: Vec<Vec<u32>> = (1..=4)
                    .map(|threads| {
                        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                        let mut out = vec![0.0; count * m * n];
                        pool.install(|| {
                            matmul((&a, &a_shape), (&b, &b_shape), (&mut out, &shape(m, n)), t, 1.0);
                        });
                        out.iter().map(|x| x.to_bits()).collect()
                    })
                    .collect();
                assert!(runs.windows(2).all(|pair| pair[0] == pair[1]), "{batch:?} {m} {n} {k} {t:?}");
            }
        }
    }
}
