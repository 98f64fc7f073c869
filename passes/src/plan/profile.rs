//! What the units of a model do and hold, independent of any GPU: the input of partitioning.

use trainc_ir::op::{Attention, Indexing, Movement, Op};
use trainc_ir::{DType, Type};

/// What kind of kernel does a piece of work, which decides the rates that bound it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkClass {
    /// Matrix products and convolutions, on tensor cores where the type has them.
    Matmul,
    /// Fused attention: products and softmax.
    Attention,
    /// Elementwise operators, reductions, losses, gather: bound by memory.
    Memory,
    /// Normalizations and softmax: bound by memory too, with more passes over each row.
    Rows,
    /// Copies in another order.
    Movement,
    /// Gradient sums and parameter updates.
    Optimizer,
    /// No kernel: another shape of the same bytes, or constant data.
    Free,
}

/// What equal kernels do, independent of the GPU. `flops` and `bytes` are those of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work {
    /// The kind of kernel.
    pub class: WorkClass,
    /// The element type that the arithmetic units must have.
    pub dtype: DType,
    /// Floating-point operations of one kernel.
    pub flops: u64,
    /// Bytes that one kernel moves to and from the device's memory.
    pub bytes: u64,
    /// How many such kernels.
    pub count: u32,
}

impl Work {
    /// The work of one operator.
    pub fn of(op: &Op, inputs: &[&Type], outputs: &[&Type]) -> Self {
        let class = class(op);
        Self {
            class,
            dtype: arithmetic_dtype(class, inputs, outputs),
            flops: op.flops(inputs, outputs),
            bytes: bytes(op, inputs, outputs),
            count: 1,
        }
    }

    /// The same work with equal kernels counted together and free ones left out, in a fixed order. The time is the same.
    pub fn gather(mut work: Vec<Self>) -> Vec<Self> {
        work.retain(|w| w.class != WorkClass::Free);
        work.sort_unstable();
        work.dedup_by(|later, first| {
            let same = Self { count: first.count, ..*later } == *first;
            if same {
                first.count += later.count;
            }
            same
        });
        work
    }
}

/// A class of blocks and the micro-batch it is run on: what measured times of blocks are looked up by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockShape {
    /// Name of the class, as in the names of segments.
    pub name: String,
    /// Samples of the micro-batch.
    pub micro_batch: u64,
    /// Tokens of a sample.
    pub seq: u64,
}

/// The name of a class of blocks as it stands in the names of segments.
pub(crate) fn block_name(class: &str) -> String {
    class.replace(' ', "_")
}

/// One unit (block, embedding, head) of the model for one micro-batch. All bytes are exact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitProfile {
    /// Name for people: `embedding`, `block 3`, `head`.
    pub name: String,
    /// The class, for a block. Units of one class have equal figures, parameters' names apart.
    pub class: Option<usize>,
    /// What measured times are looked up by, for a block.
    pub block: Option<BlockShape>,
    /// Work of the forward.
    pub forward: Vec<Work>,
    /// Work of the backward, gradient sums included.
    pub backward: Vec<Work>,
    /// The part of it that nothing but the weights' gradients needs.
    pub weight_grad: Vec<Work>,
    /// Work of running the forward again; empty for a unit that is never recomputed.
    pub recompute: Vec<Work>,
    /// Work of the optimizer, once per step.
    pub update: Vec<Work>,
    /// Parameters that the unit uses. A parameter used by units of two stages is held on both.
    pub parameters: Vec<ParameterProfile>,
    /// Live-in activations kept for the backward whatever the policy.
    pub input_bytes: u64,
    /// What else is kept for the backward where the unit is not recomputed.
    pub saved_bytes: u64,
    /// Peak of the locals of the forward.
    pub transient_forward: u64,
    /// Peak of the locals of the backward. Where the unit is recomputed, its `saved_bytes` come on top.
    pub transient_backward: u64,
    /// Bytes that cross the cut behind this unit in the forward, per micro-batch.
    pub sent_forward: u64,
    /// Bytes that cross the cut behind this unit in the backward, per micro-batch.
    pub sent_backward: u64,
    /// Data and labels that the unit reads, per micro-batch.
    pub data_bytes: u64,
}

/// Bytes that every holder of a parameter needs. Units that share a parameter give the same figures; a stage counts
/// them once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParameterProfile {
    /// Index of the parameter in the training graph.
    pub parameter: u32,
    /// Bytes of the weight.
    pub weight: u64,
    /// Bytes of the gradient sums.
    pub gradient: u64,
    /// Bytes of the optimizer's state.
    pub state: u64,
}

