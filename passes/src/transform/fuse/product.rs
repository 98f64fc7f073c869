//! Products as exporters write them: nested in any way, with constants anywhere, as powers and quotients.

use crate::transform::view;
use trainc_ir::op::Elementwise;
use trainc_ir::{Graph, ValueId};

/// `factor` times the product of `terms`, which are sorted; a power is a repeated term.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Product {
    pub(super) factor: f64,
    pub(super) terms: Vec<ValueId>,
}

/// Takes the product apart down to values that are not products themselves.
pub(super) fn product(graph: &Graph, value: ValueId) -> Product {
    let mut out = Product { factor: 1.0, terms: Vec::new() };
    collect(graph, value, MAX_DEPTH, &mut out);
    out.terms.sort_unstable();
    out
}

/// Deeper products than any pattern has.
const MAX_TERMS: usize = 8;
const MAX_DEPTH: usize = 16;

fn collect(graph: &Graph, value: ValueId, depth: usize, out: &mut Product) {
    use Elementwise as E;
    let scalar = |v: ValueId| view::uniform(graph, v).filter(|c| c.is_finite());
    if out.terms.len() > MAX_TERMS || depth == 0 {
        out.terms.push(value);
    } else if let Some(factor) = scalar(value) {
        out.factor *= factor;
    } else if let Some(&[a, b]) = view::elementwise(graph, value, &E::Mul) {
        collect(graph, a, depth - 1, out);
        collect(graph, b, depth - 1, out);
    } else if let Some((a, divisor)) = quotient(graph, value) {
        collect(graph, a, depth - 1, out);
        out.factor /= divisor;
    } else if let Some(a) = view::elementwise(graph, value, &E::Neg) {
        out.factor = -out.factor;
        collect(graph, a[0], depth - 1, out);
    } else if let Some((a, power)) = power(graph, value) {
        out.terms.extend(std::iter::repeat_n(a, power));
    } else {
        out.terms.push(value);
    }
}

fn quotient(graph: &Graph, value: ValueId) -> Option<(ValueId, f64)> {
    let operands = view::elementwise(graph, value, &Elementwise::Div)?;
    let divisor = view::uniform(graph, operands[1]).filter(|c| c.is_finite() && *c != 0.0)?;
    Some((operands[0], divisor))
}

fn power(graph: &Graph, value: ValueId) -> Option<(ValueId, usize)> {
    let operands = view::elementwise(graph, value, &Elementwise::Pow)?;
    let exponent = view::uniform(graph, operands[1])?;
    [2usize, 3].into_iter().find(|&n| exponent == n as f64).map(|n| (operands[0], n))
}

/// The two operands of a sum, in both orders.
pub(super) fn sums(graph: &Graph, value: ValueId) -> Vec<(ValueId, ValueId)> {
    both_orders(graph, value, &Elementwise::Add)
}

/// The two operands of a product, in both orders.
pub(super) fn factors(graph: &Graph, value: ValueId) -> Vec<(ValueId, ValueId)> {
    both_orders(graph, value, &Elementwise::Mul)
}

fn both_orders(graph: &Graph, value: ValueId, op: &Elementwise) -> Vec<(ValueId, ValueId)> {
    match view::elementwise(graph, value, op) {
        Some(&[a, b]) => vec![(a, b), (b, a)],
        Some(_) | None => Vec::new(),
    }
}

/// `x` of `x + 1`.
pub(super) fn plus_one(graph: &Graph, value: ValueId) -> Option<ValueId> {
    sums(graph, value).into_iter().find(|&(_, b)| view::uniform(graph, b) == Some(1.0)).map(|(a, _)| a)
}

/// Whether two numbers are equal up to the rounding of exporters to half or single precision.
pub(super) fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-3 * b.abs()
}
