//! Heads: factors of the scores, and key-value heads that are repeated for several query heads.

use crate::transform::view;
use trainc_ir::op::{Elementwise, Movement};
use trainc_ir::{Graph, ValueId};

/// Strips products with and quotients by constants: the value inside and the factor.
pub(super) fn unscaled(graph: &Graph, mut value: ValueId) -> (ValueId, f64) {
    let mut factor = 1.0;
    loop {
        let step = |op: &Elementwise| {
            let &[a, b] = view::elementwise(graph, value, op)? else { return None };
            let constant = view::uniform(graph, b).filter(|c| c.is_finite() && *c != 0.0)?;
            (graph.ty(a) == graph.ty(value)).then_some((a, constant))
        };
        if let Some((inner, constant)) = step(&Elementwise::Mul) {
            (value, factor) = (inner, factor * constant);
        } else if let Some((inner, constant)) = step(&Elementwise::Div) {
            (value, factor) = (inner, factor / constant);
        } else {
            return (value, factor);
        }
    }
}

/// The heads `[b, g, t, d]` of a value `[b, g r, t, d]` that repeats each of them `r` times in a row.
pub(super) fn unrepeated(graph: &Graph, value: ValueId) -> Option<ValueId> {
    let &[b, h, t, d] = &graph.ty(value).shape[..] else { return None };
    let (Movement::Reshape { shape: _ }, repeated) = view::movement(graph, value)? else { return None };
    let (Movement::Broadcast { shape }, single) = view::movement(graph, repeated)? else { return None };
    let &[_, g, r, _, _] = &shape[..] else { return None };
    if shape[..] != [b, g, r, t, d] || g * r != h || graph.ty(single).shape != [b, g, 1, t, d] {
        return None;
    }
    let (Movement::Reshape { shape: _ }, heads) = view::movement(graph, single)? else { return None };
    (graph.ty(heads).shape == [b, g, t, d]).then_some(heads)
}
