//! The element types that compute kernels run on: `f32` (vectorizable own approximations) and `f64` (libm).

use super::reduce::{Max, Sum, fold};
use super::vector;
use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, Sub, SubAssign};

/// A float that kernels compute in. Transcendental functions give the same bits on every machine.
pub(crate) trait Float:
    Copy
    + Debug
    + Default
    + PartialOrd
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + AddAssign
    + Sub<Output = Self>
    + SubAssign
    + Mul<Output = Self>
    + MulAssign
    + Div<Output = Self>
    + DivAssign
    + Rem<Output = Self>
    + Neg<Output = Self>
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// The least value of all.
    const NEG_INFINITY: Self;

    /// Rounds to this type.
    fn of(value: f64) -> Self;
    /// Widens.
    fn wide(self) -> f64;
    /// e to the power of `self`.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn log(self) -> Self;
    /// Logarithm of one plus `self`.
    fn log1p(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Error function.
    fn erf(self) -> Self;
    /// Sine.
    fn sin(self) -> Self;
    /// Cosine.
    fn cos(self) -> Self;
    /// `self` to the power of `exponent`.
    fn pow(self, exponent: Self) -> Self;
    /// Largest integer not above.
    fn floor(self) -> Self;
    /// Least integer not below.
    fn ceil(self) -> Self;
    /// Nearest integer, ties to even.
    fn round(self) -> Self;
    /// Magnitude.
    fn abs(self) -> Self;
    /// Whether this is not a number.
    fn is_nan(self) -> bool;
    /// Sum of a slice in the fixed order of [`fold`].
    fn sum(x: &[Self]) -> Self;
    /// Greatest element of a slice; NaN wins.
    fn greatest(x: &[Self]) -> Self;

    /// The greater; a NaN wins, as in PyTorch and NumPy.
    fn maximum(self, other: Self) -> Self {
        if self > other || self.is_nan() { self } else { other }
    }
    /// The lesser; a NaN wins.
    fn minimum(self, other: Self) -> Self {
        if self < other || self.is_nan() { self } else { other }
    }
}

impl Float for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const NEG_INFINITY: Self = Self::NEG_INFINITY;

    fn of(value: f64) -> Self {
        value as Self
    }
    fn wide(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn exp(self) -> Self {
        vector::exp(self)
    }
    fn log(self) -> Self {
        libm::logf(self)
    }
    fn log1p(self) -> Self {
        libm::log1pf(self)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        self.sqrt()
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        vector::tanh(self)
    }
    #[inline(always)]
    fn erf(self) -> Self {
        vector::erf(self)
    }
    fn sin(self) -> Self {
        libm::sinf(self)
    }
    fn cos(self) -> Self {
        libm::cosf(self)
    }
    fn pow(self, exponent: Self) -> Self {
        libm::powf(self, exponent)
    }
    fn floor(self) -> Self {
        libm::floorf(self)
    }
    fn ceil(self) -> Self {
        libm::ceilf(self)
    }
    fn round(self) -> Self {
        libm::rintf(self)
    }
    #[inline(always)]
    fn abs(self) -> Self {
        self.abs()
    }
    #[inline(always)]
    fn is_nan(self) -> bool {
        self.is_nan()
    }
    fn sum(x: &[Self]) -> Self {
        fold::<Self, Sum<Self>>(x)
    }
    fn greatest(x: &[Self]) -> Self {
        fold::<Self, Max<Self>>(x)
    }
}

impl Float for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const NEG_INFINITY: Self = Self::NEG_INFINITY;

    fn of(value: f64) -> Self {
        value
    }
    fn wide(self) -> f64 {
        self
    }
    fn exp(self) -> Self {
        libm::exp(self)
    }
    fn log(self) -> Self {
        libm::log(self)
    }
    fn log1p(self) -> Self {
        libm::log1p(self)
    }
    fn sqrt(self) -> Self {
        self.sqrt()
    }
    fn tanh(self) -> Self {
        libm::tanh(self)
    }
    fn erf(self) -> Self {
        libm::erf(self)
    }
    fn sin(self) -> Self {
        libm::sin(self)
    }
    fn cos(self) -> Self {
        libm::cos(self)
    }
    fn pow(self, exponent: Self) -> Self {
        libm::pow(self, exponent)
    }
    fn floor(self) -> Self {
        libm::floor(self)
    }
    fn ceil(self) -> Self {
        libm::ceil(self)
    }
    fn round(self) -> Self {
        libm::rint(self)
    }
    fn abs(self) -> Self {
        self.abs()
    }
    fn is_nan(self) -> bool {
        self.is_nan()
    }
    fn sum(x: &[Self]) -> Self {
        fold::<Self, Sum<Self>>(x)
    }
    fn greatest(x: &[Self]) -> Self {
        fold::<Self, Max<Self>>(x)
    }
}
