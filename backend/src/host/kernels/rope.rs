//! Rotary position embedding and its gradient.

use super::float::Float;
use super::parallel;

/// Which way to turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The rotation.
    Forward,
    /// Its transpose, which is its gradient.
    Backward,
}

/// `x cos + rotate_half(x) sin` by rows of `width` elements, with `rotate_half([a, b]) = [-b, a]` over the halves of a row;
/// `x` is [.., positions, width], the tables are [positions, width].
pub(crate) fn rope<T: Float>(
    x: &[T],
    (cos, sin): (&[T], &[T]),
    (positions, width): (usize, usize),
    turn: Turn,
    out: &mut [T],
) {
    let half = width / 2;
    parallel::rows(out, width, |first, group| {
        for (i, out) in group.chunks_exact_mut(width).enumerate() {
            let row = first + i;
            let (a, b) = x[row * width..(row + 1) * width].split_at(half);
            let at = row % positions * width;
            let (cos_a, cos_b) = cos[at..at + width].split_at(half);
            let (sin_a, sin_b) = sin[at..at + width].split_at(half);
            let (out_a, out_b) = out.split_at_mut(half);
            for j in 0..half {
                (out_a[j], out_b[j]) = match turn {
                    Turn::Forward => (a[j] * cos_a[j] - b[j] * sin_a[j], b[j] * cos_b[j] + a[j] * sin_b[j]),
                    Turn::Backward => (a[j] * cos_a[j] + b[j] * sin_b[j], b[j] * cos_b[j] - a[j] * sin_a[j]),
                };
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{Turn, rope};

    #[test]
    fn a_quarter_turn_swaps_the_halves() {
        // Closed form: at angle pi/2 the halves (a, b) become (-b, a); position 0 stays.
        let x = [1.0f64, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0];
        let (cos, sin) = ([1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
        let mut y = [0.0; 8];
        rope(&x, (&cos, &sin), (2, 4), Turn::Forward, &mut y);
        assert_eq!(y, [1.0, 2.0, 3.0, 4.0, -3.0, -4.0, 1.0, 2.0]);
    }

    #[test]
    fn backward_is_the_transpose_of_forward() {
        // Truth: <rope(x), dy> == <x, rope_grad(dy)>, for tables whose halves differ too (integers, so exactly).
        let value = |k: usize| -> Vec<f64> { (0..3 * 2 * 6).map(|i| ((i * k) % 17) as f64 - 8.0).collect() };
        let (x, dy, cos, sin) = (value(5), value(7), value(3), value(11));
        let (mut y, mut dx) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        rope(&x, (&cos[..12], &sin[..12]), (2, 6), Turn::Forward, &mut y);
        rope(&dy, (&cos[..12], &sin[..12]), (2, 6), Turn::Backward, &mut dx);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        assert_eq!(dot(&y, &dy), dot(&x, &dx));
    }
}
