//! GELU in its forms, and SiLU.
//!
//! A SwiGLU or GEGLU is a SiLU or GELU and a product: another operator would save one tensor a layer, which the planner
//! saves as well by computing the activation again, and it would be one more operator for each function of the gate.

use super::Fuser;
use super::product::{Product, close, plus_one, product, sums};
use crate::transform::view;
use trainc_ir::op::{Elementwise, GeluForm};
use trainc_ir::{Graph, ValueId};

pub(super) fn fuse(f: &mut Fuser, value: ValueId) -> Option<ValueId> {
    if let Some(x) = sigmoid(f.graph(), value) {
        return same_type(f, x, value).then(|| f.one(Elementwise::Sigmoid, &[x]));
    }
    if let Some(x) = divided(f.graph(), value) {
        return same_type(f, x, value).then(|| f.one(Elementwise::Silu, &[x]));
    }
    view::elementwise(f.graph(), value, &Elementwise::Mul)
        .or_else(|| view::elementwise(f.graph(), value, &Elementwise::Div))?;
    let (x, op) = gated(f.graph(), value)?;
    same_type(f, x, value).then(|| f.one(op, &[x]))
}

fn same_type(f: &Fuser, a: ValueId, b: ValueId) -> bool {
    f.ty(a) == f.ty(b) && f.ty(a).dtype.is_float()
}

/// `x` times a function of `x`.
fn gated(graph: &Graph, value: ValueId) -> Option<(ValueId, Elementwise)> {
    let Product { factor, terms } = product(graph, value);
    let &[a, b] = &terms[..] else { return None };
    for (x, gate) in [(a, b), (b, a)] {
        if factor == 1.0
            && let Some(op) = of_sigmoid(graph, gate, x)
        {
            return Some((x, op));
        }
        let Some((height, curve)) = one_plus(graph, gate) else { continue };
        if !close(factor * height, 0.5) {
            continue;
        }
        let form =
            if view::elementwise(graph, curve, &Elementwise::Erf).is_some_and(|u| is_erf_argument(graph, u[0], x)) {
                GeluForm::Erf
            } else if view::elementwise(graph, curve, &Elementwise::Tanh)
                .is_some_and(|u| is_tanh_argument(graph, u[0], x, 1.0))
            {
                GeluForm::Tanh
            } else {
                continue;
            };
        return Some((x, Elementwise::Gelu { form }));
    }
    None
}

/// What `x` times a sigmoid is.
fn of_sigmoid(graph: &Graph, gate: ValueId, x: ValueId) -> Option<Elementwise> {
    const QUICK: f64 = 1.702;
    // The gate may be computed under another shape.
    let same = |v: ValueId| view::unshaped(graph, v) == view::unshaped(graph, x);
    let gate = if graph.ty(gate) == graph.ty(x) { view::unshaped(graph, gate) } else { gate };
    let u = view::elementwise(graph, gate, &Elementwise::Sigmoid)?[0];
    if u == x || same(u) {
        return Some(Elementwise::Silu);
    }
    let Product { factor, terms } = product(graph, u);
    if terms == [x] && close(factor, QUICK) {
        return Some(Elementwise::Gelu { form: GeluForm::Quick });
    }
    // (1 + tanh u) / 2 is the sigmoid of 2 u.
    is_tanh_argument(graph, u, x, 2.0).then_some(Elementwise::Gelu { form: GeluForm::Tanh })
}

/// `h` and `u` of `h + h u`.
fn one_plus(graph: &Graph, value: ValueId) -> Option<(f64, ValueId)> {
    sums(graph, value).into_iter().find_map(|(a, b)| {
        let height = view::uniform(graph, b)?;
        let Product { factor, terms } = product(graph, a);
        let &[curve] = &terms[..] else { return None };
        (height != 0.0 && factor == height).then_some((height, curve))
    })
}

/// `x / sqrt 2`.
fn is_erf_argument(graph: &Graph, value: ValueId, x: ValueId) -> bool {
    let Product { factor, terms } = product(graph, value);
    terms == [x] && close(factor, std::f64::consts::FRAC_1_SQRT_2)
}

/// `sqrt(2/pi) (x + 0.044715 x^3)`, or `sqrt(2/pi) x (1 + 0.044715 x^2)`, `times` a number.
fn is_tanh_argument(graph: &Graph, value: ValueId, x: ValueId, times: f64) -> bool {
    const CUBIC: f64 = 0.044715;
    let root = (2.0 / std::f64::consts::PI).sqrt();
    let Product { factor, terms } = product(graph, value);
    let cubic = |value: ValueId, power: usize| {
        let Product { factor, terms } = product(graph, value);
        terms.len() == power && terms.iter().all(|&t| t == x) && close(factor, CUBIC)
    };
    let inner = match terms[..] {
        [sum] => sums(graph, sum).into_iter().any(|(a, b)| a == x && cubic(b, 3)),
        [a, b] => [(a, b), (b, a)]
            .into_iter()
            .any(|(first, rest)| first == x && plus_one(graph, rest).is_some_and(|square| cubic(square, 2))),
        _ => false,
    };
    inner && close(factor, times * root)
}

/// `x` of `x / (1 + e^-x)`.
fn divided(graph: &Graph, value: ValueId) -> Option<ValueId> {
    let &[x, divisor] = view::elementwise(graph, value, &Elementwise::Div)? else { return None };
    let minus = view::elementwise(graph, plus_one(graph, divisor)?, &Elementwise::Exp)?[0];
    (view::elementwise(graph, minus, &Elementwise::Neg)?[0] == x).then_some(x)
}

/// `x` of `1 / (1 + e^-x)`.
fn sigmoid(graph: &Graph, value: ValueId) -> Option<ValueId> {
    let one_over = |value| {
        let operands = view::elementwise(graph, value, &Elementwise::Div)?;
        (view::uniform(graph, operands[0]) == Some(1.0)).then_some(operands[1])
    };
    let reciprocal = view::elementwise(graph, value, &Elementwise::Reciprocal).map(|x| x[0]);
    let exp = plus_one(graph, reciprocal.or_else(|| one_over(value))?)?;
    let minus = view::elementwise(graph, exp, &Elementwise::Exp)?[0];
    view::elementwise(graph, minus, &Elementwise::Neg).map(|x| x[0])
}
