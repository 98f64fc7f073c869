"""Makes resnet*.onnx and goldens/resnet: image classification with batch normalization in training mode."""

from family import Family, make

import torch
from transformers import ResNetConfig, ResNetForImageClassification

SIZE = dict(embedding_size=8, hidden_sizes=[8, 16, 24], depths=[1, 2, 1], layer_type="basic", num_channels=3)


class Classifier(ResNetForImageClassification):
    def forward(self, pixel_values, labels):
        result = super().forward(pixel_values=pixel_values, labels=labels)
        return result.loss, result.logits


def build(attention):
    model = Classifier(ResNetConfig(num_labels=10, problem_type="single_label_classification", **SIZE))
    model.loss_type = "ForImageClassification"
    return model


def images(rows, seed):
    generator = torch.Generator().manual_seed(seed)
    return {
        "pixel_values": torch.randn((rows, 3, 32, 32), generator=generator),
        "labels": torch.randint(0, 10, (rows,), generator=generator),
    }


if __name__ == "__main__":
    make(Family(
        name="resnet", build=build, config=SIZE | {"num_labels": 10}, seed=141, inputs=images(4, 5), others=[images(3, 6)],
        dims={"pixel_values": {0: "batch"}, "labels": {0: "batch"}}, outputs=["loss", "logits"], training=True, step=1e-6,
        dynamo=False,  # it writes training-mode batch normalization as inference mode, fused into the convolution
        what="in the graph: cross entropy of logits against labels, mean over the batch; batch normalization uses the batch's statistics",
        note="statistics_after is PyTorch's: its running_var takes the unbiased variance, n / (n - 1) times the one that ONNX's "
        "BatchNormalization takes; momentum 0.1 in PyTorch is 0.9 in ONNX",
    ))
