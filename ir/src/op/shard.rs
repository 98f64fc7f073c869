//! Sharding rules: how ranks can share the work of an operator when every rank runs the same operator on its parts.
//!
//! A rule is data: it says of each operand and result how its elements lie on the ranks. A dimension that is split must be
//! divisible by the number of ranks, which is for the caller to check. Operators whose attributes hold sizes of their
//! results have no rules, nor has dropout, whose mask is keyed by the place of an element in the whole tensor.

use super::{
    Attention, BatchNorm, Contraction, Convolution, Elementwise, Indexing, Loss, Movement, Normalization, Op, Pooling,
    ReduceKind, Reduction,
};
use crate::ty::Type;

/// How the elements of a value lie on the ranks of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layout {
    /// Every rank has all of them.
    Whole,
    /// Every rank has an equal run along this axis.
    Split(usize),
    /// Every rank has a term of each; their sum is the value.
    Partial,
}

/// One way of sharing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardRule {
    /// Of each operand.
    pub operands: Vec<Layout>,
    /// Of each result.
    pub results: Vec<Layout>,
}

use Layout::{Partial, Split, Whole};

impl Op {
    /// The ways in which ranks can share this operator on operands and results of these types.
    pub fn shard_rules(&self, inputs: &[&Type], outputs: &[&Type]) -> Vec<ShardRule> {
        match self {
            Self::Elementwise(op) => elementwise(op, inputs, outputs),
            Self::Contraction(op) => contraction(op, inputs, outputs),
            Self::Convolution(op) => convolution(op),
            Self::Pooling(op) => pooling(op),
            Self::Reduction(op) => reduction(op, inputs),
            Self::Normalization(op) => normalization(op, inputs),
            Self::BatchNorm(op) => batch_norm(op),
            Self::Attention(op) => attention(op, inputs),
            Self::Indexing(op) => indexing(op, inputs),
            Self::Movement(op) => movement(op, inputs, outputs),
            Self::Loss(op) => loss(op),
            Self::Optimizer(_) => optimizer(inputs, outputs),
            Self::Creation(_) | Self::Random(_) | Self::Opaque(_) => Vec::new(),
        }
    }
}

fn rule(operands: impl Into<Vec<Layout>>, results: impl Into<Vec<Layout>>) -> ShardRule {
    ShardRule { operands: operands.into(), results: results.into() }
}

/// The axis of an operand that is broadcast to this axis of a result.
fn aligned(ty: &Type, axis: usize, rank: usize) -> Layout {
    let own = (axis + ty.rank()).checked_sub(rank);
    own.filter(|&own| ty.shape[own] > 1).map_or(Whole, Split)
}

fn elementwise(op: &Elementwise, inputs: &[&Type], outputs: &[&Type]) -> Vec<ShardRule> {
    let rank = outputs[0].rank();
    let along = |axis| rule(inputs.iter().map(|ty| aligned(ty, axis, rank)).collect::<Vec<_>>(), [Split(axis)]);
    let mut rules: Vec<_> = (0..rank).filter(|&axis| outputs[0].shape[axis] > 1).map(along).collect();
    if matches!(op, Elementwise::Neg | Elementwise::Add | Elementwise::Sub) {
        rules.push(rule(vec![Partial; inputs.len()], [Partial]));
    }
    rules
}

fn contraction(op: &Contraction, inputs: &[&Type], outputs: &[&Type]) -> Vec<ShardRule> {
    let Contraction::MatMul { transpose_a, transpose_b } = *op;
    let (a, b, rank) = (inputs[0].rank(), inputs[1].rank(), outputs[0].rank());
    let (rows, inner) = if transpose_a { (a - 1, a - 2) } else { (a - 2, a - 1) };
    let (columns, inner_b) = if transpose_b { (b - 2, b - 1) } else { (b - 1, b - 2) };
    let mut rules = vec![
        rule([Split(rows), Whole], [Split(rank - 2)]),
        rule([Whole, Split(columns)], [Split(rank - 1)]),
        rule([Split(inner), Split(inner_b)], [Partial]),
        rule([Partial, Whole], [Partial]),
        rule([Whole, Partial], [Partial]),
    ];
    let shared = |axis| if b == a { Split(axis) } else { Whole };
    rules.extend((0..rank - 2).map(|axis| rule([Split(axis), shared(axis)], [Split(axis)])));
    rules
}

fn convolution(op: &Convolution) -> Vec<ShardRule> {
    match op {
        Convolution::Conv { groups, .. } => {
            let mut rules = vec![rule([Split(0), Whole], [Split(0)])];
            if *groups == 1 {
                rules.push(rule([Whole, Split(0)], [Split(1)]));
                rules.push(rule([Split(1), Split(1)], [Partial]));
            }
            rules
        }
        Convolution::ConvWeightGrad { groups, .. } => {
            let mut rules = vec![rule([Split(0), Split(0)], [Partial])];
            if *groups == 1 {
                rules.push(rule([Whole, Split(1)], [Split(0)]));
                rules.push(rule([Split(1), Whole], [Split(1)]));
            }
            rules
        }
        Convolution::ConvInputGrad { .. } => Vec::new(),
    }
}

