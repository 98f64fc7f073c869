//! A LLaMA-style decoder as a graph without weights, and a cluster of 64 GPUs.

use trainc_ir::op::{Attention, Contraction, Elementwise as E, Indexing, Movement, Normalization, Real};
use trainc_ir::{DType, Graph, GraphBuilder, InputRole, Op, OutputRole, TrainingGraph, Type, ValueId};
use trainc_passes::{Lowering, TrainingOptions, lower_to_training};

/// Eight nodes of eight.
pub(crate) const CLUSTER: &str = r#"
name = "eight nodes of eight"
[[group]]
name = "a100"
gpu = "A100-SXM-80GB"
nodes = 8
gpus_per_node = 8
[network]
bandwidth_gbps = 200
latency_us = 5
"#;

/// Sizes of a model.
pub(crate) struct Llama {
    layers: u64,
    width: u64,
    heads: u64,
    groups: u64,
    inner: u64,
    vocabulary: u64,
    sequence: u64,
}

impl Llama {
    /// LLaMA 2 of 70 billion parameters, one sequence of 2048.
    pub(crate) const LARGE: Self =
        Self { layers: 80, width: 8192, heads: 64, groups: 8, inner: 28_672, vocabulary: 32_000, sequence: 2048 };

    fn graph(&self) -> Graph {
        let mut m = Model { b: GraphBuilder::new("llama"), sizes: self };
        let ids = m.b.input("input_ids", InputRole::Data, Type::new(DType::I64, [1, self.sequence]));
        let half = [self.sequence, self.width / self.heads];
        let tables = ["cos", "sin"].map(|name| m.b.input(name, InputRole::Buffer, Type::new(DType::F32, half)));
        let table = m.parameter("embed_tokens.weight", &[self.vocabulary, self.width]);
        let mut x = m.one(Indexing::Gather { axis: 0 }, &[table, ids]);
        for layer in 0..self.layers {
            x = m.layer(x, layer, tables);
        }
        x = m.norm("norm.weight", x);
        let logits = m.product("lm_head.weight", x, self.width, self.vocabulary);
        m.b.output("logits", OutputRole::Prediction, logits);
        m.b.finish()
    }
}

/// The training graph of the model with AdamW.
pub(crate) fn training(model: &Llama) -> TrainingGraph {
    let options = TrainingOptions::default();
    match lower_to_training(model.graph(), &options, None, &mut |_| {}, &mut Vec::new()) {
        Ok(Lowering::Done(training)) => *training,
        other => panic!("the model cannot be trained: {other:?}"),
    }
}

struct Model<'a> {
    b: GraphBuilder,
    sizes: &'a Llama,
}

impl Model<'_> {
    fn parameter(&mut self, name: &str, shape: &[u64]) -> ValueId {
        self.b.input(name, InputRole::Parameter, Type::new(DType::F32, shape))
    }

    fn one(&mut self, op: impl Into<Op>, inputs: &[ValueId]) -> ValueId {
        self.b.add(op, inputs).expect("the model is well typed")[0]
    }

    fn product(&mut self, name: &str, x: ValueId, from: u64, to: u64) -> ValueId {
        let weight = self.parameter(name, &[to, from]);
        self.one(Contraction::MatMul { transpose_a: false, transpose_b: true }, &[x, weight])
    }

    fn norm(&mut self, name: &str, x: ValueId) -> ValueId {
        let weight = self.parameter(name, &[self.sizes.width]);
        self.one(Normalization::RmsNorm { eps: Real::new(1e-5) }, &[x, weight])
    }

    /// A projection, split into heads, which come before positions.
    fn heads(&mut self, name: &str, x: ValueId, n: u64) -> ValueId {
        let Llama { width, heads, sequence, .. } = *self.sizes;
        let y = self.product(name, x, width, n * width / heads);
        let y = self.one(Movement::Reshape { shape: vec![1, sequence, n, width / heads] }, &[y]);
        self.one(Movement::Transpose { perm: vec![0, 2, 1, 3] }, &[y])
    }

    fn layer(&mut self, x: ValueId, layer: u64, [cos, sin]: [ValueId; 2]) -> ValueId {
        let Llama { width, heads, groups, inner, sequence, .. } = *self.sizes;
        let name = |part: &str| format!("layers.{layer}.{part}.weight");
        let normed = self.norm(&name("input_layernorm"), x);
        let q = self.heads(&name("q_proj"), normed, heads);
        let k = self.heads(&name("k_proj"), normed, groups);
        let v = self.heads(&name("v_proj"), normed, groups);
        let q = self.one(Attention::Rope { interleaved: false }, &[q, cos, sin]);
        let k = self.one(Attention::Rope { interleaved: false }, &[k, cos, sin]);
        let scale = Real::new(1.0 / ((width / heads) as f64).sqrt());
        let mixed = self.one(Attention::Attention { scale, causal: true }, &[q, k, v]);
        let mixed = self.one(Movement::Transpose { perm: vec![0, 2, 1, 3] }, &[mixed]);
        let mixed = self.one(Movement::Reshape { shape: vec![1, sequence, width] }, &[mixed]);
        let out = self.product(&name("o_proj"), mixed, width, width);
        let x = self.one(E::Add, &[x, out]);
        let normed = self.norm(&name("post_attention_layernorm"), x);
        let gate = self.product(&name("gate_proj"), normed, width, inner);
        let up = self.product(&name("up_proj"), normed, width, inner);
        let gate = self.one(E::Silu, &[gate]);
        let product = self.one(E::Mul, &[gate, up]);
        let down = self.product(&name("down_proj"), product, inner, width);
        self.one(E::Add, &[x, down])
    }
}
