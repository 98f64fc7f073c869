//! What differs between two plans, in words: what they need and how fast they are, why, and what else.

mod condition;
mod facts;
mod inside;
mod words;

#[cfg(test)]
mod tests;

pub use condition::{Condition, Metric};
pub use facts::Facts;

use crate::failure::Failure;
use std::path::Path;

/// One difference.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Difference {
    /// What it is about, in one word that stays: `step`, `peak`, `gpus`, ...
    pub topic: &'static str,
    /// The difference in words.
    pub text: String,
    /// What figures are counted in: `bytes`, `ps`, `ppm` or `count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<&'static str>,
    /// What the first plan has, where it is one value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<serde_json::Value>,
    /// What the second plan has, where it is one value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<serde_json::Value>,
}

/// Two plans, and what differs, the most important first.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanDiff {
    /// The first plan.
    pub before: Facts,
    /// The second plan.
    pub after: Facts,
    /// The differences.
    pub differences: Vec<Difference>,
}

/// Compares two plans: folders that `compile` wrote, plan files, or `summary.json` files, which tell less.
///
/// # Errors
/// One of them cannot be read.
pub fn diff(before: &Path, after: &Path) -> Result<PlanDiff, Failure> {
    let (before, after) = (Facts::read(before)?, Facts::read(after)?);
    let differences = words::differences(&before, &after);
    Ok(PlanDiff { before, after, differences })
}
