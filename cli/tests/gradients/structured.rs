//! Operators of every other family.

use crate::finite::{Case, Drawn};
use trainc_ir::op::{
    Attention, BatchNorm, Contraction, Convolution, Indexing, Literal, Loss, Movement, Normalization, Pooling, Random,
    Real, ReduceKind, Reduction,
};
use trainc_ir::{GraphBuilder, Op, ValueId};

pub(crate) fn cases() -> Vec<Case> {
    [products(), windows(), reductions(), normalizations(), attentions(), lookups(), movements(), rest()].concat()
}

/// A case of one operator on parameters only, all of whose results count.
fn single(name: &str, op: impl Into<Op>, parameters: &[Drawn<'_>]) -> Case {
    let op = op.into();
    Case::new(name, parameters, move |b, p| b.add(op.clone(), p).expect("cases are well typed"))
}

/// As `single`, but only the first result counts.
fn first(name: &str, op: impl Into<Op>, parameters: &[Drawn<'_>]) -> Case {
    let op = op.into();
    Case::new(name, parameters, move |b, p| vec![one(b, op.clone(), p)])
}

fn one(b: &mut GraphBuilder, op: impl Into<Op>, operands: &[ValueId]) -> ValueId {
    b.one(op, operands).expect("cases are well typed")
}

fn indices(b: &mut GraphBuilder, shape: &[u64], values: &[i64]) -> ValueId {
    let flat = b.constant(Literal::from_i64s(values));
    one(b, Movement::Reshape { shape: shape.to_vec() }, &[flat])
}

fn drawn(shape: &[u64]) -> Drawn<'_> {
    (shape, -1.0, 1.0)
}

fn products() -> Vec<Case> {
    let mut cases = Vec::new();
    for (transpose_a, transpose_b) in [(false, false), (false, true), (true, false), (true, true)] {
        let a: [u64; 3] = if transpose_a { [2, 4, 3] } else { [2, 3, 4] };
        let c: [u64; 3] = if transpose_b { [2, 5, 4] } else { [2, 4, 5] };
        let op = Contraction::MatMul { transpose_a, transpose_b };
        let name = format!("matmul {transpose_a} {transpose_b}");
        cases.push(single(&format!("{name} of matrices"), op.clone(), &[drawn(&a[1..]), drawn(&c[1..])]));
        cases.push(single(&format!("{name} of batches"), op.clone(), &[drawn(&a), drawn(&c)]));
        if !transpose_a {
            cases.push(single(&format!("{name} with a shared matrix"), op, &[drawn(&a), drawn(&c[1..])]));
        }
    }
    cases
}

/// Windows that overlap, leave elements out, and reach over the edges.
fn windows() -> Vec<Case> {
    let (strides, low, high) = (vec![2, 1], vec![1, 0], vec![0, 2]);
    let (x, y) = ([2, 4, 5, 6], [2, 6, 2, 6]);
    let w: [u64; 4] = [6, 2, 3, 3];
    let dilations = vec![1, 1];
    let groups = 2;
    let geometry = (strides.clone(), low.clone(), high.clone(), dilations.clone());
    let conv = |(strides, low, high, dilations)| Convolution::Conv { strides, low, high, dilations, groups };
    let of_input = |(strides, low, high, dilations)| {
        let shape = x.to_vec();
        Convolution::ConvInputGrad { shape, strides, low, high, dilations, groups }
    };
    let of_weight = |(strides, low, high, dilations)| {
        let kernel = vec![3, 3];
        Convolution::ConvWeightGrad { kernel, strides, low, high, dilations, groups }
    };
    let kernel = vec![2, 3];
    let mut cases = vec![
        single("conv", conv(geometry.clone()), &[drawn(&x), drawn(&w)]),
        single("conv input grad", of_input(geometry.clone()), &[drawn(&w), drawn(&y)]),
        single("conv weight grad", of_weight(geometry), &[drawn(&x), drawn(&y)]),
    ];
    for (ceil, pads) in [(false, false), (true, true)] {
        let (kernel, strides, dilations) = (kernel.clone(), strides.clone(), dilations.clone());
        let (low, high) = (low.clone(), high.clone());
        let max = Pooling::MaxPool {
            kernel: kernel.clone(),
            strides: strides.clone(),
            low: low.clone(),
            high: high.clone(),
            dilations: dilations.clone(),
            ceil,
        };
        cases.push(single(&format!("max pool {ceil}"), max, &[drawn(&[1, 2, 5, 6])]));
        let shape = vec![1, 2, 5, 6];
        let average = Pooling::AveragePool {
            kernel: kernel.clone(),
            strides: strides.clone(),
            low: low.clone(),
            high: high.clone(),
            dilations: dilations.clone(),
            ceil,
            pads,
        };
        let y = trainc_ir::Type::new(trainc_ir::DType::F64, shape.clone());
        let y = Op::from(average.clone()).infer(&[&y]).expect("the windows fit").remove(0).shape;
        let grad = Pooling::AveragePoolGrad { shape, kernel, strides, low, high, dilations, ceil, pads };
        cases.push(single(&format!("average pool {ceil}"), average, &[drawn(&[1, 2, 5, 6])]));
        cases.push(single(&format!("average pool grad {ceil}"), grad, &[drawn(&y)]));
    }
    let eps = Real::new(1e-3);
    cases.push(first("batch norm", BatchNorm::BatchNorm { eps }, &[drawn(&[3, 2, 4]), drawn(&[2]), drawn(&[2])]));
    cases
}

fn reductions() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in [ReduceKind::Sum, ReduceKind::Mean, ReduceKind::Max, ReduceKind::Min, ReduceKind::Prod] {
        for (axes, keep) in [(vec![1], false), (vec![0, 2], true), (vec![0, 1, 2], false), (vec![], false)] {
            let name = format!("reduce {kind:?} {axes:?} {keep}");
            cases.push(single(&name, Reduction::Reduce { kind, axes, keep }, &[drawn(&[2, 3, 2])]));
        }
    }
    for (exclusive, reverse) in [(false, false), (true, false), (false, true), (true, true)] {
        let op = Reduction::CumSum { axis: 1, exclusive, reverse };
        cases.push(single(&format!("cumsum {exclusive} {reverse}"), op, &[drawn(&[2, 4, 2])]));
    }
    cases.push(first("topk", Reduction::TopK { k: 2 }, &[drawn(&[3, 5])]));
    cases
}

