//! Models of any size, written operator by operator as exporters write them.

use trainc_ir::op::{Contraction, Elementwise as E, Indexing, Literal, Movement, Normalization, ReduceKind, Reduction};
use trainc_ir::{DType, Graph, GraphBuilder, InputRole, OutputRole, Type, ValueId};

const SEQUENCE: u64 = 8;
const WIDTH: u64 = 16;
const HEADS: u64 = 2;
const INNER: u64 = 32;
const VOCABULARY: u64 = 32;
/// Experts of a layer.
const EXPERTS: u64 = 64;

/// A kind of graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Transformer blocks, one behind the other.
    Deep,
    /// One layer of towers side by side.
    Wide,
    /// Layers of experts side by side.
    Experts,
}

impl Shape {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Deep, Self::Wide, Self::Experts];

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Deep => "deep",
            Self::Wide => "wide",
            Self::Experts => "experts",
        }
    }

    /// What it is.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Deep => "transformer blocks one behind the other",
            Self::Wide => "one layer of towers side by side",
            Self::Experts => "transformer layers with 64 experts each",
        }
    }

    /// A graph of this shape with about so many nodes, and its logits as the only output.
    pub(crate) fn graph(self, nodes: usize) -> Graph {
        let mut m = Model { b: GraphBuilder::new(self.name()), n_parameters: 0 };
        let ids = m.b.input("input_ids", InputRole::Data, Type::new(DType::I64, [1, SEQUENCE]));
        let table = m.parameter(&[VOCABULARY, WIDTH]);
        let mut x = m.one(Indexing::Gather { axis: 0 }, &[table, ids]);
        match self {
            Self::Deep => {
                while m.len() < nodes {
                    x = m.attention(x);
                    x = m.dense(x);
                }
            }
            Self::Wide => {
                let mut total = x;
                while m.len() < nodes {
                    let y = m.expert(x);
                    total = m.one(E::Add, &[total, y]);
                }
                x = total;
            }
            Self::Experts => {
                while m.len() < nodes {
                    x = m.attention(x);
                    x = m.experts(x, nodes);
                }
            }
        }
        x = m.norm(x);
        let head = m.parameter(&[WIDTH, VOCABULARY]);
        let logits = m.product(x, head);
        m.b.output("logits", OutputRole::Prediction, logits);
        m.b.finish()
    }
}

struct Model {
    b: GraphBuilder,
    n_parameters: usize,
}

impl Model {
    fn len(&self) -> usize {
        self.b.graph().nodes.len()
    }

    fn one(&mut self, op: impl Into<trainc_ir::Op>, inputs: &[ValueId]) -> ValueId {
        self.b.one(op, inputs).expect("the model is well typed")
    }

    fn parameter(&mut self, shape: &[u64]) -> ValueId {
        let name = format!("layers.weight.{}", self.n_parameters);
        self.n_parameters += 1;
        self.b.input(name, InputRole::Parameter, Type::new(DType::F32, shape))
    }

    fn number(&mut self, value: f64) -> ValueId {
        self.b.constant(Literal::splat_f64(Type::scalar(DType::F32), value))
    }

    fn product(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.one(Contraction::MatMul { transpose_a: false, transpose_b: false }, &[a, b])
    }

    /// A layer norm, taken apart.
    fn norm(&mut self, x: ValueId) -> ValueId {
        let mean = Reduction::Reduce { kind: ReduceKind::Mean, axes: vec![2], keep: true };
        let center = self.one(mean.clone(), &[x]);
        let centered = self.one(E::Sub, &[x, center]);
        let two = self.number(2.0);
        let squared = self.one(E::Pow, &[centered, two]);
        let variance = self.one(mean, &[squared]);
        let eps = self.number(1e-5);
        let shifted = self.one(E::Add, &[variance, eps]);
        let deviation = self.one(E::Sqrt, &[shifted]);
        let scaled = self.one(E::Div, &[centered, deviation]);
        let (weight, bias) = (self.parameter(&[WIDTH]), self.parameter(&[WIDTH]));
        let scaled = self.one(E::Mul, &[scaled, weight]);
        self.one(E::Add, &[scaled, bias])
    }

