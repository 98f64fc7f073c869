"""Makes resnet*.onnx and goldens/resnet: image classification with batch normalization in training mode."""

import numpy as np
import onnx
import onnxruntime
import torch
from onnxscript import opset18
from transformers import ResNetConfig, ResNetForImageClassification

from common import MODELS, gradients, number
from family import Family, fresh, loss_of, make

# Two equal blocks in the first stage; a block that halves the image and two equal ones in the second.
SIZE = dict(embedding_size=8, hidden_sizes=[8, 16], depths=[2, 3], layer_type="basic", num_channels=3)


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


def batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps):
    """What the dynamo exporter should write for batch normalization in training mode: of itself it writes inference mode."""
    y, mean, var = opset18.BatchNormalization(
        x, weight, bias, running_mean, running_var, epsilon=eps, momentum=1 - momentum, training_mode=1
    )
    return y, mean, var, mean, var


def runtime_statistics(proto, batches):
    """The running statistics after forwards of the batches, one after the other, as ONNX Runtime computes them: those of one
    forward are the initializers of the next."""
    proto = onnx.ModelProto.FromString(proto.SerializeToString())
    results = {}
    for node in proto.graph.node:
        if node.op_type == "BatchNormalization":
            results |= {node.input[3]: node.output[1], node.input[4]: node.output[2]}
    for output in results.values():
        proto.graph.output.append(onnx.helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None))
    for batch in batches:
        session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        found = session.run(list(results.values()), {name: tensor.numpy() for name, tensor in batch.items()})
        found = dict(zip(results, found))
        for tensor in proto.graph.initializer:
            if tensor.name in found:
                tensor.CopyFrom(onnx.numpy_helper.from_array(found[tensor.name], tensor.name))
    return {name: torch.from_numpy(value) for name, value in found.items()}


def statistics(model):
    return {name: buffer.detach().clone() for name, buffer in model.named_buffers() if "running_" in name}


def places(model, batch):
    """How many numbers each batch normalization takes its statistics from, by its name."""
    counts = {}
    hooks = [
        m.register_forward_pre_hook(lambda m, args, name=name: counts.update({name: args[0].numel() // args[0].shape[1]}))
        for name, m in model.named_modules()
        if isinstance(m, torch.nn.BatchNorm2d)
    ]
    model(*batch.values())
    for hook in hooks:
        hook.remove()
    return counts


def extra(family, result):
    """The batch once more as two micro-batches of two images: mean loss, gradients of it, statistics after both. And the
    statistics by ONNX's rule."""
    rows = [{name: tensor[start : start + 2] for name, tensor in family.inputs.items()} for start in (0, 2)]
    model = fresh(family)
    loss = sum(loss_of(family, model, batch) for batch in rows) / 2
    grads = gradients(model, loss)
    result.json["losses"]["two_micro_batches"] = number(loss)
    result.json["gradient_norm"]["two_micro_batches"] = number(torch.sqrt(sum((g.double() ** 2).sum() for g in grads.values())))
    result.json["gradients"]["two_micro_batches"] = result.table(grads)

    # What both micro-batches add to PyTorch's statistics, with variances by ONNX's rule: those are (n - 1) / n of PyTorch's.
    cases = {"micro_batch": [family.inputs], "two_micro_batches": rows}
    added = {name: [] for name in cases}
    for name, batches in cases.items():
        model = fresh(family)
        for batch in batches:
            before, counts = statistics(model), places(model, batch)
            share = {key: (n - 1) / n for key, n in counts.items()}
            added[name].append({
                key: (after - 0.9 * before[key]) * (share[key.rsplit(".", 1)[0]] if key.endswith("var") else 1)
                for key, after in statistics(model).items()
            })
    result.json["onnx_statistics_after"] = {}
    for file in [f"{family.name}.onnx", f"{family.name}_torchscript.onnx"]:
        proto = onnx.load(MODELS / file)
        # The TorchScript exporter runs the model before it writes the statistics, so that files differ in where they start.
        initial = {t.name: torch.from_numpy(onnx.numpy_helper.to_array(t).copy()) for t in proto.graph.initializer}
        by_rule = {name: runtime_statistics(proto, batches) for name, batches in cases.items()}
        for name, found in by_rule.items():
            for key, value in found.items():
                expected = initial[key]
                for step in added[name]:
                    expected = 0.9 * expected + step[key]
                assert np.allclose(value, expected, rtol=1e-5, atol=1e-6), (file, name, key)
        result.json["onnx_statistics_after"][file] = {name: result.table(found) for name, found in by_rule.items()}


if __name__ == "__main__":
    make(Family(
        name="resnet", build=build, config=SIZE | {"num_labels": 10}, seed=141, inputs=images(4, 5), others=[images(3, 6)],
        dims={"pixel_values": {0: "batch"}, "labels": {0: "batch"}}, outputs=["loss", "logits"], training=True, step=1e-6,
        dynamo_options={
            # The optimizer takes the statistics for constants and fuses them into the convolutions.
            "optimize": False,
            "custom_translation_table": {torch.ops.aten._native_batch_norm_legit_functional.default: batch_norm},
        },
        extra=extra,
        what="in the graph: cross entropy of logits against labels, mean over the batch; batch normalization uses the batch's statistics",
        note="statistics_after is PyTorch's: its running_var takes the unbiased variance, n / (n - 1) times the one that ONNX's "
        "BatchNormalization takes; momentum 0.1 in PyTorch is 0.9 in ONNX. onnx_statistics_after is by ONNX's rule, from ONNX Runtime",
    ))
