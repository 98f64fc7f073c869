"""Shared by the scripts that make testdata/models and testdata/goldens."""

import contextlib
import functools
import json
import os
import re
from pathlib import Path

# One thread and deterministic kernels, so that a second run gives the same bytes.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import torch  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "models"
GOLDENS = ROOT / "goldens"


def setup(seed: int) -> None:
    """Seeds torch and turns on deterministic single-threaded execution."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.mkldnn.enabled = False


def perturb(model: torch.nn.Module, seed: int, std: float = 0.05) -> None:
    """Adds noise to every vector parameter (norm weights, biases), which initialization leaves at 0 or 1,
    so that each parameter influences the loss in a way of its own."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() < 2:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * std)


def clean(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drops what depends on the machine that exported (source paths in metadata and doc strings), and the bulky
    class names; the name scopes stay."""
    bulky = ("stack_trace", "fx_node", "class_hierarchy", "namespace")

    def clean_nodes(nodes) -> None:
        for node in nodes:
            node.ClearField("doc_string")
            kept = [p for p in node.metadata_props if not any(word in p.key for word in bulky)]
            del node.metadata_props[:]
            node.metadata_props.extend(kept)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    clean_nodes(attribute.g.node)

    clean_nodes(model.graph.node)
    for function in model.functions:
        clean_nodes(function.node)
    model.ClearField("doc_string")
    model.graph.ClearField("doc_string")
    return model


@contextlib.contextmanager
def weights_not_folded(limit: int = 256):
    """The exporter folds operations on constants of up to 8192 elements, so that a tied weight of a toy model, unlike that of
    a real one, gets a transposed copy. This scales that limit down as the models are. Transposes of weights that are used
    once are folded whatever their size, here and in real models; such a weight has no name left."""
    import onnxscript.optimizer

    kept = onnxscript.optimizer.optimize_ir
    onnxscript.optimizer.optimize_ir = functools.partial(kept, input_size_limit=limit)
    try:
        yield
    finally:
        onnxscript.optimizer.optimize_ir = kept


def export_dynamo(model, args: dict, dims: dict, outputs: list[str], path: Path, **kwargs) -> onnx.ModelProto:
    """Exports through torch.export; `dims` gives for each input its {axis: name}."""
    named: dict[str, torch.export.Dim] = {}
    shapes = {
        name: {axis: named.setdefault(dim, torch.export.Dim(dim, min=1)) for axis, dim in axes.items()}
        for name, axes in dims.items()
    }
    with weights_not_folded():
        program = torch.onnx.export(
            model,
            (),
            kwargs=args,
            input_names=list(args),
            output_names=outputs,
            dynamic_shapes={name: shapes.get(name) for name in args},
            dynamo=True,
            external_data=False,
            **({"optimize": True, "verbose": False} | kwargs),
        )
    proto = clean(program.model_proto)
    onnx.save(proto, path)
    return proto


@contextlib.contextmanager
def no_packed_sequences():
    """The TorchScript exporter has no aten::diff, which transformers only uses to find packed sequences. There are none."""
    from transformers import masking_utils

    kept = masking_utils.find_packed_sequence_indices
    masking_utils.find_packed_sequence_indices = lambda position_ids: None
    try:
        yield
    finally:
        masking_utils.find_packed_sequence_indices = kept


def export_torchscript(model, args: dict, dims: dict, outputs: list[str], path: Path, opset: int = 17, **kwargs) -> onnx.ModelProto:
    """Exports through TorchScript tracing. Constant folding is off: it would replace a tied weight by a
    transposed copy, which is a second parameter."""
    options = {"do_constant_folding": False, "keep_initializers_as_inputs": False} | kwargs
    torch.onnx.export(
        model,
        tuple(args.values()),
        str(path),
        input_names=list(args),
        output_names=outputs,
        dynamic_axes=dims,
        opset_version=opset,
        dynamo=False,
        **options,
    )
    proto = clean(onnx.load(path))
    onnx.save(proto, path)
    return proto


def check_runtime(path: Path, feeds: dict, expected: dict, tolerance: float = 2e-5) -> float:
    """Runs the file in ONNX Runtime and compares its outputs with PyTorch's; returns the largest difference."""
    import onnxruntime

    onnx.checker.check_model(str(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feeds = {name: tensor.numpy() for name, tensor in feeds.items()}
    got = session.run(list(expected), feeds)
    worst = 0.0
    for (name, reference), value in zip(expected.items(), got):
        difference = float(np.abs(reference.detach().numpy() - value).max())
        assert difference < tolerance, f"{path.name}: output {name} differs from PyTorch by {difference}"
        worst = max(worst, difference)
    return worst


def number(value: torch.Tensor) -> float:
    """A scalar tensor as a decimal of 10 digits, which is exact for a float32."""
    return float(f"{float(value.detach()):.10g}")


class Double(torch.overrides.TorchFunctionMode):
    """Turns the conversions to float32 that models have inside into conversions to float64."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        def swap(value):
            return torch.float64 if value is torch.float32 else value

        if function is torch.Tensor.float:
            function = torch.Tensor.double
        return function(*map(swap, args), **{k: swap(v) for k, v in (kwargs or {}).items()})


def finite_differences(model, loss_fn, seed: int, entries: int = 12, step: float = 1e-4) -> float:
    """Compares autograd with central differences, both in float64, on random entries of every parameter;
    returns the largest error relative to the parameter's largest gradient entry. `model` must be float64. A key bias has
    no influence on a softmax, so its gradient is rounding noise and is compared on the scale of the others."""
    generator = torch.Generator().manual_seed(seed)
    model.zero_grad(set_to_none=True)
    loss_fn().backward()
    worst = 0.0
    parameters = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    floor = 1e-3 * max(p.grad.abs().max().item() for _, p in parameters)
    picked = torch.randperm(len(parameters), generator=generator)[:entries].tolist()
    for which in picked:
        name, parameter = parameters[which]
        gradient = parameter.grad.reshape(-1)
        scale = max(gradient.abs().max().item(), floor)
        # the largest entry and a random one
        for index in {int(gradient.abs().argmax()), int(torch.randint(gradient.numel(), (1,), generator=generator))}:
            flat = parameter.data.reshape(-1)
            kept = flat[index].item()
            with torch.no_grad():
                flat[index] = kept + step
                high = loss_fn().item()
                flat[index] = kept - step
                low = loss_fn().item()
                flat[index] = kept
            error = abs((high - low) / (2 * step) - gradient[index].item()) / scale
            assert error < 1e-4, f"{name}[{index}]: autograd differs from finite differences by {error}"
            worst = max(worst, error)
    return worst


def gradients(model, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    """The gradient of every trained parameter, by name; every one must be non-zero."""
    model.zero_grad(set_to_none=True)
    loss.backward()
    result = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None and parameter.grad.abs().max() > 0, f"no gradient for {name}"
            result[name] = parameter.grad.detach().clone().contiguous()
    return result


def compare_precision(single: dict, double: dict) -> float:
    """The largest ||single - double|| / max(||double||, 1e-3 * global norm) over the tensors."""
    total = torch.sqrt(sum((g.double() ** 2).sum() for g in double.values()))
    return max(
        ((single[n].double() - double[n].double()).norm() / torch.maximum(double[n].norm(), 1e-3 * total)).item()
        for n in double
    )


class Golden:
    """A folder with golden.json and the raw little-endian file golden.bin that its tensor table points into."""

    def __init__(self, family: str):
        self.folder = GOLDENS / family
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data = bytearray()
        self.json: dict = {"format": 1, "family": family}

    def tensor(self, tensor: torch.Tensor) -> dict:
        """Appends a tensor and returns its table entry."""
        array = np.ascontiguousarray(tensor.detach().numpy())
        kind = {"float32": "f32", "int64": "i64", "bool": "bool"}[str(array.dtype)]
        self.data += b"\0" * (-len(self.data) % 8)
        entry = {"dtype": kind, "shape": list(array.shape), "offset": len(self.data), "bytes": array.nbytes}
        self.data += array.astype(array.dtype.newbyteorder("<")).tobytes()
        return entry

    def table(self, tensors: dict[str, torch.Tensor]) -> dict:
        """Appends tensors in order and returns name -> entry."""
        return {name: self.tensor(tensor) for name, tensor in tensors.items()}

    def write(self) -> None:
        """Writes both files."""
        (self.folder / "golden.bin").write_bytes(bytes(self.data))
        text = json.dumps(self.json, indent=1)
        # Keep short lists on one line: shapes and losses are easier to read so.
        text = re.sub(r"\[\s+((?:-?[\d.eE+-]+,?\s+)+)\]", lambda m: "[" + " ".join(m.group(1).split()) + "]", text)
        text = re.sub(r"\{\s+(\"dtype\"[^{}]*?)\s+\}", lambda m: "{" + " ".join(m.group(1).split()) + "}", text)
        (self.folder / "golden.json").write_text(text + "\n")
        print(f"{self.folder.name}: golden.bin {len(self.data)} bytes, golden.json {len(text)} bytes")


def initializer_names(proto: onnx.ModelProto, parameters: dict[str, torch.Tensor]) -> dict[str, dict]:
    """Finds the initializer that holds each parameter, by value; it must be exactly one. Returns parameter -> initializer
    where the names differ; "NAME^T" is a transposed one."""
    tensors = {t.name: onnx.numpy_helper.to_array(t) for t in proto.graph.initializer}
    mapping = {}
    for name, parameter in parameters.items():
        value = parameter.detach().numpy()
        holders = []
        for other, array in tensors.items():
            if array.shape == value.shape and np.array_equal(array, value):
                holders.append((other, False))
            elif value.ndim == 2 and array.shape == value.T.shape and np.array_equal(array, value.T):
                holders.append((other, True))
        assert len(holders) == 1, f"{name} is held by {holders}"
        other, transposed = holders[0]
        if other != name or transposed:
            mapping[name] = other + ("^T" if transposed else "")
    return mapping
