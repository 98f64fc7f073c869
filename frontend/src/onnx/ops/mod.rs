//! Lowering rules of ONNX's operators, one file per family.

mod attention;
mod batch_norm;
mod combine;
mod contraction;
mod contrib;
mod control;
mod convolution;
mod creation;
mod depth;
mod einsum;
mod elementwise;
mod indexing;
mod loss;
mod normalization;
mod pooling;
mod reduction;
mod resize;
mod scatter;
mod shape;
mod window;

pub(super) use control::inline_function;

use super::call::{Call, Results};
use super::lower::Lower;

/// Lowers one node to operands.
pub(super) type Rule = fn(&mut Lower<'_>, &Call<'_>) -> Results;

/// The rule of an operator; `None` where there is none.
pub(super) fn rule(domain: &str, op: &str) -> Option<Rule> {
    match domain {
        "" => [
            attention::rule,
            convolution::rule,
            pooling::rule,
            resize::rule,
            depth::rule,
            batch_norm::rule,
            einsum::rule,
            scatter::rule,
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
        // ONNX Runtime's domain also holds fused and early forms of the default domain's operators.
        "com.microsoft" => [contrib::rule, attention::contrib_rule].into_iter().find_map(|family| family(op)),
        _ => None,
    }
}
