//! An ONNX model: read, indexed, lowered with all open dimensions bound to small numbers.

use super::{Kind, Target};
use crate::corpus::seeds;
use crate::onnx_model;
use std::path::PathBuf;
use trainc_frontend::{Bindings, ModelBytes, OnnxModel};
use trainc_ir::{Lowered, ModelSource, verify};

pub(super) const TARGET: Target =
    Target { name: "onnx", kind: Kind::Protobuf, run, seeds: all_seeds, tokens: TOKENS, n_bounded: 4_000 };

fn run(input: &[u8]) {
    bound(input, "batch=2,seq=3,*=2", &[None, Some(3)]);
    bound(input, "*=4611686018427387904", &[None]);
}

fn bound(input: &[u8], bindings: &str, micro_batches: &[Option<u64>]) {
    let bindings = Bindings::parse(bindings).expect("the bindings are well formed");
    // No folder of this name exists, so that no external data does.
    let file = ModelBytes::from_vec(PathBuf::from("no-such-folder/fuzz.onnx"), input.to_vec());
    let Ok(model) = OnnxModel::from_bytes(file, bindings) else { return };
    for &micro_batch in micro_batches {
        if let Ok(Lowered { graph, diagnostics: _ }) = model.lower(micro_batch)
            && let Err((_, errors)) = verify(graph)
        {
            panic!("the lowered graph is not valid: {}", errors[0]);
        }
    }
    for weight in model.weights().iter().take(4) {
        if weight.ty().bytes() <= 1 << 20 {
            let _ = weight.read_bytes();
        }
    }
}

fn all_seeds() -> Vec<Vec<u8>> {
    let mut all = onnx_model::models();
    all.extend(onnx_model::greedy().into_iter().map(|(_, model)| model));
    all.extend(seeds("frontend/onnx", ".onnx"));
    all.extend(seeds("frontend/onnx/external", ".onnx"));
    all
}

const TOKENS: &[&str] = &[
    "Abs",
    "Add",
    "And",
    "ArgMax",
    "ArgMin",
    "Attention",
    "AveragePool",
    "BatchNormalization",
    "BiasGelu",
    "Cast",
    "CastLike",
    "Ceil",
    "Celu",
    "Clip",
    "Concat",
    "Constant",
    "ConstantOfShape",
    "Conv",
    "Cos",
    "CumSum",
    "Div",
    "Dropout",
    "Einsum",
    "Elu",
    "EmbedLayerNormalization",
    "Equal",
    "Erf",
    "Exp",
    "Expand",
    "EyeLike",
    "FastGelu",
    "Flatten",
    "Floor",
    "FusedMatMul",
    "Gather",
    "GatherElements",
    "GatherND",
    "Gelu",
    "Gemm",
    "Greater",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "If",
    "InstanceNormalization",
    "IsInf",
    "IsNaN",
    "LayerNormalization",
    "LeakyRelu",
    "Less",
    "Log",
    "LogSoftmax",
    "Loop",
    "LpNormalization",
    "MatMul",
    "Max",
    "MaxPool",
    "Mean",
    "Min",
    "Mish",
    "Mod",
    "Mul",
    "MultiHeadAttention",
    "Neg",
    "NegativeLogLikelihoodLoss",
    "NonZero",
    "Not",
    "OneHot",
    "Or",
    "PRelu",
    "Pad",
    "Pow",
    "QuickGelu",
    "RMSNormalization",
    "Range",
    "Reciprocal",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    "Relu",
    "Reshape",
    "RotaryEmbedding",
    "Round",
    "ScatterElements",
    "ScatterND",
    "Selu",
    "Shape",
    "Sigmoid",
    "Sign",
    "Sin",
    "Size",
    "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
    "Slice",
    "Softmax",
    "SoftmaxCrossEntropyLoss",
    "Softplus",
    "Split",
    "Sqrt",
    "Squeeze",
    "Sub",
    "Sum",
    "Swish",
    "Tanh",
    "Tile",
    "TopK",
    "Transpose",
    "Trilu",
    "Unsqueeze",
    "Where",
    "Xor",
    "axis",
    "axes",
    "keepdims",
    "perm",
    "to",
    "value",
    "epsilon",
    "equation",
    "num_heads",
    "group",
    "dilations",
    "kernel_shape",
    "strides",
    "pads",
    "auto_pad",
    "mode",
    "body",
    "then_branch",
    "else_branch",
    "location",
    "offset",
    "length",
    "com.microsoft",
    "x",
    "y",
    "w",
    "ids",
    "t0",
    "t1",
    "s",
];
