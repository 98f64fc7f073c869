//! A training graph of two matrices and a tied one, with dropout and a reshape, for the tests of the plan verifier.

use trainc_ir::id::{SideTable, Table};
use trainc_ir::op::{
    Contraction, Creation, Elementwise, Literal, Movement, Op, Optimizer, Random, Real, ReduceKind, Reduction,
};
use trainc_ir::{Contribution, DType, GraphBuilder, InputRole, OutputRole, Parameter, Phase, TrainingGraph, Type};

pub(crate) fn f32(shape: &[u64]) -> Type {
    Type::new(DType::F32, shape)
}

pub(crate) fn matmul(transpose_a: bool, transpose_b: bool) -> Op {
    Contraction::MatMul { transpose_a, transpose_b }.into()
}

pub(crate) fn dropout() -> Op {
    Random::Dropout { p: Real::new(0.5), site: 7 }.into()
}

pub(crate) fn dropout_grad() -> Op {
    Random::DropoutGrad { p: Real::new(0.5), site: 7 }.into()
}

pub(crate) fn sum() -> Op {
    Reduction::Reduce { kind: ReduceKind::Sum, axes: vec![0], keep: false }.into()
}

pub(crate) fn constant(value: Literal) -> Op {
    Creation::Constant { value }.into()
}

pub(crate) fn broadcast(shape: &[u64]) -> Op {
    Movement::Broadcast { shape: shape.to_vec() }.into()
}

pub(crate) fn sgd() -> Op {
    Optimizer::SgdMomentum { momentum: Real::new(0.9) }.into()
}

/// `loss = sum(flatten(dropout(x w1) t t w2))`, so that `t` has two contributions.
pub(crate) fn training() -> TrainingGraph {
    let mut b = GraphBuilder::new("tiny");
    let x = b.input("x", InputRole::Data, f32(&[2, 3]));
    let w1 = b.input("w1", InputRole::Parameter, f32(&[3, 4]));
    let t = b.input("t", InputRole::Parameter, f32(&[4, 4]));
    let w2 = b.input("w2", InputRole::Parameter, f32(&[4, 5]));
    let h = b.one(matmul(false, false), &[x, w1]).expect("the operands fit");
    let d = b.one(dropout(), &[h]).expect("the operands fit");
    let a = b.one(matmul(false, false), &[d, t]).expect("the operands fit");
    let y = b.one(matmul(false, false), &[a, t]).expect("the operands fit");
    let z = b.one(matmul(false, false), &[y, w2]).expect("the operands fit");
    let flat = b.one(Movement::Reshape { shape: vec![10] }, &[z]).expect("the operands fit");
    let loss = b.one(sum(), &[flat]).expect("the operands fit");
    let count = b.constant(Literal::splat_i64(Type::scalar(DType::I64), 2));
    let forward_nodes = b.graph().nodes.len();
    let seed = b.constant(Literal::splat_f64(f32(&[]), 1.0));
    let dflat = b.one(broadcast(&[10]), &[seed]).expect("the operands fit");
    let dz = b.one(Movement::Reshape { shape: vec![2, 5] }, &[dflat]).expect("the operands fit");
    let dw2 = b.one(matmul(true, false), &[y, dz]).expect("the operands fit");
    let dy = b.one(matmul(false, true), &[dz, w2]).expect("the operands fit");
    let dt1 = b.one(matmul(true, false), &[a, dy]).expect("the operands fit");
    let da = b.one(matmul(false, true), &[dy, t]).expect("the operands fit");
    let dt0 = b.one(matmul(true, false), &[d, da]).expect("the operands fit");
    let dd = b.one(matmul(false, true), &[da, t]).expect("the operands fit");
    let dh = b.one(dropout_grad(), &[dd]).expect("the operands fit");
    let dw1 = b.one(matmul(true, false), &[x, dh]).expect("the operands fit");
    b.output("loss_sum", OutputRole::LossSum, loss);
    b.output("loss_count", OutputRole::LossCount, count);
    for (name, value) in [("grad.w1.0", dw1), ("grad.t.0", dt0), ("grad.t.1", dt1), ("grad.w2.0", dw2)] {
        b.output(name, OutputRole::Gradient, value);
    }
    let step = b.finish();
    let user = |value| step.users()[value][0];
    let parameter = |name: &str, input, contributions: &[_]| {
        let contributions = contributions.iter().map(|&value| Contribution { value, user: user(input) });
        Parameter { name: name.to_owned(), input, contributions: contributions.collect() }
    };
    let parameters: Table<_, _> =
        [parameter("w1", w1, &[dw1]), parameter("t", t, &[dt0, dt1]), parameter("w2", w2, &[dw2])]
            .into_iter()
            .collect();
    TrainingGraph {
        step,
        forward_nodes,
        phases: SideTable::new(Phase::Forward),
        anchors: SideTable::new(None),
        parameters,
        update: update(),
    }
}

fn update() -> trainc_ir::Graph {
    let mut b = GraphBuilder::new("tiny");
    let lr = b.input("lr", InputRole::Scalar, f32(&[]));
    let count = b.input("count", InputRole::Scalar, Type::scalar(DType::I64));
    for (name, ty, contributions) in [("w1", f32(&[3, 4]), 1), ("t", f32(&[4, 4]), 2), ("w2", f32(&[4, 5]), 1)] {
        let w = b.input(name, InputRole::Parameter, ty.clone());
        let m = b.input(format!("{name}.m"), InputRole::State, ty.clone());
        let mut gradient = b.input(format!("grad.{name}.0"), InputRole::GradientSum, ty.clone());
        for k in 1..contributions {
            let next = b.input(format!("grad.{name}.{k}"), InputRole::GradientSum, ty.clone());
            gradient = b.one(Elementwise::Add, &[gradient, next]).expect("the operands fit");
        }
        let updated = b.add(sgd(), &[w, gradient, m, lr, count]).expect("the operands fit");
        b.output(name, OutputRole::Updated, updated[0]);
        b.output(format!("{name}.m"), OutputRole::Updated, updated[1]);
    }
    b.finish()
}