fn pooling(op: &Pooling) -> Vec<ShardRule> {
    match op {
        Pooling::MaxPool { .. } | Pooling::AveragePool { .. } => [0, 1].map(|i| rule([Split(i)], [Split(i)])).into(),
        Pooling::MaxPoolGrad { .. } => [0, 1].map(|i| rule([Split(i), Split(i)], [Split(i)])).into(),
        Pooling::AveragePoolGrad { .. } => Vec::new(),
    }
}

fn reduction(op: &Reduction, inputs: &[&Type]) -> Vec<ShardRule> {
    let rank = inputs[0].rank();
    let all = 0..rank;
    match op {
        Reduction::Reduce { kind, axes, keep } => {
            let is_reduced = |axis: usize| axes.contains(&(axis as u64));
            let kept = |axis: usize| if *keep { axis } else { (0..axis).filter(|&i| !is_reduced(i)).count() };
            let along = |axis| match is_reduced(axis) {
                false => Some(rule([Split(axis)], [Split(kept(axis))])),
                true => (*kind == ReduceKind::Sum).then(|| rule([Split(axis)], [Partial])),
            };
            let mut rules: Vec<_> = all.filter_map(along).collect();
            if matches!(kind, ReduceKind::Sum | ReduceKind::Mean) {
                rules.push(rule([Partial], [Partial]));
            }
            rules
        }
        Reduction::ArgMax { axis } => {
            let axis = *axis as usize;
            let kept = |i: usize| if i < axis { i } else { i - 1 };
            all.filter(|&i| i != axis).map(|i| rule([Split(i)], [Split(kept(i))])).collect()
        }
        Reduction::CumSum { axis, exclusive: _, reverse: _ } => {
            all.filter(|&i| i != *axis as usize).map(|i| rule([Split(i)], [Split(i)])).collect()
        }
        Reduction::TopK { k: _ } => all.filter(|&i| i + 1 != rank).map(|i| rule([Split(i)], [Split(i); 2])).collect(),
    }
}

/// Rows are split; weights are not, and their gradients are sums over rows.
fn normalization(op: &Normalization, inputs: &[&Type]) -> Vec<ShardRule> {
    use Normalization as N;
    let by_rows = |i: usize| {
        let x = Split(i);
        match op {
            N::LayerNorm { eps: _ } => rule([x, Whole, Whole], [x; 3]),
            N::LayerNormInputGrad => rule([x, Whole, x, x, x], [x]),
            N::LayerNormParamGrad => rule([x; 4], [Partial; 2]),
            N::RmsNorm { eps: _ } => rule([x, Whole], [x; 2]),
            N::RmsNormInputGrad => rule([x, Whole, x, x], [x]),
            N::RmsNormParamGrad => rule([x; 3], [Partial]),
            N::Softmax | N::LogSoftmax => rule([x], [x]),
            N::SoftmaxGrad | N::LogSoftmaxGrad => rule([x; 2], [x]),
        }
    };
    (0..inputs[0].rank() - 1).map(by_rows).collect()
}

/// Channels are split: statistics are over everything else.
fn batch_norm(op: &BatchNorm) -> Vec<ShardRule> {
    let (x, c) = (Split(1), Split(0));
    match op {
        BatchNorm::BatchNorm { eps: _ } => vec![rule([x, c, c], [x, c, c])],
        BatchNorm::BatchNormInputGrad { eps: _ } => vec![rule([x, c, c, c, x], [x])],
        BatchNorm::BatchNormParamGrad { eps: _ } => vec![rule([x, c, c, x], [c, c])],
        BatchNorm::RunningAverage { .. } => Vec::new(),
    }
}

/// Samples, heads (with the heads of keys and values, or all on the one there is), or queries that see all keys.
fn attention(op: &Attention, inputs: &[&Type]) -> Vec<ShardRule> {
    let (causal, masked) = match op {
        Attention::Attention { scale: _, causal } => (*causal, inputs.len() == 4),
        Attention::AttentionGrad { scale: _, causal } => (*causal, inputs.len() == 7),
        Attention::AttentionMaskGrad { scale: _, causal } => (*causal, true),
        Attention::Rope { .. } | Attention::RopeGrad { .. } => return rope(inputs),
    };
    let one_head = inputs[1].shape[1] == 1 && inputs[0].shape[1] > 1;
    let shared = |axis: usize| axis == 2 || (axis == 1 && one_head);
    (0..if causal { 2 } else { 3 })
        .map(|axis| {
            let (q, kv) = (Split(axis), if shared(axis) { Whole } else { Split(axis) });
            let mask = masked.then(|| aligned(inputs[3], axis, 4));
            let operands = [q, kv, kv].into_iter().chain(mask);
            match op {
                Attention::Attention { .. } => rule(operands.collect::<Vec<_>>(), [q, q]),
                Attention::AttentionGrad { .. } => {
                    let d = if shared(axis) { Partial } else { kv };
                    rule(operands.chain([q, q, q]).collect::<Vec<_>>(), [q, d, d])
                }
                Attention::AttentionMaskGrad { .. } | Attention::Rope { .. } | Attention::RopeGrad { .. } => {
                    let d = mask.filter(|&mask| mask != Whole).unwrap_or(Partial);
                    rule(operands.chain([q, q, q]).collect::<Vec<_>>(), [d])
                }
            }
        })
        .collect()
}

