"""Makes llama*.onnx and goldens/llama: RMS norm, rotary positions, grouped-query attention, SwiGLU, untied head."""

from family import Family, make

import torch
from transformers import LlamaConfig, LlamaForCausalLM

SIZE = dict(
    num_hidden_layers=2, hidden_size=32, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64, vocab_size=128,
    max_position_embeddings=64, tie_word_embeddings=False,
)


class Logits(LlamaForCausalLM):
    def forward(self, input_ids):
        return super().forward(input_ids=input_ids, use_cache=False).logits


def build(attention):
    settings = LlamaConfig(attention_dropout=0.0, use_cache=False, initializer_range=0.1, bos_token_id=0, eos_token_id=0, **SIZE)
    settings._attn_implementation = attention
    return Logits(settings)


def ids(rows, seq, seed):
    return {"input_ids": torch.randint(128, (rows, seq), generator=torch.Generator().manual_seed(seed))}


def loss(model, inputs):
    logits, targets = model(inputs["input_ids"]), inputs["input_ids"]
    return torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), targets[:, 1:].reshape(-1))


if __name__ == "__main__":
    make(Family(
        name="llama", build=build, config=SIZE, seed=121, inputs=ids(3, 24, 5), others=[ids(2, 17, 6)],
        dims={"input_ids": {0: "batch", 1: "seq"}}, outputs=["logits"], loss=loss,
        what="cross entropy of logits[:, :-1] against input_ids[:, 1:], mean over all targets of the batch",
    ))
