//! Sharding rules are true: ranks that run the operator on their parts have the parts of its results. Tried out on the graph
//! of `testdata/ops/every-op.ir`, the truth being the operator on whole operands.

use crate::fused::drawn;
use crate::models::testdata;
use std::collections::BTreeMap;
use trainc_backend::{Context, Tensor, interpret};
use trainc_ir::op::{Layout, ShardRule, encode_f64};
use trainc_ir::text::parse;
use trainc_ir::{GraphBuilder, InputRole, Op, OutputRole, Type};

fn tensor(ty: Type, values: &[f64]) -> Tensor {
    let bytes: Vec<u8> = values.iter().flat_map(|&v| encode_f64(ty.dtype, v)).collect();
    Tensor::from_bytes(ty, &bytes).expect("one number for each element")
}

/// What rank `rank` of `n` has of a value.
fn part(whole: &Tensor, layout: Layout, rank: usize, n: usize) -> Tensor {
    let (ty, values) = (whole.ty().clone(), whole.to_f64s());
    match layout {
        Layout::Whole => whole.clone(),
        // Terms that differ from rank to rank; the last one makes up the sum.
        Layout::Partial => {
            let share = |v: f64| if rank + 1 < n { v * 0.25 } else { v - v * 0.25 * (n - 1) as f64 };
            tensor(ty, &values.into_iter().map(share).collect::<Vec<_>>())
        }
        Layout::Split(axis) => {
            let inner = ty.shape[axis + 1..].iter().product::<u64>() as usize;
            let length = ty.shape[axis] as usize;
            let mine = rank * length / n..(rank + 1) * length / n;
            let is_mine = |i: &usize| mine.contains(&(i / inner % length));
            let mut shape = ty.shape.clone();
            shape[axis] /= n as u64;
            let values: Vec<f64> = (0..values.len()).filter(is_mine).map(|i| values[i]).collect();
            tensor(Type::new(ty.dtype, shape), &values)
        }
    }
}

fn run(op: &Op, operands: &[Tensor]) -> Vec<Tensor> {
    let mut b = GraphBuilder::new(op.spelling());
    let name = |i: usize| format!("x{i}");
    let values: Vec<_> =
        operands.iter().enumerate().map(|(i, x)| b.input(name(i), InputRole::Data, x.ty().clone())).collect();
    let results = b.add(op.clone(), &values).unwrap_or_else(|problem| panic!("{}: {problem}", op.spelling()));
    for (i, result) in results.into_iter().enumerate() {
        b.output(format!("y{i}"), OutputRole::Prediction, result);
    }
    let inputs: BTreeMap<_, _> = operands.iter().enumerate().map(|(i, x)| (name(i), x.clone())).collect();
    interpret(&b.finish(), &inputs, Context::default()).unwrap_or_else(|error| panic!("{}: {error}", op.spelling()))
}

/// How many ranks can share by this rule.
fn ranks(rule: &ShardRule, operands: &[Tensor], results: &[Tensor]) -> Option<usize> {
    let divides = |n: u64, layouts: &[Layout], tensors: &[Tensor]| {
        layouts.iter().zip(tensors).all(|(layout, tensor)| match layout {
            Layout::Split(axis) => tensor.ty().shape[*axis].is_multiple_of(n),
            Layout::Whole | Layout::Partial => true,
        })
    };
    [2, 3]
        .into_iter()
        .find(|&n| divides(n, &rule.operands, operands) && divides(n, &rule.results, results))
        .map(|n| n as usize)
}

/// Equal up to the rounding of single precision, in which the sample is.
fn near(a: &[f64], b: &[f64]) -> bool {
    let close = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-5 * b.abs().max(1.0);
    a.len() == b.len() && a.iter().zip(b).all(close)
}

