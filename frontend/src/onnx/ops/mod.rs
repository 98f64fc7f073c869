//! Lowering rules of ONNX's operators, one file per family.

mod combine;
mod contraction;
mod control;
mod creation;
mod elementwise;
mod indexing;
mod loss;
mod normalization;
mod reduction;
mod shape;

pub(super) use control::inline_function;

use super::call::{Call, Results};
use super::lower::Lower;

/// Lowers one node to operands.
pub(super) type Rule = fn(&mut Lower<'_>, &Call<'_>) -> Results;

/// The rule of an operator; `None` where there is none.
pub(super) fn rule(domain: &str, op: &str) -> Option<Rule> {
    match domain {
        "" => [
            elementwise::rule,
            shape::rule,
            indexing::rule,
            combine::rule,
            contraction::rule,
            normalization::rule,
            reduction::rule,
            creation::rule,
            loss::rule,
            control::rule,
        ]
        .into_iter()
        .find_map(|family| family(op)),
        _ => None,
    }
}
