//! Derivatives of elementwise functions: each takes the function's input or output, and the incoming gradient.

use super::float::Float;
use super::unary::{GELU_CUBIC, GELU_QUICK, SQRT_2_OVER_PI, gelu_tanh_argument, sigmoid};

/// Through `relu`, from the input: zero at zero, as in PyTorch.
#[inline(always)]
pub(crate) fn relu<T: Float>(x: T, dy: T) -> T {
    if x > T::ZERO { dy } else { T::ZERO }
}

/// Through `tanh`, from the output.
#[inline(always)]
pub(crate) fn tanh_from_output<T: Float>(y: T, dy: T) -> T {
    dy * (T::ONE - y * y)
}

/// Through `sigmoid`, from the output.
#[inline(always)]
pub(crate) fn sigmoid_from_output<T: Float>(y: T, dy: T) -> T {
    dy * ((T::ONE - y) * y)
}

/// Through `silu`, from the input.
#[inline(always)]
pub(crate) fn silu<T: Float>(x: T, dy: T) -> T {
    let s = sigmoid(x);
    dy * s * (T::ONE + x * (T::ONE - s))
}

/// Through `gelu_erf`, from the input.
#[inline(always)]
pub(crate) fn gelu_erf<T: Float>(x: T, dy: T) -> T {
    const INV_SQRT_2_PI: f64 = 0.398_942_280_401_432_7;
    let half = T::of(0.5);
    let cdf = half * (T::ONE + (x * T::of(std::f64::consts::FRAC_1_SQRT_2)).erf());
    let pdf = T::of(INV_SQRT_2_PI) * (-half * x * x).exp();
    dy * (cdf + x * pdf)
}

/// Through `gelu_tanh`, from the input.
#[inline(always)]
pub(crate) fn gelu_tanh<T: Float>(x: T, dy: T) -> T {
    let half = T::of(0.5);
    let t = gelu_tanh_argument(x).tanh();
    let slope = T::of(SQRT_2_OVER_PI) * (T::ONE + T::of(3.0 * GELU_CUBIC) * x * x);
    dy * (half * (T::ONE + t) + half * x * (T::ONE - t * t) * slope)
}

/// Through `gelu_quick`, from the input.
#[inline(always)]
pub(crate) fn gelu_quick<T: Float>(x: T, dy: T) -> T {
    let u = T::of(GELU_QUICK) * x;
    let s = sigmoid(u);
    dy * s * (T::ONE + u * (T::ONE - s))
}

#[cfg(test)]
mod tests {
    use super::super::unary;
    use super::Float;

    /// The truth is the central difference in double precision.
    fn check(f: fn(f64) -> f64, grad: impl Fn(f64) -> f64) {
        let h = 1e-6;
        for x in [-3.1, -1.0, -0.2, 0.3, 0.9, 2.5] {
            let want = (f(x + h) - f(x - h)) / (2.0 * h);
            let got = grad(x) / 1.7;
            assert!((got - want).abs() < 1e-8 * want.abs().max(1.0), "at {x}: {got}, expected {want}");
        }
    }

    #[test]
    fn derivatives_match_finite_differences() {
        let dy = 1.7;
        check(unary::relu, |x| super::relu(x, dy));
        check(Float::tanh, |x| super::tanh_from_output(x.tanh(), dy));
        check(unary::sigmoid, |x| super::sigmoid_from_output(unary::sigmoid(x), dy));
        check(unary::silu, |x| super::silu(x, dy));
        check(unary::gelu_erf, |x| super::gelu_erf(x, dy));
        check(unary::gelu_tanh, |x| super::gelu_tanh(x, dy));
        check(unary::gelu_quick, |x| super::gelu_quick(x, dy));
    }
}
