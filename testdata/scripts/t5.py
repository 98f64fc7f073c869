"""Makes t5*.onnx and goldens/t5: encoder-decoder with relative positions; the decoder's inputs are the shifted labels."""

from family import Family, make

import torch
from transformers import T5Config, T5ForConditionalGeneration

SIZE = dict(num_layers=2, num_decoder_layers=2, d_model=32, d_kv=8, num_heads=4, d_ff=64, vocab_size=128, relative_attention_num_buckets=8)


class Seq2Seq(T5ForConditionalGeneration):
    def forward(self, input_ids, attention_mask, labels):
        result = super().forward(input_ids=input_ids, attention_mask=attention_mask, labels=labels, use_cache=False)
        return result.loss, result.logits


def build(attention):
    settings = T5Config(dropout_rate=0.0, classifier_dropout=0.0, use_cache=False, decoder_start_token_id=0, pad_token_id=0, **SIZE)
    settings._attn_implementation = attention
    return Seq2Seq(settings)


def pairs(rows, source, target, seed):
    generator = torch.Generator().manual_seed(seed)
    mask = (torch.arange(source) < torch.randint(source // 2, source + 1, (rows, 1), generator=generator)).long()
    ids = torch.randint(1, 128, (rows, source), generator=generator) * mask
    labels = torch.randint(1, 128, (rows, target), generator=generator)
    used = torch.arange(target) < torch.randint(target // 2, target + 1, (rows, 1), generator=generator)
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.where(used, labels, -100)}


if __name__ == "__main__":
    source = {0: "batch", 1: "source"}
    make(Family(
        name="t5", build=build, config=SIZE, seed=151, inputs=pairs(3, 24, 16, 5), others=[pairs(2, 17, 9, 6)],
        dims={"input_ids": source, "attention_mask": source, "labels": {0: "batch", 1: "target"}}, outputs=["loss", "logits"], step=1e-6,
        attention="eager",  # the sdpa one stops on a view of a transposed tensor
        what="in the graph: cross entropy of logits against labels, mean over positions whose label is not -100",
    ))