fn normalizations() -> Vec<Case> {
    use Normalization as N;
    let eps = Real::new(1e-3);
    let (x, w) = ([2, 3, 4], [4]);
    vec![
        first("layer norm", N::LayerNorm { eps }, &[drawn(&x), drawn(&w), drawn(&w)]),
        first("rms norm", N::RmsNorm { eps }, &[drawn(&x), drawn(&w)]),
        single("softmax", N::Softmax, &[drawn(&x)]),
        single("log softmax", N::LogSoftmax, &[drawn(&x)]),
    ]
}

fn attentions() -> Vec<Case> {
    let mut cases = Vec::new();
    for (causal, heads, positions) in [(false, 2, 3), (true, 2, 3), (true, 1, 5), (false, 1, 5)] {
        let op = Attention::Attention { scale: Real::new(0.7), causal };
        let (q, k, v) = ([2, 2, 3, 4], [2, heads, positions, 4], [2, heads, positions, 5]);
        let name = format!("attention {causal} {heads} {positions}");
        cases.push(first(&name, op.clone(), &[drawn(&q), drawn(&k), drawn(&v)]));
        cases.push(Case::new(&format!("{name} with a mask"), &[drawn(&q), drawn(&k), drawn(&v)], move |b, p| {
            let bytes = (0..3 * positions).flat_map(|i| (-0.3 * (i % 4) as f64).to_le_bytes()).collect();
            let ty = trainc_ir::Type::new(trainc_ir::DType::F64, [3, positions]);
            let mask = b.constant(Literal::from_bytes(ty, bytes).expect("one number for each pair"));
            vec![one(b, op.clone(), &[p[0], p[1], p[2], mask])]
        }));
    }
    for mask in [&[3, 5][..], &[2, 1, 1, 5], &[2, 1, 1], &[2, 2, 3, 5]] {
        for causal in [false, true] {
            let op = Attention::Attention { scale: Real::new(0.7), causal };
            let (q, k, v) = ([2, 2, 3, 4], [2, 1, 5, 4], [2, 1, 5, 2]);
            let operands = [drawn(&q), drawn(&k), drawn(&v), drawn(mask)];
            cases.push(first(&format!("attention {causal} with a trained mask {mask:?}"), op, &operands));
        }
    }
    let rope = |interleaved: bool| {
        Case::new(&format!("rope {interleaved}"), &[drawn(&[2, 2, 3, 4])], move |b, p| {
            let table = |b: &mut GraphBuilder, f: fn(f64) -> f64| {
                let bytes = (0..12).flat_map(|i| f(f64::from(i) * 0.3).to_le_bytes()).collect();
                let ty = trainc_ir::Type::new(trainc_ir::DType::F64, [3, 4]);
                b.constant(Literal::from_bytes(ty, bytes).expect("one number for each pair"))
            };
            let (cos, sin) = (table(b, f64::cos), table(b, f64::sin));
            vec![one(b, Attention::Rope { interleaved }, &[p[0], cos, sin])]
        })
    };
    cases.extend([false, true].map(rope));
    cases
}