/// Checks one rule; `false` where no small number of ranks can share the sample by it.
fn check(op: &Op, rule: &ShardRule, operands: &[Tensor], results: &[Tensor]) -> bool {
    let name = format!("{} {rule:?}", op.spelling());
    assert_eq!((rule.operands.len(), rule.results.len()), (operands.len(), results.len()), "{name}");
    let Some(n) = ranks(rule, operands, results) else { return false };
    let parts: Vec<Vec<Tensor>> = (0..n)
        .map(|rank| {
            let of = |(x, &layout): (&Tensor, &Layout)| part(x, layout, rank, n);
            run(op, &operands.iter().zip(&rule.operands).map(of).collect::<Vec<_>>())
        })
        .collect();
    for (i, (whole, &layout)) in results.iter().zip(&rule.results).enumerate() {
        if layout == Layout::Partial {
            let mut sum = vec![0.0; whole.ty().elements() as usize];
            for rank in &parts {
                assert_eq!(rank[i].ty(), whole.ty(), "{name}: result {i}");
                sum.iter_mut().zip(rank[i].to_f64s()).for_each(|(total, v)| *total += v);
            }
            assert!(near(&sum, &whole.to_f64s()), "{name}: result {i}: {sum:?}, expected {:?}", whole.to_f64s());
            continue;
        }
        for (rank, found) in parts.iter().enumerate() {
            let expected = part(whole, layout, rank, n);
            assert_eq!(found[i].ty(), expected.ty(), "{name}: result {i}");
            let (found, expected) = (found[i].to_f64s(), expected.to_f64s());
            assert!(near(&found, &expected), "{name}: result {i} of rank {rank}: {found:?}, expected {expected:?}");
        }
    }
    true
}

#[test]
fn ranks_have_the_parts_of_the_results() {
    let text = std::fs::read_to_string(testdata().join("ops/every-op.ir")).expect("the sample is there");
    let graph = parse("every-op.ir", &text).unwrap_or_else(|errors| panic!("{errors:?}"));
    for node in graph.nodes.values() {
        let rules = node.op.shard_rules(&graph.types(&node.inputs), &graph.types(&node.outputs));
        if rules.is_empty() {
            continue;
        }
        let operands: Vec<_> = node.inputs.iter().enumerate().map(|(i, &v)| drawn(graph.ty(v), i)).collect();
        let results = run(&node.op, &operands);
        let checked = rules.iter().filter(|rule| check(&node.op, rule, &operands, &results)).count();
        assert!(checked > 0, "{}: no rule fits the sample", node.op.spelling());
    }
}

/// Column, row and head parallelism, as Megatron lays out a block.
#[test]
fn products_and_attention_have_the_layouts_of_tensor_parallelism() {
    use Layout::{Partial, Split, Whole};
    use trainc_ir::DType;
    use trainc_ir::op::{Attention, Contraction, Real};
    let f32s = |shape: &[u64]| Type::new(DType::F32, shape);
    let has = |op: Op, inputs: &[Type], operands: &[Layout], results: &[Layout]| {
        let inputs: Vec<&Type> = inputs.iter().collect();
        let outputs = op.infer(&inputs).expect("the types fit");
        let rules = op.shard_rules(&inputs, &outputs.iter().collect::<Vec<_>>());
        let wanted = ShardRule { operands: operands.to_vec(), results: results.to_vec() };
        assert!(rules.contains(&wanted), "{wanted:?} is not among {rules:?}");
    };
    let product = || Op::from(Contraction::MatMul { transpose_a: false, transpose_b: false });
    let types = [f32s(&[2, 8, 16]), f32s(&[16, 64])];
    has(product(), &types, &[Whole, Split(1)], &[Split(2)]);
    has(product(), &types, &[Split(2), Split(0)], &[Partial]);
    let attention = Attention::Attention { scale: Real::new(1.0), causal: true };
    let types = [f32s(&[2, 8, 4, 16]), f32s(&[2, 2, 4, 16]), f32s(&[2, 2, 4, 16])];
    has(attention.into(), &types, &[Split(1); 3], &[Split(1); 2]);
}

/// Rows of a softmax cannot be cut: what holds the rules sees it.
#[test]
#[should_panic(expected = "softmax")]
fn a_wrong_rule_is_seen() {
    use trainc_ir::DType;
    let op = Op::from(trainc_ir::op::Normalization::Softmax);
    let operands = [drawn(&Type::new(DType::F32, [2, 4]), 0)];
    let rule = ShardRule { operands: vec![Layout::Split(1)], results: vec![Layout::Split(1)] };
    let results = run(&op, &operands);
    check(&op, &rule, &operands, &results);
}
