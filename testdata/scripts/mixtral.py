"""Makes mixtral*.onnx and goldens/mixtral: mixture of experts, two of four a token, with the load-balancing loss."""

from family import Family, make

import torch
from transformers import MixtralConfig, MixtralForCausalLM

SIZE = dict(
    num_hidden_layers=2, hidden_size=32, num_attention_heads=4, num_key_value_heads=2, intermediate_size=32, vocab_size=128,
    max_position_embeddings=64, num_local_experts=4, num_experts_per_tok=2, router_aux_loss_coef=0.02, tie_word_embeddings=False,
)


class Experts(MixtralForCausalLM):
    def forward(self, input_ids, labels):
        result = super().forward(input_ids=input_ids, labels=labels, use_cache=False, output_router_logits=True)
        return result.loss, result.logits


def build(attention):
    settings = MixtralConfig(
        attention_dropout=0.0, use_cache=False, initializer_range=0.2, bos_token_id=0, eos_token_id=0, sliding_window=None,
        output_router_logits=True, **SIZE,
    )
    settings._attn_implementation = attention
    settings._experts_implementation = "batched_mm"
    return Experts(settings)


def ids(rows, seq, seed):
    tokens = torch.randint(128, (rows, seq), generator=torch.Generator().manual_seed(seed))
    return {"input_ids": tokens, "labels": tokens}


def histc(values, bins, min, max):
    """torch.histc for the load-balancing loss, which counts whole numbers; the TorchScript exporter has no aten::histc."""
    return (values[:, None] == torch.arange(bins)).to(values.dtype).sum(0)


if __name__ == "__main__":
    torch.histc = histc
    both = {0: "batch", 1: "seq"}
    make(Family(
        name="mixtral", build=build, config=SIZE, seed=161, inputs=ids(2, 24, 5), others=[ids(3, 17, 6)],
        dims={"input_ids": both, "labels": both}, outputs=["loss", "logits"], step=1e-6,
        what="in the graph: cross entropy of logits[:, :-1] against labels[:, 1:], mean over all targets, plus 0.02 times the load-balancing loss",
    ))
