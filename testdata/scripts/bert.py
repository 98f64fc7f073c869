"""Makes bert*.onnx (masked language model) and bert_cls*.onnx (sequence classification) and their goldens."""

from family import Family, make

import torch
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

SIZE = dict(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, intermediate_size=64, vocab_size=128, max_position_embeddings=64)
BATCH, SEQ = 3, 24


class MaskedLM(BertForMaskedLM):
    def forward(self, input_ids, attention_mask, labels):
        result = super().forward(input_ids=input_ids, attention_mask=attention_mask, labels=labels)
        return result.loss, result.logits


class Classifier(BertForSequenceClassification):
    def forward(self, input_ids, attention_mask, token_type_ids, labels):
        result = super().forward(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids, labels=labels)
        return result.loss, result.logits


def config(attention, **more):
    settings = BertConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, classifier_dropout=0.0, initializer_range=0.1, **SIZE, **more)
    settings._attn_implementation = attention
    return settings


def batch(rows, seq, seed):
    """Token ids with padded ends, their mask, and labels at about one position in four."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, 128, (rows, seq), generator=generator)
    length = torch.randint(seq // 2, seq + 1, (rows, 1), generator=generator)
    mask = (torch.arange(seq) < length).long()
    labels = torch.where((torch.rand((rows, seq), generator=generator) < 0.25) & (mask == 1), ids, -100)
    return ids * mask, mask, labels, generator


def masked(rows, seq, seed):
    ids, mask, labels, _ = batch(rows, seq, seed)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def classified(rows, seq, seed):
    ids, mask, _, generator = batch(rows, seq, seed)
    segments = (torch.arange(seq) >= seq // 3).long().expand(rows, seq).contiguous()
    labels = torch.randint(0, 3, (rows,), generator=generator)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments, "labels": labels}


if __name__ == "__main__":
    both = {0: "batch", 1: "seq"}
    make(Family(
        name="bert", build=lambda attention: MaskedLM(config(attention)), config=SIZE, seed=101,
        inputs=masked(BATCH, SEQ, 5), others=[masked(2, 17, 6)],
        dims={"input_ids": both, "attention_mask": both, "labels": both}, outputs=["loss", "logits"],
        what="in the graph: cross entropy of logits against labels, mean over positions whose label is not -100",
    ))
    make(Family(
        name="bert_cls", build=lambda attention: Classifier(config(attention, num_labels=3, problem_type="single_label_classification")),
        config=SIZE | {"num_labels": 3}, seed=111,
        inputs=classified(BATCH, SEQ, 7), others=[classified(2, 17, 8)],
        dims={"input_ids": both, "attention_mask": both, "token_type_ids": both, "labels": {0: "batch"}}, outputs=["loss", "logits"],
        what="in the graph: cross entropy of logits against labels, mean over the batch",
    ))
