//! Where a slope is a convention, it is PyTorch's. The expected numbers are what `torch.autograd` gives for `relu`,
//! `abs`, `pow`, `maximum`, `amax`, `max_pool1d` and `prod` at these points.

use crate::finite::Case;
use trainc_ir::Op;
use trainc_ir::op::{Elementwise, Movement, Pooling, ReduceKind, Reduction};

/// The gradient of the sum of the results by each operand.
fn slopes(op: impl Into<Op>, operands: &[&[f64]]) -> Vec<Vec<f64>> {
    let op = op.into();
    let shapes: Vec<_> = operands.iter().map(|values| [values.len() as u64]).collect();
    let drawn: Vec<_> = shapes.iter().map(|shape| (&shape[..], 0.0, 1.0)).collect();
    let case = Case::new("kink", &drawn, move |b, p| vec![b.one(op.clone(), p).expect("cases are well typed")]);
    case.at(operands).gradients()
}

fn reduce(kind: ReduceKind) -> Reduction {
    Reduction::Reduce { kind, axes: vec![0], keep: false }
}

#[test]
fn slopes_at_kinks() {
    assert_eq!(slopes(Elementwise::Relu, &[&[0.0]]), [[0.0]]);
    assert_eq!(slopes(Elementwise::Abs, &[&[0.0]]), [[0.0]]);
    assert_eq!(slopes(Elementwise::Pow, &[&[0.0, 2.0], &[0.0, 0.0]])[0], [0.0, 0.0]);
    assert_eq!(slopes(Elementwise::Pow, &[&[0.0], &[2.0]]), [[0.0], [0.0]]);
}

#[test]
fn equal_operands_share() {
    for op in [Elementwise::Max, Elementwise::Min] {
        assert_eq!(slopes(op, &[&[2.0], &[2.0]]), [[0.5], [0.5]]);
    }
    assert_eq!(slopes(Elementwise::Max, &[&[3.0], &[2.0]]), [[1.0], [0.0]]);
    assert_eq!(slopes(Elementwise::Min, &[&[3.0], &[2.0]]), [[0.0], [1.0]]);
}

#[test]
fn equal_extrema_share() {
    assert_eq!(slopes(reduce(ReduceKind::Max), &[&[1.0, 5.0, 5.0, 0.0]]), [[0.0, 0.5, 0.5, 0.0]]);
    assert_eq!(slopes(reduce(ReduceKind::Min), &[&[1.0, 0.0, 5.0, 0.0]]), [[0.0, 0.5, 0.0, 0.5]]);
}

/// Unlike `amax`, a pooling gives everything to the first.
#[test]
fn the_first_of_equal_elements_of_a_window_gets_all() {
    let case = Case::new("pooling", &[(&[6], 0.0, 1.0)], |b, p| {
        let x = b.one(Movement::Reshape { shape: vec![1, 1, 6] }, p).expect("as many elements");
        let (kernel, strides) = (vec![3], vec![3]);
        let (low, high, dilations) = (vec![0], vec![0], vec![1]);
        let op = Pooling::MaxPool { kernel, strides, low, high, dilations, ceil: false };
        vec![b.one(op, &[x]).expect("two windows")]
    });
    assert_eq!(case.at(&[&[1.0, 5.0, 5.0, 0.0, 0.0, 0.0]]).gradients(), [[0.0, 1.0, 0.0, 1.0, 0.0, 0.0]]);
}

#[test]
fn products_with_zeros() {
    assert_eq!(slopes(reduce(ReduceKind::Prod), &[&[2.0, 0.0, 3.0]]), [[0.0, 6.0, 0.0]]);
    assert_eq!(slopes(reduce(ReduceKind::Prod), &[&[0.0, 0.0, 3.0]]), [[0.0, 0.0, 0.0]]);
    assert_eq!(slopes(reduce(ReduceKind::Prod), &[&[2.0, 4.0, 3.0]]), [[12.0, 6.0, 8.0]]);
}