fn class(op: &Op) -> WorkClass {
    match op {
        Op::Contraction(_) | Op::Convolution(_) => WorkClass::Matmul,
        Op::Attention(
            Attention::Attention { scale: _, causal: _ }
            | Attention::AttentionGrad { scale: _, causal: _ }
            | Attention::AttentionMaskGrad { scale: _, causal: _ },
        ) => WorkClass::Attention,
        Op::Attention(Attention::Rope { interleaved: _ } | Attention::RopeGrad { interleaved: _ }) => WorkClass::Memory,
        Op::Normalization(_) | Op::BatchNorm(_) => WorkClass::Rows,
        Op::Elementwise(_) | Op::Reduction(_) | Op::Indexing(_) | Op::Pooling(_) => WorkClass::Memory,
        Op::Random(_) | Op::Loss(_) | Op::Opaque(_) => WorkClass::Memory,
        Op::Movement(_) if op.is_alias() => WorkClass::Free,
        Op::Movement(_) => WorkClass::Movement,
        Op::Creation(_) => WorkClass::Free,
        Op::Optimizer(_) => WorkClass::Optimizer,
    }
}

/// Products compute in the type of their first operand. Other kernels need every float type they touch; the one named
/// is the one that a GPU may lack, which is never `f32`.
fn arithmetic_dtype(class: WorkClass, inputs: &[&Type], outputs: &[&Type]) -> DType {
    let mut touched = inputs.iter().chain(outputs).map(|ty| ty.dtype);
    match class {
        WorkClass::Matmul | WorkClass::Attention => inputs.first().map_or(DType::F32, |ty| ty.dtype),
        WorkClass::Memory | WorkClass::Rows | WorkClass::Movement | WorkClass::Optimizer | WorkClass::Free => {
            touched.find(|dtype| dtype.is_float() && *dtype != DType::F32).unwrap_or(DType::F32)
        }
    }
}

/// What the operator reads and writes once; of a table or a sliced operand only the elements taken are read.
fn bytes(op: &Op, inputs: &[&Type], outputs: &[&Type]) -> u64 {
    let written = || outputs.iter().map(|ty| ty.bytes()).sum::<u64>();
    let taken = |indices: u64| 2 * written() + indices;
    match op {
        Op::Indexing(Indexing::Gather { axis: _ } | Indexing::GatherElements { axis: _ }) => {
            taken(inputs.get(1).map_or(0, |ty| ty.bytes()))
        }
        Op::Movement(Movement::Slice { starts: _, ends: _, steps: _ }) => taken(0),
        Op::Creation(_) => 0,
        Op::Elementwise(_) | Op::Contraction(_) | Op::Reduction(_) | Op::Normalization(_) | Op::Attention(_) => {
            op.bytes(inputs, outputs)
        }
        Op::Indexing(_) | Op::Movement(_) | Op::Random(_) | Op::Loss(_) | Op::Optimizer(_) | Op::Opaque(_) => {
            op.bytes(inputs, outputs)
        }
        Op::Convolution(_) | Op::Pooling(_) | Op::BatchNorm(_) => op.bytes(inputs, outputs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainc_ir::op::Contraction;

    fn ty(dtype: DType, shape: &[u64]) -> Type {
        Type::new(dtype, shape)
    }

    #[test]
    fn a_product_counts_its_operands_once() {
        let (a, b, y) = (ty(DType::BF16, &[8, 16]), ty(DType::BF16, &[16, 4]), ty(DType::BF16, &[8, 4]));
        let op = Op::from(Contraction::MatMul { transpose_a: false, transpose_b: false });
        let work = Work::of(&op, &[&a, &b], &[&y]);
        // 2 m k n and two bytes for each of mk + kn + mn elements.
        let expected = Work { class: WorkClass::Matmul, dtype: DType::BF16, flops: 1024, bytes: 448, count: 1 };
        assert_eq!(work, expected);
    }

    #[test]
    fn a_gather_does_not_read_its_whole_table() {
        let (table, at, y) = (ty(DType::F32, &[1000, 8]), ty(DType::I64, &[3]), ty(DType::F32, &[3, 8]));
        let op = Op::from(Indexing::Gather { axis: 0 });
        assert_eq!(Work::of(&op, &[&table, &at], &[&y]).bytes, 2 * 96 + 24);
    }

    #[test]
    fn gathering_keeps_the_totals() {
        let one = |flops, class| Work { class, dtype: DType::F32, flops, bytes: 2, count: 1 };
        let gathered = Work::gather(vec![
            one(5, WorkClass::Matmul),
            one(5, WorkClass::Memory),
            one(0, WorkClass::Free),
            one(5, WorkClass::Matmul),
        ]);
        let twice = Work { count: 2, ..one(5, WorkClass::Matmul) };
        assert_eq!(gathered, [twice, one(5, WorkClass::Memory)]);
    }

    #[test]
    fn a_cast_needs_the_type_that_a_gpu_may_lack() {
        let (x, y) = (ty(DType::F32, &[4]), ty(DType::BF16, &[4]));
        let op = Op::from(trainc_ir::op::Elementwise::Cast { to: DType::BF16 });
        assert_eq!(Work::of(&op, &[&x], &[&y]).dtype, DType::BF16);
    }
}