fn rope(inputs: &[&Type]) -> Vec<ShardRule> {
    let rank = inputs[0].rank();
    let table = |axis: usize| if axis + 2 == rank { Split(0) } else { Whole };
    (0..rank - 1).map(|axis| rule([Split(axis), table(axis), table(axis)], [Split(axis)])).collect()
}

fn indexing(op: &Indexing, inputs: &[&Type]) -> Vec<ShardRule> {
    let (a, b) = (inputs[0].rank(), inputs[1].rank());
    match op {
        Indexing::Gather { axis } => {
            let axis = *axis as usize;
            let place = |i: usize| if i < axis { i } else { i - 1 + b };
            let columns = (0..a).filter(|&i| i != axis).map(|i| rule([Split(i), Whole], [Split(place(i))]));
            columns.chain((0..b).map(|j| rule([Whole, Split(j)], [Split(axis + j)]))).collect()
        }
        Indexing::GatherGrad { axis, len: _ } => {
            let (axis, rank) = (*axis as usize, b - a + 1);
            let place = |i: usize| if i < axis { i } else { i - 1 + a };
            let columns = (0..rank).filter(|&i| i != axis).map(|i| rule([Whole, Split(place(i))], [Split(i)]));
            columns.chain((0..a).map(|j| rule([Split(j), Split(axis + j)], [Partial]))).collect()
        }
        Indexing::GatherElements { axis } => {
            let x = |i: usize| if i == *axis as usize { Whole } else { Split(i) };
            (0..a).map(|i| rule([x(i), Split(i)], [Split(i)])).collect()
        }
        Indexing::GatherElementsGrad { axis, len: _ } => {
            let dx = |i: usize| if i == *axis as usize { Partial } else { Split(i) };
            (0..a).map(|i| rule([Split(i); 2], [dx(i)])).collect()
        }
    }
}

fn movement(op: &Movement, inputs: &[&Type], outputs: &[&Type]) -> Vec<ShardRule> {
    let all = 0..inputs[0].rank();
    let (m, n) = (inputs.len(), outputs.len());
    let same = |i: usize| rule(vec![Split(i); m], vec![Split(i); n]);
    match op {
        Movement::Transpose { perm } => {
            let turned = perm.iter().enumerate().map(|(i, &from)| rule([Split(from as usize)], [Split(i)]));
            turned.chain([rule([Partial], [Partial])]).collect()
        }
        Movement::Concat { axis } | Movement::Split { axis, sizes: _ } => {
            let others = all.filter(|&i| i != *axis as usize).map(same);
            others.chain([rule(vec![Partial; m], vec![Partial; n])]).collect()
        }
        Movement::Pad { low, high, value: _ } => all.filter(|&i| low[i] == 0 && high[i] == 0).map(same).collect(),
        // Partial values may be moved in any way that adds no constants.
        Movement::Reshape { shape: _ }
        | Movement::Broadcast { shape: _ }
        | Movement::Slice { starts: _, ends: _, steps: _ }
        | Movement::SliceGrad { shape: _, starts: _, ends: _, steps: _ } => vec![rule([Partial], [Partial])],
    }
}

fn loss(op: &Loss) -> Vec<ShardRule> {
    let rows = Split(0);
    match op {
        Loss::CrossEntropy { ignore_index: _ } => vec![rule([rows, rows], [Partial, Partial, rows])],
        Loss::CrossEntropyGrad { ignore_index: _ } => vec![rule([rows, rows, rows, Whole], [rows])],
    }
}

/// Element by element; what is no tensor of the parameter's shape is a number that all share.
fn optimizer(inputs: &[&Type], outputs: &[&Type]) -> Vec<ShardRule> {
    let shape = &inputs[0].shape;
    let of = |ty: &&Type, axis| if ty.shape == *shape { Split(axis) } else { Whole };
    let all = |types: &[&Type], axis| types.iter().map(|ty| of(ty, axis)).collect::<Vec<_>>();
    (0..shape.len()).map(|axis| rule(all(inputs, axis), all(outputs, axis))).collect()
}
