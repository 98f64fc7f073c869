//! Exact ratios of counts and times.

use std::cmp::Ordering;
use std::fmt;

/// A ratio in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    numerator: u128,
    denominator: u128,
}

impl Ratio {
    /// The ratio of two numbers; nothing to nothing is 0.
    pub fn new(numerator: u128, denominator: u128) -> Self {
        if denominator == 0 {
            return Self { numerator: 0, denominator: 1 };
        }
        let (mut a, mut b) = (numerator, denominator);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Self { numerator: numerator / a, denominator: denominator / a }
    }

    /// Above the line.
    pub fn numerator(self) -> u128 {
        self.numerator
    }

    /// Below the line; never 0.
    pub fn denominator(self) -> u128 {
        self.denominator
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        // Numbers of schedules are below 2^64, so that products fit; beyond it they would be equal.
        let product = |a: u128, b: u128| a.saturating_mul(b);
        product(self.numerator, other.denominator).cmp(&product(other.numerator, self.denominator))
    }
}

/// A decimal number: with the precision of the format, or else with up to four places.
impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = f.precision().unwrap_or(4).min(18);
        let scale = 10u128.pow(places as u32);
        let scaled = (self.numerator.saturating_mul(scale).saturating_add(self.denominator / 2)) / self.denominator;
        let mut text = format!("{}", scaled / scale);
        if places > 0 {
            let fraction = format!("{:0places$}", scaled % scale);
            let fraction = if f.precision().is_some() { &fraction } else { fraction.trim_end_matches('0') };
            if !fraction.is_empty() {
                text = format!("{text}.{fraction}");
            }
        }
        f.pad_integral(true, "", &text)
    }
}
