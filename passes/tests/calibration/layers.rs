//! One layer of each measured model as a graph: the kernels that the measured implementation ran, one node for each.

use trainc_ir::op::{Attention, Contraction, Elementwise, Literal, Movement, Normalization, Random, Real};
use trainc_ir::op::{GeluForm, ReduceKind, Reduction};
use trainc_ir::{DType, Graph, GraphBuilder, InputRole, NodeId, Op, OutputRole, Type, ValueId};

/// How a layer was built and run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layer {
    /// Which network it is a layer of.
    pub(crate) family: Family,
    /// Width of the residual stream.
    pub(crate) hidden: u64,
    /// Width inside of the feed-forward part.
    pub(crate) ffn: u64,
    /// Attention heads.
    pub(crate) heads: u64,
    /// Heads of keys and values.
    pub(crate) kv_heads: u64,
    /// Whether attention was one fused kernel.
    pub(crate) fused_attention: bool,
    /// Type that products are computed in: `f32`, or `f16` under automatic mixed precision with `f32` weights.
    pub(crate) dtype: DType,
    /// Samples of the micro-batch.
    pub(crate) batch: u64,
    /// Tokens of a sample.
    pub(crate) seq: u64,
}

/// The kinds of layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Post-norm encoder layer with dropout.
    Bert,
    /// The first GPT: post-norm, causal by a multiplied mask, GELU from its parts.
    Gpt,
    /// Pre-norm encoder layer without dropout.
    Vit,
    /// RMS norm and rotary embedding from their parts, SwiGLU.
    Llama,
    /// The same with the rotary embedding as a complex product.
    LlamaV2,
}

/// A layer's forward graph with a loss, and which of its nodes run no kernel of their own.
pub(crate) struct Built {
    /// The graph.
    pub(crate) graph: Graph,
    /// Nodes that the measurement does not have: parts of other kernels, cached casts of weights, the loss.
    pub(crate) uncounted: Vec<NodeId>,
    /// First node of the loss.
    pub(crate) loss_from: usize,
}

struct Draft {
    b: GraphBuilder,
    uncounted: Vec<NodeId>,
    layer: Layer,
    n_sites: u64,
}

/// Builds the layer.
pub(crate) fn build(layer: Layer) -> Built {
    let mut d = Draft { b: GraphBuilder::new("layer"), uncounted: Vec::new(), layer, n_sites: 0 };
    let tokens = [layer.batch, layer.seq, layer.hidden];
    let x = d.b.input("x", InputRole::Parameter, Type::new(layer.dtype, tokens));
    let y = match layer.family {
        Family::Bert => d.bert(x),
        Family::Gpt => d.gpt(x),
        Family::Vit => d.vit(x),
        Family::Llama | Family::LlamaV2 => d.llama(x),
    };
    let loss_from = d.b.graph().nodes.len();
    let wide = d.cast(y, DType::F32);
    let loss = d.reduce(ReduceKind::Sum, wide, &[0, 1, 2], false);
    d.b.output("loss_sum", OutputRole::LossSum, loss);
    let uncounted = d.uncounted;
    Built { graph: d.b.finish(), uncounted, loss_from }
}

impl Draft {
    fn one(&mut self, op: impl Into<Op>, inputs: &[ValueId]) -> ValueId {
        self.b.add(op, inputs).expect("the layers are typed by hand")[0]
    }

    /// A node that the implementation runs as part of another kernel.
    fn merged(&mut self, op: impl Into<Op>, inputs: &[ValueId]) -> ValueId {
        self.uncounted.push(self.b.graph().nodes.next_id());
        self.one(op, inputs)
    }

    fn shape(&self, x: ValueId) -> Vec<u64> {
        self.b.ty(x).shape.to_vec()
    }

    fn reshape(&mut self, x: ValueId, shape: &[u64]) -> ValueId {
        self.one(Movement::Reshape { shape: shape.to_vec() }, &[x])
    }

    fn cast(&mut self, x: ValueId, to: DType) -> ValueId {
        if self.b.ty(x).dtype == to { x } else { self.one(Elementwise::Cast { to }, &[x]) }
    }

    fn reduce(&mut self, kind: ReduceKind, x: ValueId, axes: &[u64], keep: bool) -> ValueId {
        self.one(Reduction::Reduce { kind, axes: axes.to_vec(), keep }, &[x])
    }

