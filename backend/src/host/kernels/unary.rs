//! Elementwise functions of one operand.

use super::float::Float;
use super::parallel;

/// `out[i] = f(x[i])`.
pub(crate) fn map<T: Copy + Sync, U: Send>(x: &[T], out: &mut [U], f: impl Fn(T) -> U + Sync) {
    debug_assert_eq!(x.len(), out.len());
    parallel::pieces(out, parallel::PIECE, |start, out| {
        let x = &x[start..start + out.len()];
        for (out, &x) in out.iter_mut().zip(x) {
            *out = f(x);
        }
    });
}

/// `out[i] = f(x[i], y[i])`.
pub(crate) fn map2<A: Copy + Sync, B: Copy + Sync, U: Send>(
    x: &[A],
    y: &[B],
    out: &mut [U],
    f: impl Fn(A, B) -> U + Sync,
) {
    debug_assert!(x.len() == out.len() && y.len() == out.len());
    parallel::pieces(out, parallel::PIECE, |start, out| {
        let x = &x[start..start + out.len()];
        let y = &y[start..start + out.len()];
        for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
            *out = f(x, y);
        }
    });
}

/// One over the square root.
#[inline(always)]
pub(crate) fn rsqrt<T: Float>(x: T) -> T {
    T::ONE / x.sqrt()
}

/// -1, 0 or 1; NaN stays.
#[inline(always)]
pub(crate) fn sign<T: Float>(x: T) -> T {
    if x > T::ZERO {
        T::ONE
    } else if x < T::ZERO {
        -T::ONE
    } else {
        x * T::ZERO
    }
}

/// The positive part; NaN stays.
#[inline(always)]
pub(crate) fn relu<T: Float>(x: T) -> T {
    if x < T::ZERO { T::ZERO } else { x }
}

/// 1 / (1 + e^-x).
#[inline(always)]
pub(crate) fn sigmoid<T: Float>(x: T) -> T {
    T::ONE / (T::ONE + (-x).exp())
}

/// x * sigmoid(x).
#[inline(always)]
pub(crate) fn silu<T: Float>(x: T) -> T {
    x / (T::ONE + (-x).exp())
}

/// log(1 + e^x), without overflow.
#[inline(always)]
pub(crate) fn softplus<T: Float>(x: T) -> T {
    relu(x) + (-x.abs()).exp().log1p()
}

/// x * Phi(x), with the normal distribution function from erf.
#[inline(always)]
pub(crate) fn gelu_erf<T: Float>(x: T) -> T {
    let half = T::of(0.5);
    half * x * (T::ONE + (x * T::of(std::f64::consts::FRAC_1_SQRT_2)).erf())
}

/// The tanh approximation of GELU.
#[inline(always)]
pub(crate) fn gelu_tanh<T: Float>(x: T) -> T {
    let half = T::of(0.5);
    half * x * (T::ONE + gelu_tanh_argument(x).tanh())
}

/// sqrt(2/pi) * (x + 0.044715 x^3).
#[inline(always)]
pub(super) fn gelu_tanh_argument<T: Float>(x: T) -> T {
    let inner = x + T::of(GELU_CUBIC) * (x * x * x);
    T::of(SQRT_2_OVER_PI) * inner
}

/// sqrt(2/pi).
pub(super) const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;
/// The cubic coefficient of the tanh approximation of GELU.
pub(super) const GELU_CUBIC: f64 = 0.044_715;

/// Factor inside the sigmoid of [`gelu_quick`].
pub(super) const GELU_QUICK: f64 = 1.702;

/// `x sigmoid(1.702 x)`.
#[inline(always)]
pub(crate) fn gelu_quick<T: Float>(x: T) -> T {
    x * sigmoid(T::of(GELU_QUICK) * x)
}

#[cfg(test)]
mod tests {
    use super::{gelu_erf, gelu_quick, gelu_tanh, map, relu, sigmoid, sign, silu, softplus};

    #[test]
    fn known_values() {
        // From PyTorch 2.x: torch.nn.functional.gelu/silu/softplus/sigmoid at 1 and -2 in float64.
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        close(gelu_erf(1.0), 0.841_344_746_068_542_9);
        close(gelu_tanh(1.0), 0.841_191_990_608_275_4);
        // x * torch.sigmoid(1.702 * x).
        close(gelu_quick(1.0), 0.845_795_765_932_821_2);
        close(silu(-2.0), -0.238_405_844_044_235_1);
        close(softplus(-2.0), 0.126_928_011_042_972_5);
        close(sigmoid(-2.0), 0.119_202_922_022_117_57);
        assert_eq!(relu(-1.0), 0.0);
        assert!(relu(f32::NAN).is_nan());
        assert_eq!([sign(-3.0), sign(0.0), sign(2.0)], [-1.0, 0.0, 1.0]);
        assert_eq!(softplus(1000.0f32), 1000.0);
        assert_eq!(silu(-1000.0f32), 0.0);
    }

    #[test]
    fn pieces_cover_a_long_slice() {
        let x: Vec<f32> = (0..40_000u16).map(f32::from).collect();
        let mut out = vec![0.0; x.len()];
        map(&x, &mut out, |x| x + 1.0);
        assert!(out.iter().zip(&x).all(|(out, x)| *out == x + 1.0));
    }
}
