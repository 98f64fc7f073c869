"""Makes vit*.onnx and goldens/vit: image classification with a vision transformer."""

from family import Family, make

import torch
from transformers import ViTConfig, ViTForImageClassification

SIZE = dict(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8, num_channels=3)


class Classifier(ViTForImageClassification):
    def forward(self, pixel_values, labels):
        result = super().forward(pixel_values=pixel_values, labels=labels)
        return result.loss, result.logits


def build(attention):
    settings = ViTConfig(
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.1, num_labels=10,
        problem_type="single_label_classification", **SIZE,
    )
    settings._attn_implementation = attention
    model = Classifier(settings)
    model.loss_type = "ForImageClassification"
    with torch.no_grad():  # these start at values that make positions alike
        model.vit.embeddings.cls_token.normal_(std=0.1)
        model.vit.embeddings.position_embeddings.normal_(std=0.1)
    return model


def images(rows, seed):
    generator = torch.Generator().manual_seed(seed)
    return {
        "pixel_values": torch.randn((rows, 3, 32, 32), generator=generator),
        "labels": torch.randint(0, 10, (rows,), generator=generator),
    }


if __name__ == "__main__":
    make(Family(
        name="vit", build=build, config=SIZE | {"num_labels": 10}, seed=131, inputs=images(3, 5), others=[images(2, 6)],
        dims={"pixel_values": {0: "batch"}, "labels": {0: "batch"}}, outputs=["loss", "logits"],
        what="in the graph: cross entropy of logits against labels, mean over the batch",
    ))