    fn number(&mut self, like: ValueId, value: f64) -> ValueId {
        let ty = Type::scalar(self.b.ty(like).dtype);
        self.b.constant(Literal::splat_f64(ty, value))
    }

    fn scale(&mut self, x: ValueId, by: f64) -> ValueId {
        let by = self.number(x, by);
        self.one(Elementwise::Mul, &[x, by])
    }

    fn parameter(&mut self, shape: &[u64]) -> ValueId {
        let name = format!("w{}", self.b.graph().inputs.len());
        self.b.input(name, InputRole::Parameter, Type::new(DType::F32, shape))
    }

    fn table(&mut self, dtype: DType, shape: &[u64]) -> ValueId {
        let name = format!("t{}", self.b.graph().inputs.len());
        self.b.input(name, InputRole::Buffer, Type::new(dtype, shape))
    }

    /// `x w (+ b)`; the bias is added by the product's kernel, the weight's cast is cached.
    fn linear(&mut self, x: ValueId, to: u64, bias: bool) -> ValueId {
        let from = *self.shape(x).last().expect("activations have dimensions");
        let w = self.parameter(&[from, to]);
        let w = if self.layer.dtype == DType::F32 {
            w
        } else {
            self.merged(Elementwise::Cast { to: self.layer.dtype }, &[w])
        };
        let x = self.cast(x, self.layer.dtype);
        let y = self.matmul(x, w, false);
        if !bias {
            return y;
        }
        let b = self.parameter(&[to]);
        self.merged(Elementwise::Add, &[y, b])
    }

    fn matmul(&mut self, a: ValueId, b: ValueId, transpose_b: bool) -> ValueId {
        self.one(Contraction::MatMul { transpose_a: false, transpose_b }, &[a, b])
    }

    fn layer_norm(&mut self, x: ValueId) -> ValueId {
        let h = self.layer.hidden;
        let (w, b) = (self.parameter(&[h]), self.parameter(&[h]));
        self.one(Normalization::LayerNorm { eps: Real::new(1e-5) }, &[x, w, b])
    }

    fn dropout(&mut self, x: ValueId) -> ValueId {
        self.n_sites += 1;
        self.one(Random::Dropout { p: Real::new(0.1), site: self.n_sites - 1 }, &[x])
    }

    /// `[b, s, h d]` to contiguous `[b, h, s, d]`: a view where there is one sample.
    fn split_heads(&mut self, x: ValueId, heads: u64) -> ValueId {
        let Layer { batch, seq, .. } = self.layer;
        let depth = self.shape(x)[2] / heads;
        if batch == 1 {
            return self.reshape(x, &[batch, heads, seq, depth]);
        }
        let x = self.reshape(x, &[batch, seq, heads, depth]);
        self.one(Movement::Transpose { perm: vec![0, 2, 1, 3] }, &[x])
    }

    fn merge_heads(&mut self, x: ValueId) -> ValueId {
        let Layer { batch, seq, hidden, .. } = self.layer;
        let x = self.one(Movement::Transpose { perm: vec![0, 2, 1, 3] }, &[x]);
        self.reshape(x, &[batch, seq, hidden])
    }

    /// Scores, softmax and sum of values, each in kernels of its own. `[b, h, s, d]` in, `[b, s, h d]` out.
    fn attend(&mut self, [q, k, v]: [ValueId; 3]) -> ValueId {
        let scores = self.matmul(q, k, true);
        let depth = self.layer.hidden / self.layer.heads;
        let mut scores = self.scale(scores, 1.0 / (depth as f64).sqrt());
        if self.layer.family == Family::Gpt {
            let s = self.layer.seq;
            let mask = self.table(DType::F32, &[1, 1, s, s]);
            let one = self.number(mask, 1.0);
            let off = self.one(Elementwise::Sub, &[one, mask]);
            let off = self.scale(off, -1e4);
            scores = self.one(Elementwise::Mul, &[scores, mask]);
            scores = self.one(Elementwise::Add, &[scores, off]);
        }
        let mut weights = self.one(Normalization::Softmax, &[scores]);
        if self.layer.family == Family::Bert {
            weights = self.dropout(weights);
        }
        let y = self.matmul(weights, v, false);
        self.merge_heads(y)
    }

