//! Rotary position embedding and its gradient.

use super::float::Float;
use super::parallel;

/// How the two halves of each rotated pair lie in a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairing {
    /// Element `i` with element `i + rotated / 2` (GPT-NeoX, LLaMA in Hugging Face form).
    Halves,
    /// Element `2 i` with element `2 i + 1` (GPT-J, the original LLaMA).
    Neighbours,
}

/// Which way to turn: the gradient turns back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The forward rotation.
    Forward,
    /// The transposed rotation, which is the gradient.
    Backward,
}

/// Rotates `x`, shaped [.., positions, width], by the tables `cos` and `sin`, shaped [positions, rotated / 2]; elements from
/// `rotated` to `width` are copied.
pub(crate) fn rope<T: Float>(
    x: &[T],
    (cos, sin): (&[T], &[T]),
    (positions, width): (usize, usize),
    (pairing, turn): (Pairing, Turn),
    out: &mut [T],
) {
    let half = cos.len() / positions.max(1);
    parallel::rows(out, width, |first, group| {
        for (i, out) in group.chunks_exact_mut(width).enumerate() {
            let row = first + i;
            let x = &x[row * width..(row + 1) * width];
            let position = row % positions;
            let cos = &cos[position * half..(position + 1) * half];
            let sin = &sin[position * half..(position + 1) * half];
            for j in 0..half {
                let (a, b) = match pairing {
                    Pairing::Halves => (j, j + half),
                    Pairing::Neighbours => (2 * j, 2 * j + 1),
                };
                let sin = if turn == Turn::Forward { sin[j] } else { -sin[j] };
                out[a] = x[a] * cos[j] - x[b] * sin;
                out[b] = x[b] * cos[j] + x[a] * sin;
            }
            out[2 * half..].copy_from_slice(&x[2 * half..]);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{Pairing, Turn, rope};

    #[test]
    fn a_quarter_turn_swaps_the_pair_and_the_gradient_turns_back() {
        // Closed form: at angle pi/2 the pair (a, b) becomes (-b, a); position 0 stays.
        let x = [1.0f64, 2.0, 3.0, 4.0, 9.0, 1.0, 2.0, 3.0, 4.0, 9.0];
        let (cos, sin) = ([1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]);
        for (pairing, want) in
            [(Pairing::Halves, [-3.0, -4.0, 1.0, 2.0, 9.0]), (Pairing::Neighbours, [-2.0, 1.0, -4.0, 3.0, 9.0])]
        {
            let (mut y, mut back) = ([0.0; 10], [0.0; 10]);
            rope(&x, (&cos, &sin), (2, 5), (pairing, Turn::Forward), &mut y);
            assert_eq!(y[..5], x[..5]);
            assert_eq!(y[5..], want);
            rope(&y, (&cos, &sin), (2, 5), (pairing, Turn::Backward), &mut back);
            assert_eq!(back, x, "a rotation's transpose is its inverse");
        }
    }
}
