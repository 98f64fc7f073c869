//! Single-precision exp, tanh and erf without branches or calls, so that loops over them vectorize.
//!
//! Only additions, multiplications, divisions, comparisons and bit operations are used, none of them fused: the results
//! have the same bits on every machine.

/// Adding and subtracting this rounds a small float to the nearest integer: the ulp at 1.5 * 2^23 is one.
const ROUNDING: f32 = 12_582_912.0;

/// e^x within 1.5 ulp; overflows to infinity, underflows through the subnormals to zero.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // Beyond these bounds the result is infinity or zero anyway; the comparisons keep a NaN.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -105.0 { -105.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUNDING;
    let n = shifted - ROUNDING;
    // ln 2 in two parts, the first exact in few bits, so that n * HIGH is exact.
    let r = x - n * 0.693_359_4;
    let r = r - n * -2.121_944_4e-4;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let y = p * (r * r) + r + 1.0;
    // 2^n as two factors, each a normal number.
    let n = shifted.to_bits().wrapping_sub(ROUNDING.to_bits()) as i32;
    let half = n >> 1;
    let low = f32::from_bits((half.wrapping_add(127) as u32) << 23);
    let high = f32::from_bits((n.wrapping_sub(half).wrapping_add(127) as u32) << 23);
    y * low * high
}

/// tanh within 2 ulp.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let t = x.abs();
    let s = x * x;
    let p = -5.704_988_7e-3;
    let p = p * s + 2.063_909e-2;
    let p = p * s - 5.373_971_6e-2;
    let p = p * s + 1.333_144_2e-1;
    let p = p * s - 3.333_328e-1;
    let small = p * s * x + x;
    let large = (1.0 - 2.0 / (exp(2.0 * t) + 1.0)).copysign(x);
    if t < 0.625 { small } else { large }
}

/// erf within 2 ulp (minimax polynomials in the style of Juffa, evaluated without fusing).
#[inline(always)]
pub(super) fn erf(x: f32) -> f32 {
    let t = x.abs();
    let s = x * x;
    let p = -5.967_617e-4;
    let p = p * s + 4.991_194_2e-3;
    let p = p * s - 2.676_813_5e-2;
    let p = p * s + 1.128_199_25e-1;
    let p = p * s - 3.761_253_4e-1;
    let p = p * s + 1.283_791_7e-1;
    let small = p * x + x;
    // The polynomial diverges where erf is long 1; the comparison keeps a NaN.
    let t = if t > 4.0 { 4.0 } else { t };
    let s = t * t;
    let q = -1.728_534_7e-5 * t + 3.831_972_6e-4;
    let u = -3.883_964_4e-3 * t + 2.425_462_2e-2;
    let q = q * s + u;
    let q = q * t - 1.067_778_8e-1;
    let q = q * t - 6.348_467e-1;
    let q = q * t - 1.287_175_1e-1;
    let q = q * t - t;
    let large = (1.0 - exp(q)).copysign(x);
    if t > 0.927_734_4 { large } else { small }
}

#[cfg(test)]
mod tests {
    use super::{erf, exp, tanh};

    /// Every value of a fixed pseudo-random walk over `low..high`, with the truth from libm in double precision.
    fn worst_ulp(low: f32, high: f32, f: impl Fn(f32) -> f32, truth: impl Fn(f64) -> f64) -> f64 {
        let n = 400_000;
        (0..=n)
            .map(|i| low + (high - low) * (i as f32 / n as f32))
            .map(|x| {
                let want = truth(f64::from(x));
                let rounded = want as f32;
                let ulp = f64::from(f32::from_bits(rounded.abs().to_bits() + 1) - rounded.abs());
                ((f64::from(f(x)) - want) / ulp).abs()
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn exp_is_within_two_ulp() {
        assert!(worst_ulp(-87.0, 88.7, exp, libm::exp) < 1.5);
        assert!(worst_ulp(-1.0, 1.0, exp, libm::exp) < 1.5);
        assert!(worst_ulp(-103.0, -87.0, exp, libm::exp) < 1.5, "subnormal results");
    }

    #[test]
    fn exp_has_the_limits_of_ieee() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-200.0), 0.0);
        assert_eq!(exp(89.0), f32::INFINITY);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn tanh_is_within_two_ulp() {
        assert!(worst_ulp(-10.0, 10.0, tanh, libm::tanh) < 2.0);
        assert!(worst_ulp(-0.7, 0.7, tanh, libm::tanh) < 2.0);
        assert_eq!(tanh(f32::INFINITY), 1.0);
        assert_eq!(tanh(f32::NEG_INFINITY), -1.0);
        assert!(tanh(f32::NAN).is_nan());
    }

    #[test]
    fn erf_is_within_two_ulp() {
        assert!(worst_ulp(-5.0, 5.0, erf, libm::erf) < 2.0);
        assert!(worst_ulp(-1.0, 1.0, erf, libm::erf) < 2.0);
        assert_eq!(erf(f32::INFINITY), 1.0);
        assert_eq!(erf(f32::NEG_INFINITY), -1.0);
        assert!(erf(f32::NAN).is_nan());
    }
}