    fn bert(&mut self, x: ValueId) -> ValueId {
        let h = self.layer.hidden;
        let qkv = [0; 3].map(|_| {
            let part = self.linear(x, h, true);
            self.split_heads(part, self.layer.heads)
        });
        let a = self.attend(qkv);
        let a = self.linear(a, h, true);
        let a = self.dropout(a);
        let a = self.one(Elementwise::Add, &[a, x]);
        let x = self.layer_norm(a);
        let y = self.linear(x, self.layer.ffn, true);
        let y = self.one(Elementwise::Gelu { form: GeluForm::Erf }, &[y]);
        let y = self.linear(y, h, true);
        let y = self.dropout(y);
        let y = self.one(Elementwise::Add, &[y, x]);
        self.layer_norm(y)
    }

    fn vit(&mut self, x: ValueId) -> ValueId {
        let h = self.layer.hidden;
        let n = self.layer_norm(x);
        let qkv = [0; 3].map(|_| {
            let part = self.linear(n, h, true);
            self.split_heads(part, self.layer.heads)
        });
        let a = self.attend(qkv);
        let a = self.linear(a, h, true);
        let x = self.one(Elementwise::Add, &[a, x]);
        let y = self.layer_norm(x);
        let y = self.linear(y, self.layer.ffn, true);
        let y = self.one(Elementwise::Gelu { form: GeluForm::Erf }, &[y]);
        let y = self.linear(y, h, true);
        self.one(Elementwise::Add, &[y, x])
    }

    fn gpt(&mut self, x: ValueId) -> ValueId {
        let h = self.layer.hidden;
        let qkv = self.linear(x, 3 * h, true);
        self.uncounted.push(self.b.graph().nodes.next_id());
        let parts = self.b.add(Movement::Split { axis: 2, sizes: vec![h; 3] }, &[qkv]).expect("three equal parts");
        let parts = [0, 1, 2].map(|i| self.split_heads(parts[i], self.layer.heads));
        let a = self.attend(parts);
        let a = self.linear(a, h, true);
        let a = self.one(Elementwise::Add, &[x, a]);
        let n = self.layer_norm(a);
        let y = self.linear(n, self.layer.ffn, true);
        let y = self.gelu_from_parts(y);
        let y = self.linear(y, h, true);
        let y = self.one(Elementwise::Add, &[n, y]);
        self.layer_norm(y)
    }

    fn gelu_from_parts(&mut self, x: ValueId) -> ValueId {
        let three = self.number(x, 3.0);
        let cube = self.one(Elementwise::Pow, &[x, three]);
        let cube = self.scale(cube, 0.044_715);
        let inner = self.one(Elementwise::Add, &[x, cube]);
        let inner = self.scale(inner, 0.797_884_6);
        let tanh = self.one(Elementwise::Tanh, &[inner]);
        let one = self.number(x, 1.0);
        let outer = self.one(Elementwise::Add, &[tanh, one]);
        let half = self.scale(x, 0.5);
        self.one(Elementwise::Mul, &[half, outer])
    }

    fn llama(&mut self, x: ValueId) -> ValueId {
        let Layer { hidden, heads, kv_heads, ffn, .. } = self.layer;
        let kv = hidden / heads * kv_heads;
        let n = self.rms_norm(x);
        let [q, k, v] = [hidden, kv, kv].map(|to| self.linear(n, to, false));
        let [q, k] = if self.layer.family == Family::LlamaV2 {
            [q, k].map(|x| self.complex_rotation(x))
        } else {
            let tables = self.rotation_tables();
            [self.rotate(q, heads, tables), self.rotate(k, kv_heads, tables)]
        };
        let a = if self.layer.fused_attention { self.fused(q, k, v) } else { self.eager(q, k, v) };
        let a = self.linear(a, hidden, false);
        let x = self.one(Elementwise::Add, &[x, a]);
        let n = self.rms_norm(x);
        let gate = self.linear(n, ffn, false);
        let gate = self.one(Elementwise::Silu, &[gate]);
        let up = self.linear(n, ffn, false);
        let y = self.one(Elementwise::Mul, &[gate, up]);
        let y = self.linear(y, hidden, false);
        self.one(Elementwise::Add, &[x, y])
    }