    fn linear(&mut self, x: ValueId, from: u64, to: u64) -> ValueId {
        let (weight, bias) = (self.parameter(&[from, to]), self.parameter(&[to]));
        let y = self.product(x, weight);
        self.one(E::Add, &[y, bias])
    }

    fn heads(&mut self, x: ValueId) -> ValueId {
        let shape = vec![1, SEQUENCE, HEADS, WIDTH / HEADS];
        let split = self.one(Movement::Reshape { shape }, &[x]);
        self.one(Movement::Transpose { perm: vec![0, 2, 1, 3] }, &[split])
    }

    /// Norm, attention taken apart, residual.
    fn attention(&mut self, x: ValueId) -> ValueId {
        let normed = self.norm(x);
        let [q, k, v] = [0; 3].map(|_| {
            let y = self.linear(normed, WIDTH, WIDTH);
            self.heads(y)
        });
        let k = self.one(Movement::Transpose { perm: vec![0, 1, 3, 2] }, &[k]);
        let scores = self.product(q, k);
        let scale = self.number(0.5);
        let scores = self.one(E::Mul, &[scores, scale]);
        let weights = self.one(Normalization::Softmax, &[scores]);
        let mixed = self.product(weights, v);
        let mixed = self.one(Movement::Transpose { perm: vec![0, 2, 1, 3] }, &[mixed]);
        let mixed = self.one(Movement::Reshape { shape: vec![1, SEQUENCE, WIDTH] }, &[mixed]);
        let out = self.linear(mixed, WIDTH, WIDTH);
        self.one(E::Add, &[x, out])
    }

    /// Norm, two products with a GELU taken apart between them, residual.
    fn dense(&mut self, x: ValueId) -> ValueId {
        let normed = self.norm(x);
        let up = self.linear(normed, WIDTH, INNER);
        let root = self.number(std::f64::consts::SQRT_2);
        let scaled = self.one(E::Div, &[up, root]);
        let erf = self.one(E::Erf, &[scaled]);
        let one = self.number(1.0);
        let shifted = self.one(E::Add, &[erf, one]);
        let product = self.one(E::Mul, &[up, shifted]);
        let half = self.number(0.5);
        let gelu = self.one(E::Mul, &[product, half]);
        let down = self.linear(gelu, INNER, WIDTH);
        self.one(E::Add, &[x, down])
    }

    /// Two products with a SiLU taken apart between them.
    fn expert(&mut self, x: ValueId) -> ValueId {
        let up = self.parameter(&[WIDTH, INNER]);
        let up = self.product(x, up);
        let gate = self.one(E::Sigmoid, &[up]);
        let silu = self.one(E::Mul, &[up, gate]);
        let down = self.parameter(&[INNER, WIDTH]);
        self.product(silu, down)
    }

    /// Norm, experts weighted by a softmax, residual.
    fn experts(&mut self, x: ValueId, nodes: usize) -> ValueId {
        let normed = self.norm(x);
        let router = self.parameter(&[WIDTH, EXPERTS]);
        let logits = self.product(normed, router);
        let weights = self.one(Normalization::Softmax, &[logits]);
        let mut total = x;
        for expert in 0..EXPERTS as i64 {
            if self.len() >= nodes {
                break;
            }
            let y = self.expert(normed);
            let slice = Movement::Slice {
                starts: vec![0, 0, expert],
                ends: vec![1, SEQUENCE as i64, expert + 1],
                steps: vec![1, 1, 1],
            };
            let weight = self.one(slice, &[weights]);
            let y = self.one(E::Mul, &[y, weight]);
            total = self.one(E::Add, &[total, y]);
        }
        total
    }
}
