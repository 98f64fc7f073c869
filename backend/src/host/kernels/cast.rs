//! Conversions between element types.

use super::unary::map;
use half::{bf16, f16};

/// An element of any type, convertible to any other as PyTorch converts.
pub(crate) trait Element: Copy + Send + Sync + 'static {
    /// Widened to double (exact, except for large 64-bit integers).
    fn to_f64(self) -> f64;
    /// Truncated to an integer; out of range saturates, NaN is zero.
    fn to_i64(self) -> i64;
    /// Whether this type is a float.
    const FLOAT: bool;
    /// Rounds a double.
    fn from_f64(value: f64) -> Self;
    /// Wraps an integer.
    fn from_i64(value: i64) -> Self;
}

/// `out[i] = x[i]`, converted.
pub(crate) fn cast<A: Element, B: Element>(x: &[A], out: &mut [B]) {
    if A::FLOAT && B::FLOAT {
        map(x, out, |x| B::from_f64(x.to_f64()));
    } else if A::FLOAT {
        map(x, out, |x| B::from_i64(x.to_i64()));
    } else {
        map(x, out, |x| B::from_i64(x.to_i64()));
    }
}

/// `out[i] = x[i] != 0`, as bytes 0 and 1.
pub(crate) fn to_bool<A: Element>(x: &[A], out: &mut [u8]) {
    map(x, out, |x| u8::from(if A::FLOAT { x.to_f64() != 0.0 } else { x.to_i64() != 0 }));
}

macro_rules! integer {
    ($($t:ty),*) => {$(
        impl Element for $t {
            const FLOAT: bool = false;
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as i64 as $t
            }
            #[inline(always)]
            fn from_i64(value: i64) -> Self {
                value as $t
            }
        }
    )*};
}
integer!(u8, i8, i32, i64);

macro_rules! float {
    ($($t:ty, $to:expr, $from:expr;)*) => {$(
        impl Element for $t {
            const FLOAT: bool = true;
            #[inline(always)]
            fn to_f64(self) -> f64 {
                $to(self)
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                $to(self) as i64
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                $from(value)
            }
            #[inline(always)]
            fn from_i64(value: i64) -> Self {
                $from(value as f64)
            }
        }
    )*};
}
float! {
    f32, f64::from, |value| value as f32;
    f64, |value| value, |value| value;
    f16, f16::to_f64, f16::from_f64;
    bf16, bf16::to_f64, bf16::from_f64;
}

#[cfg(test)]
mod tests {
    use super::{cast, to_bool};
    use half::bf16;

    #[test]
    fn conversions_follow_pytorch() {
        // Truth: torch.tensor([...]).to(dtype).
        let x = [1.9f32, -1.9, 0.0, f32::NAN];
        let mut ints = [7i64; 4];
        cast(&x, &mut ints);
        assert_eq!(ints, [1, -1, 0, 0]);
        let mut bools = [9u8; 4];
        to_bool(&x, &mut bools);
        assert_eq!(bools, [1, 1, 0, 1]);
        let mut bytes = [0i8; 2];
        cast(&[300i32, -1], &mut bytes);
        assert_eq!(bytes, [44, -1]);
        let mut short = [bf16::ZERO; 2];
        cast(&[1.0f32 + 1.0 / 256.0, 3.0], &mut short);
        assert_eq!(short, [bf16::from_f32(1.0), bf16::from_f32(3.0)], "a tie rounds to even");
    }
}
