//! The measured models by name.

use crate::layers::{Family, Layer};
use trainc_ir::DType;

/// Patches of a 384 x 384 image in squares of 16, and the class token: what the vision models read whatever the stated
/// sequence length.
const VIT_SEQ: u64 = 24 * 24 + 1;

/// A layer of the model as it was measured on a GPU type; `None` for a model that is not known.
pub(crate) fn layer(model: &str, gpu: &str, seq: u64, dtype: DType, batch: u64) -> Option<Layer> {
    let eager_only = gpu == "p40" && dtype == DType::F32;
    let (family, [hidden, ffn, heads, kv_heads], fused) = match model {
        "deepspeedbert_base" => (Family::Bert, [768, 3072, 12, 12], false),
        "deepspeedbert_large" => (Family::Bert, [1024, 4096, 16, 16], false),
        "deepspeedbert_xlarge" => (Family::Bert, [1536, 6144, 24, 24], false),
        "deepspeedgpt_test" => (Family::Gpt, [512, 2048, 128, 128], false),
        "deepspeedgpt_1.3b" => (Family::Gpt, [2048, 8192, 128, 128], false),
        "deepspeedgpt_2.7b" => (Family::Gpt, [2560, 10240, 80, 80], false),
        "deepspeedgpt_6.7b" => (Family::Gpt, [4096, 16384, 128, 128], false),
        "deepspeedgpt_175b" => (Family::Gpt, [12288, 49152, 96, 96], false),
        "deepspeedvit_g" => (Family::Vit, [1664, 8192, 16, 16], false),
        "deepspeedvit_e" | "deepspeedvit_e_toy" => (Family::Vit, [1792, 15360, 16, 16], false),
        "deepspeedllama_tiny" => (Family::Llama, [2048, 5632, 32, 32], !eager_only),
        "deepspeedllama_3b" => (Family::Llama, [3200, 8640, 32, 32], !eager_only),
        "deepspeedllama_7b" => (Family::Llama, [4096, 11008, 32, 32], !eager_only),
        "deepspeedllama_33b" => (Family::Llama, [6656, 17920, 52, 52], !eager_only),
        "deepspeedllama_65b" => (Family::Llama, [8192, 22016, 64, 64], !eager_only),
        "deepspeedllamav2_tiny" => (Family::LlamaV2, [2048, 5632, 32, 32], true),
        "deepspeedllamav2_7b" => (Family::LlamaV2, [4096, 11008, 32, 32], true),
        "deepspeedmistral_7b" => (Family::Llama, [4096, 14336, 32, 8], false),
        "mistral_7b" => (Family::Llama, [4096, 14336, 32, 8], true),
        _ => return None,
    };
    let seq = if family == Family::Vit { VIT_SEQ } else { seq };
    Some(Layer { family, hidden, ffn, heads, kv_heads, fused_attention: fused, dtype, batch, seq })
}
