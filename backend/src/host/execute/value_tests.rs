//! Operators against values worked out by hand, in the element types that have kernels of their own.

use crate::host::{Context, Fault, InterpretError, Tensor, interpret};
use std::collections::BTreeMap;
use trainc_ir::op::{
    Contraction, Elementwise, Indexing, Literal, Movement, Opaque, Optimizer, Real, ReduceKind, Reduction, encode_f64,
};
use trainc_ir::{DType, GraphBuilder, InputRole, Op, OutputRole, Type};

fn tensor(dtype: DType, shape: &[u64], values: &[f64]) -> Tensor {
    let bytes: Vec<u8> = values.iter().flat_map(|&x| encode_f64(dtype, x)).collect();
    Tensor::from_bytes(Type::new(dtype, shape), &bytes).unwrap()
}

fn run(op: impl Into<Op>, inputs: &[Tensor]) -> Result<Vec<Tensor>, InterpretError> {
    let mut builder = GraphBuilder::new("one");
    let name = |i: usize| format!("x{i}");
    let values: Vec<_> =
        inputs.iter().enumerate().map(|(i, x)| builder.input(name(i), InputRole::Data, x.ty().clone())).collect();
    let outputs = builder.add(op, &values).unwrap();
    for (i, &value) in outputs.iter().enumerate() {
        builder.output(format!("y{i}"), OutputRole::Prediction, value);
    }
    let given: BTreeMap<String, Tensor> = inputs.iter().cloned().enumerate().map(|(i, x)| (name(i), x)).collect();
    interpret(&builder.finish(), &given, Context::default())
}

#[track_caller]
fn check(op: impl Into<Op>, inputs: &[Tensor], expect: &[f64]) {
    assert_eq!(run(op, inputs).unwrap()[0].to_f64s(), expect);
}

#[test]
fn arithmetic_in_every_numeric_type() {
    use Elementwise as E;
    for dtype in [DType::I8, DType::I32, DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64] {
        let a = tensor(dtype, &[2, 2], &[7.0, -7.0, 2.0, 3.0]);
        let b = tensor(dtype, &[2], &[2.0, 3.0]);
        let both = [a.clone(), b];
        check(E::Add, &both, &[9.0, -4.0, 4.0, 6.0]);
        check(E::Sub, &both, &[5.0, -10.0, 0.0, 0.0]);
        check(E::Mul, &both, &[14.0, -21.0, 4.0, 9.0]);
        let powers = [tensor(dtype, &[2], &[-3.0, 2.0]), both[1].clone()];
        check(E::Pow, &powers, &[9.0, 8.0]);
        check(E::Mod, &both, &[1.0, 2.0, 0.0, 0.0]);
        check(E::Max, &both, &[7.0, 3.0, 2.0, 3.0]);
        check(E::Lt, &both, &[0.0, 1.0, 0.0, 0.0]);
        check(E::Neg, &both[..1], &[-7.0, 7.0, -2.0, -3.0]);
        check(E::Sign, &both[..1], &[1.0, -1.0, 1.0, 1.0]);
    }
    let ints = [tensor(DType::I32, &[2], &[7.0, -7.0]), tensor(DType::I32, &[], &[2.0])];
    check(E::Div, &ints, &[3.0, -3.0]);
}

