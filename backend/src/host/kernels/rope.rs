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

/// Which elements of a row turn together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairs {
    /// One of the first half and the one at the same place of the second half.
    Halves,
    /// One at an even position and the next one.
    Neighbours,
}

/// `x cos + rotate(x) sin` by rows of `width` elements, with `rotate([a, b]) = [-b, a]` over the parts of a row; `x` is
/// [.., positions, width], the tables are [positions, width].
pub(crate) fn rope<T: Float>(
    x: &[T],
    (cos, sin): (&[T], &[T]),
    (positions, width): (usize, usize),
    (turn, pairs): (Turn, Pairs),
    out: &mut [T],
) {
    let half = width / 2;
    parallel::rows(out, width, |first, group| {
        for (i, out) in group.chunks_exact_mut(width).enumerate() {
            let row = first + i;
            let x = &x[row * width..(row + 1) * width];
            let at = row % positions * width;
            let (cos, sin) = (&cos[at..at + width], &sin[at..at + width]);
            for j in 0..half {
                let (a, b) = match pairs {
                    Pairs::Halves => (j, half + j),
                    Pairs::Neighbours => (2 * j, 2 * j + 1),
                };
                (out[a], out[b]) = match turn {
                    Turn::Forward => (x[a] * cos[a] - x[b] * sin[a], x[b] * cos[b] + x[a] * sin[b]),
                    Turn::Backward => (x[a] * cos[a] + x[b] * sin[b], x[b] * cos[b] - x[a] * sin[a]),
                };
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{Pairs, Turn, rope};

    #[test]
    fn a_quarter_turn_swaps_the_parts() {
        // Closed form: at angle pi/2 the parts (a, b) become (-b, a); position 0 stays.
        let x = [1.0f64, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0];
        let (cos, sin) = ([1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
        let mut y = [0.0; 8];
        rope(&x, (&cos, &sin), (2, 4), (Turn::Forward, Pairs::Halves), &mut y);
        assert_eq!(y, [1.0, 2.0, 3.0, 4.0, -3.0, -4.0, 1.0, 2.0]);
        rope(&x, (&cos, &sin), (2, 4), (Turn::Forward, Pairs::Neighbours), &mut y);
        assert_eq!(y, [1.0, 2.0, 3.0, 4.0, -2.0, 1.0, -4.0, 3.0]);
    }

    #[test]
    fn backward_is_the_transpose_of_forward() {
        // Truth: <rope(x), dy> == <x, rope_grad(dy)>, for tables whose parts differ too (integers, so exactly).
        let value = |k: usize| -> Vec<f64> { (0..3 * 2 * 6).map(|i| ((i * k) % 17) as f64 - 8.0).collect() };
        let (x, dy, cos, sin) = (value(5), value(7), value(3), value(11));
        for pairs in [Pairs::Halves, Pairs::Neighbours] {
            let (mut y, mut dx) = (vec![0.0; x.len()], vec![0.0; x.len()]);
            rope(&x, (&cos[..12], &sin[..12]), (2, 6), (Turn::Forward, pairs), &mut y);
            rope(&dy, (&cos[..12], &sin[..12]), (2, 6), (Turn::Backward, pairs), &mut dx);
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            assert_eq!(dot(&y, &dy), dot(&x, &dx));
        }
    }
}
