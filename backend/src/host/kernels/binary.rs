//! Elementwise functions of two or three operands, with NumPy's broadcasting.

use super::float::Float;
use super::parallel::{self, Shared};
use super::walk::{Walk, broadcast_strides, strides};

/// An operand: its elements and its shape.
pub(crate) type View<'a, T> = (&'a [T], &'a [usize]);

/// `out[i] = f(a[i], b[i])`, both operands broadcast to `shape`.
pub(crate) fn zip<A, B, O>(a: View<'_, A>, b: View<'_, B>, out: &mut [O], shape: &[usize], f: impl Fn(A, B) -> O + Sync)
where
    A: Copy + Sync,
    B: Copy + Sync,
    O: Send,
{
    if out.is_empty() {
        return;
    }
    let walk = Walk::new(shape, [&strides(shape), &broadcast_strides(a.1, shape), &broadcast_strides(b.1, shape)]);
    if walk.outer() == 1 {
        let [_, a_step, b_step] = walk.inner_strides();
        parallel::pieces(out, parallel::PIECE, |start, out| {
            let a = &a.0[start * a_step as usize..];
            let b = &b.0[start * b_step as usize..];
            row(a, a_step, b, b_step, out, &f);
        });
        return;
    }
    let inner = walk.inner();
    let [_, a_step, b_step] = walk.inner_strides();
    parallel::rows(out, inner, |first, group| {
        let count = group.len() / inner;
        walk.visit(first, count, |i, [_, a_at, b_at]| {
            let out = &mut group[(i - first) * inner..(i - first + 1) * inner];
            row(&a.0[a_at as usize..], a_step, &b.0[b_at as usize..], b_step, out, &f);
        });
    });
}

/// One innermost loop; an operand's step is 1, or 0 where it is broadcast.
fn row<A: Copy, B: Copy, O>(a: &[A], a_step: isize, b: &[B], b_step: isize, out: &mut [O], f: &impl Fn(A, B) -> O) {
    let n = out.len();
    match (a_step, b_step) {
        (0, 0) => {
            let (a, b) = (a[0], b[0]);
            out.iter_mut().for_each(|out| *out = f(a, b));
        }
        (_, 0) => {
            let b = b[0];
            out.iter_mut().zip(&a[..n]).for_each(|(out, &a)| *out = f(a, b));
        }
        (0, _) => {
            let a = a[0];
            out.iter_mut().zip(&b[..n]).for_each(|(out, &b)| *out = f(a, b));
        }
        _ => out.iter_mut().zip(&a[..n]).zip(&b[..n]).for_each(|((out, &a), &b)| *out = f(a, b)),
    }
}

/// `out[i] = condition[i] ? a[i] : b[i]`, all operands broadcast to `shape`; a condition byte is false when zero.
pub(crate) fn select<T: Copy + Send + Sync>(
    condition: View<'_, u8>,
    a: View<'_, T>,
    b: View<'_, T>,
    out: &mut [T],
    shape: &[usize],
) {
    if out.is_empty() {
        return;
    }
    let walk = Walk::new(
        shape,
        [
            &broadcast_strides(condition.1, shape),
            &broadcast_strides(a.1, shape),
            &broadcast_strides(b.1, shape),
            &strides(shape),
        ],
    );
    let inner = walk.inner();
    let [c_step, a_step, b_step, _] = walk.inner_strides();
    let out = Shared::new(out);
    let per_piece = parallel::rows_per_piece(inner);
    let outer = walk.outer();
    parallel::indices(outer.div_ceil(per_piece), per_piece * inner, |piece| {
        let first = piece * per_piece;
        walk.visit(first, per_piece.min(outer - first), |_, [c, a_at, b_at, at]| {
            // SAFETY: the output's strides are its own, so the loops of different pieces write different rows.
            let out = unsafe { out.range(at as usize, inner) };
            for (i, out) in out.iter_mut().enumerate() {
                let i = i as isize;
                *out = if condition.0[(c + i * c_step) as usize] != 0 {
                    a.0[(a_at + i * a_step) as usize]
                } else {
                    b.0[(b_at + i * b_step) as usize]
                };
            }
        });
    });
}

/// `a` to the power of `b`; the exponents that models use most are exact products.
#[inline(always)]
pub(crate) fn pow<T: Float>(a: T, b: T) -> T {
    if b == T::of(2.0) {
        a * a
    } else if b == T::of(3.0) {
        a * a * a
    } else if b == T::of(0.5) {
        a.sqrt()
    } else {
        a.pow(b)
    }
}

/// The remainder with the sign of the divisor, as Python's `%` and ONNX's integer `Mod`.
#[inline(always)]
pub(crate) fn floor_mod<T: Float>(a: T, b: T) -> T {
    let r = a % b;
    if r != T::ZERO && (r < T::ZERO) != (b < T::ZERO) { r + b } else { r }
}

#[cfg(test)]
mod tests {
    use super::{floor_mod, pow, select, zip};

    /// The truth: index arithmetic on every element.
    fn naive(a: &[f32], ashape: [usize; 3], b: &[f32], bshape: [usize; 3], shape: [usize; 3]) -> Vec<f32> {
        let at = |s: [usize; 3], i: [usize; 3]| {
            let c = |k: usize| if s[k] == 1 { 0 } else { i[k] };
            (c(0) * s[1] + c(1)) * s[2] + c(2)
        };
        let mut out = Vec::new();
        for i in 0..shape[0] {
            for j in 0..shape[1] {
                for k in 0..shape[2] {
                    out.push(a[at(ashape, [i, j, k])] - 2.0 * b[at(bshape, [i, j, k])]);
                }
            }
        }
        out
    }

    #[test]
    fn every_broadcast_pattern_matches_index_arithmetic() {
        let shape = [3, 70, 130];
        let values = |n: usize, k: usize| (0..n).map(|i| ((i * k) % 1013) as f32).collect::<Vec<_>>();
        for a_mask in 0..8 {
            for b_mask in 0..8 {
                let pick = |mask: usize| std::array::from_fn(|i| if mask >> i & 1 == 1 { shape[i] } else { 1 });
                let (ashape, bshape): ([usize; 3], [usize; 3]) = (pick(a_mask), pick(b_mask));
                let out_shape: [usize; 3] = pick(a_mask | b_mask);
                let a = values(ashape.iter().product(), 7);
                let b = values(bshape.iter().product(), 11);
                let mut out = vec![0.0; out_shape.iter().product()];
                zip((&a, &ashape), (&b, &bshape), &mut out, &out_shape, |a, b| a - 2.0 * b);
                assert_eq!(out, naive(&a, ashape, &b, bshape, out_shape), "{ashape:?} {bshape:?}");
            }
        }
    }

    #[test]
    fn select_broadcasts_its_condition() {
        let (a, b) = ([1, 2, 3, 4, 5, 6], [-1]);
        let mut out = [0; 6];
        select((&[1, 0], &[2, 1]), (&a, &[2, 3]), (&b, &[]), &mut out, &[2, 3]);
        assert_eq!(out, [1, 2, 3, -1, -1, -1]);
    }

    #[test]
    fn powers_and_remainders() {
        assert_eq!(pow(-3.0f32, 3.0), -27.0);
        assert_eq!(pow(-3.0f32, 2.0), 9.0);
        assert_eq!(pow(2.0f64, 10.0), 1024.0);
        assert_eq!(floor_mod(-7.0f32, 3.0), 2.0);
        assert_eq!(floor_mod(7.0f32, -3.0), -2.0);
    }
}