#[test]
fn selection_and_casts() {
    use Elementwise as E;
    let condition = tensor(DType::Bool, &[2, 1], &[1.0, 0.0]);
    let a = tensor(DType::BF16, &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let b = tensor(DType::BF16, &[], &[-1.0]);
    check(E::Select, &[condition.clone(), a, b], &[1.0, 2.0, -1.0, -1.0]);
    check(E::Cast { to: DType::Bool }, &[tensor(DType::F32, &[3], &[0.5, 0.0, -2.0])], &[1.0, 0.0, 1.0]);
    check(E::Cast { to: DType::I32 }, &[tensor(DType::F16, &[2], &[2.75, -2.75])], &[2.0, -2.0]);
    check(E::Not, &[condition], &[0.0, 1.0]);
}

#[test]
fn half_floats_are_computed_in_single_precision() {
    // Truth: 256 + 1 is no bfloat16; the sum of 256 ones is, if the running sum is wider.
    let ones = tensor(DType::BF16, &[300], &[1.0; 300]);
    let sum = Reduction::Reduce { kind: ReduceKind::Sum, axes: vec![0], keep: false };
    check(sum, &[ones], &[300.0]);
    let product = Contraction::MatMul { transpose_a: false, transpose_b: true };
    let a = tensor(DType::F16, &[1, 3], &[1.0, 2.0, 3.0]);
    check(product, &[a.clone(), a], &[14.0]);
}

#[test]
fn movement_of_elements_of_every_size() {
    for dtype in DType::ALL.into_iter().filter(|&dtype| dtype != DType::Bool) {
        let x = tensor(dtype, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        check(Movement::Transpose { perm: vec![1, 0] }, std::slice::from_ref(&x), &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        let parts = run(Movement::Split { axis: 1, sizes: vec![1, 2] }, std::slice::from_ref(&x)).unwrap();
        assert_eq!(parts[1].to_f64s(), [2.0, 3.0, 5.0, 6.0]);
        check(Movement::Concat { axis: 1 }, &[parts[1].clone(), parts[0].clone()], &[2.0, 3.0, 1.0, 5.0, 6.0, 4.0]);
        let pad = Movement::Pad { low: vec![0, 1], high: vec![0, 0], value: Real::new(7.0) };
        check(pad, std::slice::from_ref(&x), &[7.0, 1.0, 2.0, 3.0, 7.0, 4.0, 5.0, 6.0]);
        let slice = Movement::Slice { starts: vec![1, 2], ends: vec![-1, -1], steps: vec![-1, -2] };
        check(slice, std::slice::from_ref(&x), &[6.0, 4.0, 3.0, 1.0]);
        let index = tensor(DType::I32, &[2], &[-1.0, 0.0]);
        check(Indexing::Gather { axis: 0 }, &[x, index], &[4.0, 5.0, 6.0, 1.0, 2.0, 3.0]);
    }
}

#[test]
fn reductions_and_scans() {
    let x = tensor(DType::F32, &[2, 3], &[3.0, 1.0, 2.0, -1.0, -5.0, 0.0]);
    let reduce = |kind| Reduction::Reduce { kind, axes: vec![1], keep: true };
    check(reduce(ReduceKind::Mean), std::slice::from_ref(&x), &[2.0, -2.0]);
    check(reduce(ReduceKind::Max), std::slice::from_ref(&x), &[3.0, 0.0]);
    check(reduce(ReduceKind::Min), std::slice::from_ref(&x), &[1.0, -5.0]);
    check(reduce(ReduceKind::Prod), std::slice::from_ref(&x), &[6.0, 0.0]);
    check(Reduction::ArgMax { axis: 1 }, std::slice::from_ref(&x), &[0.0, 2.0]);
    check(Reduction::TopK { k: 2 }, std::slice::from_ref(&x), &[3.0, 2.0, 0.0, -1.0]);
    let cumsum = Reduction::CumSum { axis: 1, exclusive: true, reverse: false };
    check(cumsum, &[x], &[0.0, 3.0, 4.0, 0.0, -1.0, -6.0]);
}

#[test]
fn updates_replace_their_operands() {
    let x = tensor(DType::F32, &[2], &[1.0, 2.0]);
    check(Optimizer::Accumulate, &[x.clone(), tensor(DType::BF16, &[2], &[0.5, 0.5])], &[1.5, 2.5]);
    let (lr, count) = (tensor(DType::F32, &[], &[0.5]), tensor(DType::I64, &[], &[4.0]));
    let grad = tensor(DType::F32, &[2], &[8.0, -8.0]);
    check(Optimizer::Sgd, &[x.clone(), grad.clone(), lr.clone(), count.clone()], &[0.0, 3.0]);
    let momentum = Optimizer::SgdMomentum { momentum: Real::new(0.5) };
    let found = run(momentum, &[x, grad.clone(), grad, lr, count]).unwrap();
    assert_eq!(found[1].to_f64s(), [6.0, -6.0], "0.5 * 8 + 8 / 4");
    assert_eq!(found[0].to_f64s(), [-2.0, 5.0], "1 - 0.5 * 6");
}

#[test]
fn faults_are_errors() {
    let table = tensor(DType::F32, &[2, 1], &[1.0, 2.0]);
    let found = run(Indexing::Gather { axis: 0 }, &[table.clone(), tensor(DType::I64, &[1], &[2.0])]);
    let Err(InterpretError::Node { fault, .. }) = found else { panic!("expected a fault") };
    assert_eq!(fault, Fault::Index { index: 2, len: 2 });
    let opaque = Opaque::Opaque { name: "Foo".to_owned(), types: vec![table.ty().clone()] };
    let found = run(opaque, &[table]);
    assert!(matches!(found, Err(InterpretError::Node { fault: Fault::Opaque(name), .. }) if name == "Foo"));
}

#[test]
fn constants_are_written_out() {
    let mut builder = GraphBuilder::new("constants");
    let splat = builder.constant(Literal::splat_f64(Type::new(DType::F32, [3]), 1.5));
    let dense = builder.constant(Literal::from_i64s(&[4, 5]));
    builder.output("a", OutputRole::Prediction, splat);
    builder.output("b", OutputRole::Prediction, dense);
    let found = interpret(&builder.finish(), &BTreeMap::new(), Context::default()).unwrap();
    assert_eq!(found[0].to_f64s(), [1.5; 3]);
    assert_eq!(found[1].to_f64s(), [4.0, 5.0]);
}