fn lookups() -> Vec<Case> {
    let twice = [0, 2, 2, -1, 1, 0];
    vec![
        Case::new("gather rows", &[drawn(&[3, 2])], move |b, p| {
            let at = indices(b, &[2, 3], &twice);
            vec![one(b, Indexing::Gather { axis: 0 }, &[p[0], at])]
        }),
        Case::new("gather inside", &[drawn(&[2, 3, 2])], move |b, p| {
            let at = indices(b, &[6], &twice);
            vec![one(b, Indexing::Gather { axis: 1 }, &[p[0], at])]
        }),
        Case::new("gather elements", &[drawn(&[2, 3])], move |b, p| {
            let at = indices(b, &[2, 3], &twice);
            vec![one(b, Indexing::GatherElements { axis: 1 }, &[p[0], at])]
        }),
        Case::new("gather grad", &[drawn(&[2, 6, 2])], move |b, p| {
            let at = indices(b, &[6], &twice);
            vec![one(b, Indexing::GatherGrad { axis: 1, len: 3 }, &[at, p[0]])]
        }),
        Case::new("gather elements grad", &[drawn(&[2, 3])], move |b, p| {
            let at = indices(b, &[2, 3], &twice);
            vec![one(b, Indexing::GatherElementsGrad { axis: 1, len: 4 }, &[at, p[0]])]
        }),
    ]
}

fn movements() -> Vec<Case> {
    use Movement as M;
    let slice = |starts: Vec<i64>, ends: Vec<i64>, steps: Vec<i64>| M::Slice { starts, ends, steps };
    let ragged = [drawn(&[2, 1, 2]), drawn(&[2, 3, 2])];
    vec![
        single("reshape", M::Reshape { shape: vec![3, 4] }, &[drawn(&[2, 6])]),
        single("transpose", M::Transpose { perm: vec![2, 0, 1] }, &[drawn(&[2, 3, 4])]),
        single("broadcast", M::Broadcast { shape: vec![2, 3, 4] }, &[drawn(&[3, 1])]),
        single("slice", slice(vec![0, 1], vec![2, 5], vec![1, 2]), &[drawn(&[2, 5])]),
        single("slice back", slice(vec![1, 4], vec![-1, 0], vec![-1, -2]), &[drawn(&[2, 5])]),
        single(
            "slice grad",
            M::SliceGrad { shape: vec![2, 5], starts: vec![0, 1], ends: vec![2, 5], steps: vec![1, 2] },
            &[drawn(&[2, 2])],
        ),
        single("concat", M::Concat { axis: 1 }, &ragged),
        Case::new("concat with a constant", &ragged, |b, p| {
            let zeros = b.constant(Literal::splat_f64(b.ty(p[0]).clone(), 0.0));
            vec![one(b, M::Concat { axis: 1 }, &[p[0], zeros, p[1]])]
        }),
        single("split", M::Split { axis: 1, sizes: vec![1, 3] }, &[drawn(&[2, 4])]),
        Case::new("split of which one part counts", &[drawn(&[2, 4])], |b, p| {
            vec![b.add(M::Split { axis: 1, sizes: vec![1, 2, 1] }, p).expect("cases are well typed")[1]]
        }),
        single("pad", M::Pad { low: vec![1, 0], high: vec![0, 2], value: Real::new(0.5) }, &[drawn(&[2, 3])]),
    ]
}

fn rest() -> Vec<Case> {
    vec![
        single("dropout", Random::Dropout { p: Real::new(0.4), site: 3 }, &[drawn(&[4, 5])]),
        Case::new("cross entropy", &[drawn(&[4, 5])], |b, p| {
            let labels = indices(b, &[4], &[0, 4, -100, 2]);
            vec![one(b, Loss::CrossEntropy { ignore_index: -100 }, &[p[0], labels])]
        }),
    ]
}
