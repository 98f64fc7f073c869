"""Makes goldens/conventions: values and gradients of operators where they are a convention (ties, kinks, zeros, infinities,
rows that see nothing), as PyTorch computes them in double precision. The format is that of goldens/windows; operands with a
`dtype` are not trained."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import GOLDENS, ROOT, setup

import torch
import torch.nn.functional as F

inf, nan = float("inf"), float("nan")


def entry(tensor):
    kinds = {torch.int64: "i64", torch.bool: "bool"}
    texts = {inf: "inf", -inf: "-inf"}
    flat = [("nan" if v != v else texts.get(v, v)) for v in tensor.detach().double().flatten().tolist()]
    out = {"shape": list(tensor.shape), "values": flat}
    return out | ({"dtype": kinds[tensor.dtype]} if tensor.dtype in kinds else {})


def t(values):
    return torch.tensor(values, dtype=torch.float64)


def case(name, op, attrs, operands, function, weights=None):
    operands = [x.clone().requires_grad_() if x.is_floating_point() else x for x in operands]
    result = function(*operands)
    trained = [x for x in operands if x.is_floating_point()]
    weights = torch.ones_like(result) if weights is None else weights
    grads = torch.autograd.grad((result * weights).sum(), trained, allow_unused=True, materialize_grads=True)
    grads = iter(grads)
    return {
        "name": name,
        "operator": {"op": op, "attrs": attrs},
        "operands": [entry(x) for x in operands],
        "results": [entry(result)],
        "weights": entry(weights),
        "gradients": [entry(next(grads)) if x.is_floating_point() else None for x in operands],
    }


def unary():
    edges = t([-0.0, 0.0, -1.5, 2.0])
    far = t([-40.0, -20.5, 0.0, 20.5, 40.0])
    yield case("zeros", "abs", {}, [edges], torch.abs)
    yield case("zeros", "sign", {}, [edges], torch.sign)
    yield case("zeros", "relu", {}, [edges], torch.relu)
    yield case("zero", "sqrt", {}, [t([0.0, 4.0])], torch.sqrt)
    yield case("zero", "rsqrt", {}, [t([0.0, 4.0])], torch.rsqrt)
    yield case("zero", "reciprocal", {}, [t([0.0, 4.0])], torch.reciprocal)
    yield case("zero", "log", {}, [t([0.0, 4.0])], torch.log)
    yield case("overflow", "exp", {}, [t([-800.0, 800.0])], torch.exp)
    yield case("far", "tanh", {}, [far], torch.tanh)
    yield case("far", "sigmoid", {}, [far], torch.sigmoid)
    yield case("far", "erf", {}, [far], torch.erf)
    yield case("far", "silu", {}, [far], F.silu)
    # PyTorch's softplus is the identity above 20, which is so to the last bit in single precision only.
    yield case("near", "softplus", {}, [t([-40.0, -1.0, 0.0, 1.0, 19.0])], F.softplus)
    gelu = t([-10.0, -3.0, -0.5, 0.0, 0.5, 3.0, 10.0])
    yield case("values", "gelu", {"form": "erf"}, [gelu], F.gelu)
    yield case("values", "gelu", {"form": "tanh"}, [gelu], lambda x: F.gelu(x, approximate="tanh"))
    yield case("values", "gelu", {"form": "quick"}, [gelu], lambda x: x * torch.sigmoid(1.702 * x))
    halves = t([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.3])
    yield case("halves", "round", {}, [halves], torch.round)
    yield case("whole", "floor", {}, [t([-1.0, 0.0, 1.5])], torch.floor)
    yield case("whole", "ceil", {}, [t([-1.0, 0.0, 1.5])], torch.ceil)


def binary():
    a, b = t([1.0, 2.0, 2.0, -0.0]), t([2.0, 2.0, 1.0, 0.0])
    yield case("ties", "max", {}, [a, b], torch.maximum)
    yield case("ties", "min", {}, [a, b], torch.minimum)
    yield case("zero", "div", {}, [t([1.0, 0.5]), t([0.0, 2.0])], torch.div)
    yield case("zeros and negative bases", "pow", {}, [t([0.0, 0.0, 0.0, -2.0, 3.0]), t([0.0, 2.0, 0.5, 3.0, 0.0])], torch.pow)
    yield case("signs", "mod", {}, [t([5.5, -5.5, 5.5, -5.5]), t([2.0, 2.0, -2.0, -2.0])], torch.remainder)
    condition = torch.tensor([True, False, True])
    yield case("what is not chosen", "select", {}, [condition, t([1.0, inf, 3.0]), t([inf, 2.0, inf])], torch.where)


def reductions():
    ties = t([[1.0, 5.0, 5.0, 0.0], [-2.0, -2.0, -2.0, -2.0]])
    reduce = lambda kind: {"kind": kind, "axes": [1], "keep": False}
    yield case("ties", "reduce", reduce("max"), [ties], lambda x: torch.amax(x, 1))
    yield case("ties", "reduce", reduce("min"), [ties], lambda x: torch.amin(x, 1))
    zeros = t([[2.0, 0.0, 3.0], [0.0, 0.0, 3.0], [2.0, 4.0, 3.0]])
    yield case("zeros", "reduce", reduce("prod"), [zeros], lambda x: torch.prod(x, 1))
    yield case("values", "cumsum", {"axis": 1, "exclusive": False, "reverse": False}, [ties], lambda x: torch.cumsum(x, 1), ties)
    yield case("values", "topk", {"k": 2}, [t([[1.0, 4.0, -inf, 3.0], [0.5, -1.0, -2.0, inf]])], lambda x: torch.topk(x, 2)[0])


def norms():
    x = t([[0.5, 0.5, 0.5, 0.5], [0.0, 0.0, 0.0, 0.0], [1.0, -2.0, 0.5, 3.0]])
    w, b, dy = t([1.0, -2.0, 0.5, 3.0]), t([0.1, 0.2, 0.3, 0.4]), t([[1.0, 2.0, -1.0, 0.5]] * 3)
    yield case("no variance", "layer_norm", {"eps": 1e-5}, [x, w, b], lambda x, w, b: F.layer_norm(x, (4,), w, b, 1e-5), dy)
    yield case("zeros", "rms_norm", {"eps": 1e-5}, [x, w], lambda x, w: F.rms_norm(x, (4,), w, 1e-5), dy)
    hidden = t([[1.0, -inf, 2.0], [-inf, -inf, 0.0], [800.0, 0.0, -800.0]])
    dy = t([[1.0, 2.0, -1.0]] * 3)
    yield case("hidden", "softmax", {}, [hidden], lambda x: torch.softmax(x, 1), dy)
    yield case("hidden", "log_softmax", {}, [hidden], lambda x: torch.log_softmax(x, 1), t([[1.0, 0.0, -1.0], [0.0, 0.0, 1.0], [1.0, 2.0, -1.0]]))


def attention():
    torch.manual_seed(7)
    draw = lambda *shape: torch.randn(*shape, dtype=torch.float64).mul(8).round().div(8)
    q, k, v = draw(1, 2, 3, 2), draw(1, 1, 4, 2), draw(1, 1, 4, 3)
    run = lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m, scale=0.5, enable_gqa=True)
    attrs = {"scale": 0.5, "causal": False}
    # The second query sees nothing: its result is 0, and it gives no gradient.
    mask = t([[0.0, 0.5, -inf, 0.0], [-inf] * 4, [-1.0, 0.0, 0.0, -inf]])
    weights = draw(1, 2, 3, 3)
    yield case("a row that sees nothing", "attention", attrs, [q, k, v, mask], run, weights)
    bias = draw(2, 1, 4)
    yield case("a bias of heads", "attention", attrs, [q, k, v, bias], run, weights)
    square = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5)
    yield case("causal", "attention", {"scale": 0.5, "causal": True}, [draw(1, 2, 4, 2) for _ in range(3)], square, draw(1, 2, 4, 2))


def lookups():
    twice = torch.tensor([2, 0, 2])
    table = t([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    dy = t([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    yield case("twice", "gather", {"axis": 0}, [table, twice], lambda x, i: F.embedding(i, x), dy)
    at = torch.tensor([[0, 0], [1, 0], [0, 1]])
    yield case("twice", "gather_elements", {"axis": 1}, [table, at], lambda x, i: torch.gather(x, 1, i), dy)
    labels = torch.tensor([0, -100, 2])
    logits = t([[1.0, 2.0, -inf], [1.0, 2.0, 3.0], [800.0, -800.0, 0.0]])
    loss = lambda x, i: F.cross_entropy(x, i, reduction="sum")
    yield case("ignored rows, hidden classes", "cross_entropy", {"ignore_index": -100}, [logits, labels], loss)


def clip():
    """ONNX's Clip, which is PyTorch's clamp: its gradient at the bounds."""
    w = t([-2.0, -1.0, 0.5, 1.0, 2.0]).float().requires_grad_()
    gradient, = torch.autograd.grad(torch.clamp(w, -1.0, 1.0).sum(), [w])
    node = helper.make_node("Clip", ["m.w", "low", "high"], ["y"], name="/clip")
    numbers = {"m.w": w.detach().numpy(), "low": np.float32(-1), "high": np.float32(1)}
    graph = helper.make_graph(
        [node], "clip", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [5])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in numbers.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, ROOT / "frontend" / "onnx" / "clip.onnx")
    return gradient.tolist()


def main():
    setup(0)
    cases = [c for part in (unary, binary, reductions, norms, attention, lookups) for c in part()]
    folder = GOLDENS / "conventions"
    folder.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(c, allow_nan=False) for c in cases)
    (folder / "golden.json").write_text(f'{{"torch": "{torch.__version__}", "clip": {clip()}, "cases": [\n{lines}\n]}}\n')
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