    /// `w (x / rms x)` from its parts; in mixed precision the result is `f32`, and every product casts it.
    fn rms_norm(&mut self, x: ValueId) -> ValueId {
        let dtype = self.b.ty(x).dtype;
        let wide = self.cast(x, DType::F32);
        let two = self.number(wide, 2.0);
        let square = self.one(Elementwise::Pow, &[wide, two]);
        let mean = self.reduce(ReduceKind::Mean, square, &[2], true);
        let eps = self.number(mean, 1e-6);
        let mean = self.one(Elementwise::Add, &[mean, eps]);
        let scale = self.one(Elementwise::Rsqrt, &[mean]);
        let y = self.one(Elementwise::Mul, &[wide, scale]);
        let y = self.cast(y, dtype);
        let w = self.parameter(&[self.layer.hidden]);
        let y = if dtype == DType::F32 { y } else { self.merged(Elementwise::Cast { to: DType::F32 }, &[y]) };
        self.one(Elementwise::Mul, &[w, y])
    }

    /// Cosines and sines of all positions, computed by every layer.
    fn rotation_tables(&mut self) -> [ValueId; 2] {
        let (seq, depth) = (self.layer.seq, self.layer.hidden / self.layer.heads);
        let (position, frequency) = (self.table(DType::F32, &[seq, 1]), self.table(DType::F32, &[1, depth / 2]));
        let angles = self.one(Elementwise::Mul, &[position, frequency]);
        let angles = self.one(Movement::Concat { axis: 1 }, &[angles, angles]);
        [Elementwise::Cos, Elementwise::Sin].map(|function| {
            let table = self.one(function, &[angles]);
            let table = self.cast(table, self.layer.dtype);
            self.reshape(table, &[1, seq, 1, depth])
        })
    }

    /// `x cos + rotate_half(x) sin`; `[b, s, h d]` in and out, because the implementation works on views.
    fn rotate(&mut self, x: ValueId, heads: u64, [cos, sin]: [ValueId; 2]) -> ValueId {
        let Layer { batch, seq, .. } = self.layer;
        let shape = self.shape(x);
        let depth = shape[2] / heads;
        let x = self.reshape(x, &[batch, seq, heads, depth]);
        let straight = self.one(Elementwise::Mul, &[x, cos]);
        let bounds = [batch as i64, seq as i64, heads as i64, depth as i64];
        let half = depth as i64 / 2;
        let [low, high] = [(0, half), (half, depth as i64)].map(|(start, end)| {
            let starts = vec![0, 0, 0, start];
            let ends = vec![bounds[0], bounds[1], bounds[2], end];
            self.merged(Movement::Slice { starts, ends, steps: vec![1; 4] }, &[x])
        });
        let minus = self.one(Elementwise::Neg, &[high]);
        let rotated = self.one(Movement::Concat { axis: 3 }, &[minus, low]);
        let crossed = self.one(Elementwise::Mul, &[rotated, sin]);
        let y = self.one(Elementwise::Add, &[straight, crossed]);
        self.reshape(y, &shape)
    }

    fn complex_rotation(&mut self, x: ValueId) -> ValueId {
        let (seq, hidden) = (self.layer.seq, self.layer.hidden);
        let wide = self.cast(x, DType::F32);
        let table = self.table(DType::F32, &[1, seq, hidden]);
        let y = self.one(Elementwise::Mul, &[wide, table]);
        self.cast(y, self.layer.dtype)
    }

    fn fused(&mut self, q: ValueId, k: ValueId, v: ValueId) -> ValueId {
        let Layer { batch, seq, hidden, heads, kv_heads, .. } = self.layer;
        let depth = hidden / heads;
        let q = self.reshape(q, &[batch, heads, seq, depth]);
        let [k, v] = [k, v].map(|x| self.reshape(x, &[batch, kv_heads, seq, depth]));
        let y = self.one(Attention::Attention { scale: Real::new(0.1), causal: true }, &[q, k, v]);
        self.reshape(y, &[batch, seq, hidden])
    }

    fn eager(&mut self, q: ValueId, k: ValueId, v: ValueId) -> ValueId {
        let Layer { batch, seq, hidden, heads, kv_heads, .. } = self.layer;
        let depth = hidden / heads;
        let q = self.split_heads(q, heads);
        let [k, v] = [k, v].map(|x| {
            if kv_heads == heads {
                return self.split_heads(x, heads);
            }
            // The copies that repeat the heads.
            let x = self.reshape(x, &[batch, kv_heads, 1, seq, depth]);
            let shape = vec![batch, kv_heads, heads / kv_heads, seq, depth];
            let x = self.one(Movement::Broadcast { shape }, &[x]);
            self.reshape(x, &[batch, heads, seq, depth])
        });
        self.attend([q, k, v])
    }
}
