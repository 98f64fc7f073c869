"""Exports one small model with both exporters and writes its goldens: loss and gradients of one batch."""

from dataclasses import dataclass, field
from typing import Callable

from common import (
    MODELS, Double, Golden, check_runtime, compare_precision, export_dynamo, export_torchscript, finite_differences, gradients,
    initializer_names, no_packed_sequences, number, perturb, setup,
)

import torch  # noqa: E402
import transformers  # noqa: E402


@dataclass
class Family:
    """What differs from family to family."""

    name: str
    # A fresh model with the given attention implementation; its forward takes the inputs in order.
    build: Callable
    # The micro-batch that the goldens are for, by input name.
    inputs: dict
    # {input: {axis: dim name}}
    dims: dict
    outputs: list
    # Loss from (model, inputs) where it is not the model's first output.
    loss: Callable | None = None
    what: str = ""
    config: dict = field(default_factory=dict)
    seed: int = 1
    # The dynamo exporter's attention implementation; the TorchScript exporter gets "eager".
    attention: str = "sdpa"
    dynamo: bool = True
    # Further options of the dynamo exporter.
    dynamo_options: dict = field(default_factory=dict)
    training: bool = False
    step: float = 1e-5
    # Inputs of other shapes to compare with ONNX Runtime on.
    others: list = field(default_factory=list)
    note: str = ""
    # Adds to the golden, from (family, golden).
    extra: Callable | None = None


def fresh(family: Family, attention: str = "sdpa"):
    """The family's model, always with the same weights."""
    setup(family.seed)
    model = family.build(attention)
    perturb(model, family.seed + 1)
    return model.train(family.training)


def outputs_of(model, inputs: dict) -> tuple:
    result = model(*inputs.values())
    return result if isinstance(result, tuple) else (result,)


def loss_of(family: Family, model, inputs: dict) -> torch.Tensor:
    return family.loss(model, inputs) if family.loss else outputs_of(model, inputs)[0]


def check(family: Family, path) -> None:
    for inputs in [family.inputs, *family.others]:
        # A new model each time: training-mode batch norm changes its running statistics.
        expected = dict(zip(family.outputs, outputs_of(fresh(family), inputs)))
        shapes = [list(v.shape) for v in inputs.values()]
        print(f"{path.name} {shapes} differs from PyTorch by {check_runtime(path, inputs, expected)}")


def make(family: Family) -> None:
    """Writes models/NAME.onnx, models/NAME_torchscript.onnx and goldens/NAME."""
    parameters = dict(fresh(family).named_parameters())
    renamed = {}
    if family.dynamo:
        path = MODELS / f"{family.name}.onnx"
        model = fresh(family, family.attention)
        proto = export_dynamo(model, family.inputs, family.dims, family.outputs, path, **family.dynamo_options)
        renamed[path.name] = initializer_names(proto, parameters)
        check(family, path)
    path = MODELS / f"{family.name}_torchscript.onnx"
    mode = torch.onnx.TrainingMode.TRAINING if family.training else torch.onnx.TrainingMode.EVAL
    with no_packed_sequences():
        proto = export_torchscript(fresh(family, "eager"), family.inputs, family.dims, family.outputs, path, training=mode)
    renamed[path.name] = initializer_names(proto, parameters)
    check(family, path)
    golden(family, renamed)


def golden(family: Family, renamed: dict) -> None:
    model = fresh(family)
    loss = loss_of(family, model, family.inputs)
    grads = gradients(model, loss)
    double = fresh(family).double()
    inputs = {n: t.double() if t.is_floating_point() else t for n, t in family.inputs.items()}
    with Double():
        exact = loss_of(family, double, inputs)
        agreement = compare_precision(grads, gradients(double, exact))
        assert agreement < 2e-5, agreement
        error = finite_differences(double, lambda: loss_of(family, double, inputs), family.seed + 3, step=family.step)
    print(f"{family.name}: float32 against float64 gradients {agreement:.1e}, finite differences {error:.1e}")

    result = Golden(family.name)
    result.json |= {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "config": family.config,
        "precision": "float32",
        "loss": family.what,
        "inputs": result.table(family.inputs),
        "losses": {"micro_batch": number(loss)},
        "losses_f64": {"micro_batch": number(exact)},
        "renamed_initializers": renamed,
        "gradient_norm": {"micro_batch": number(torch.sqrt(sum((g.double() ** 2).sum() for g in grads.values())))},
        "gradients": {"micro_batch": result.table(grads)},
    }
    if family.training:
        statistics = {n: b for n, b in model.named_buffers() if "running_" in n}
        result.json["statistics_after"] = result.table(statistics)
        result.json["note"] = family.note
    if family.extra:
        family.extra(family, result)
    result.write()
