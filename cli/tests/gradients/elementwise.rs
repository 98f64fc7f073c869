//! Elementwise operators, away from their kinks, with every way of broadcasting.

use crate::finite::Case;
use trainc_ir::op::{Creation, Elementwise, GeluForm, Literal};
use trainc_ir::{DType, GraphBuilder, Type, ValueId};

pub(crate) fn cases() -> Vec<Case> {
    use Elementwise as E;
    let mut cases = Vec::new();
    for (op, low, high) in [
        (E::Neg, -1.0, 1.0),
        (E::Abs, 0.1, 1.0),
        (E::Abs, -1.0, -0.1),
        (E::Sign, 0.1, 1.0),
        (E::Exp, -1.0, 1.0),
        (E::Log, 0.3, 2.0),
        (E::Sqrt, 0.3, 2.0),
        (E::Rsqrt, 0.3, 2.0),
        (E::Reciprocal, 0.3, 2.0),
        (E::Reciprocal, -2.0, -0.3),
        (E::Sin, -3.0, 3.0),
        (E::Cos, -3.0, 3.0),
        (E::Tanh, -2.0, 2.0),
        (E::Sigmoid, -2.0, 2.0),
        (E::Erf, -2.0, 2.0),
        (E::Relu, 0.1, 1.0),
        (E::Relu, -1.0, -0.1),
        (E::Gelu { form: GeluForm::Erf }, -2.0, 2.0),
        (E::Gelu { form: GeluForm::Tanh }, -2.0, 2.0),
        (E::Gelu { form: GeluForm::Quick }, -2.0, 2.0),
        (E::Silu, -2.0, 2.0),
        (E::Softplus, -2.0, 2.0),
        (E::Floor, 0.1, 0.9),
        (E::Ceil, 0.1, 0.9),
        (E::Round, 0.1, 0.4),
        (E::Cast { to: DType::F64 }, -1.0, 1.0),
    ] {
        let name = format!("{op:?} in {low}..{high}");
        cases.push(Case::new(&name, &[(&[2, 3], low, high)], move |b, p| vec![apply(b, &op, p)]));
    }
    let shapes: [(&[u64], &[u64]); 6] =
        [(&[2, 3], &[2, 3]), (&[2, 3], &[3]), (&[3], &[2, 3]), (&[2, 1], &[1, 3]), (&[2, 3], &[]), (&[], &[2, 1, 2])];
    for (op, low, high) in [
        (E::Add, -1.0, 1.0),
        (E::Sub, -1.0, 1.0),
        (E::Mul, -1.0, 1.0),
        (E::Div, 0.5, 2.0),
        (E::Pow, 0.5, 2.0),
        (E::Max, -1.0, 1.0),
        (E::Min, -1.0, 1.0),
    ] {
        for (a, c) in shapes {
            let (op, name) = (op.clone(), format!("{op:?} of {a:?} and {c:?}"));
            cases.push(Case::new(&name, &[(a, low, high), (c, low, high)], move |b, p| vec![apply(b, &op, p)]));
        }
    }
    // The remainder jumps where the quotient is whole: 2.1..2.9 by 0.91..0.97 stays between two and three.
    cases.push(Case::new("mod", &[(&[2, 3], 2.1, 2.7), (&[3], 0.91, 0.97)], |b, p| vec![apply(b, &E::Mod, p)]));
    for exponent in [2.0, 3.0, 1.5, -1.0] {
        cases.push(Case::new(&format!("pow {exponent}"), &[(&[4], 0.5, 2.0)], move |b, p| {
            let exponent = b.constant(Literal::splat_f64(Type::scalar(DType::F64), exponent));
            vec![apply(b, &E::Pow, &[p[0], exponent])]
        }));
    }
    for (a, c) in shapes {
        cases.push(Case::new(&format!("select of {a:?} and {c:?}"), &[(a, -1.0, 1.0), (c, -1.0, 1.0)], |b, p| {
            let condition = bools(b, &[2, 1, 1], &[true, false]);
            vec![apply(b, &E::Select, &[condition, p[0], p[1]])]
        }));
    }
    cases.push(Case::new("a value with several users", &[(&[3], 0.5, 1.0)], |b, p| {
        let x = apply(b, &E::Exp, p);
        let square = apply(b, &E::Mul, &[x, x]);
        let sum = apply(b, &E::Add, &[square, x]);
        vec![apply(b, &E::Mul, &[sum, p[0]]), x]
    }));
    cases
}

pub(crate) fn apply(b: &mut GraphBuilder, op: &Elementwise, operands: &[ValueId]) -> ValueId {
    b.one(op.clone(), operands).expect("cases are well typed")
}

pub(crate) fn bools(b: &mut GraphBuilder, shape: &[u64], values: &[bool]) -> ValueId {
    let bytes = values.iter().map(|&v| u8::from(v)).collect();
    let value = Literal::from_bytes(Type::new(DType::Bool, shape), bytes).expect("one byte for each element");
    b.one(Creation::Constant { value }, &[]).expect("a constant")
}
