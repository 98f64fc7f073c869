"""Makes goldens/windows: convolution, pooling and batch normalization as PyTorch computes them, with gradients, in double
precision. Every case has the operator as the plan spells it, its operands, its results and the gradients of the sum of the
first result times `weights`."""

import json

from common import GOLDENS, setup

import torch
import torch.nn.functional as F


def numbers(*shape, low=-2.0, high=2.0):
    """Numbers that are short decimals, so that the file is small and exact."""
    return (torch.rand(shape, dtype=torch.float64) * (high - low) + low).mul(8).round().div(8)


def entry(tensor):
    flat = [("nan" if v != v else v) for v in tensor.detach().double().flatten().tolist()]
    return {"shape": list(tensor.shape), "values": flat}


def case(name, op, attrs, operands, function):
    operands = [t.clone().requires_grad_() for t in operands]
    results = function(*operands)
    results = results if isinstance(results, tuple) else (results,)
    weights = numbers(*results[0].shape)
    grads = torch.autograd.grad((results[0] * weights).sum(), operands)
    return {
        "name": name,
        "operator": {"op": op, "attrs": attrs},
        "operands": [entry(t) for t in operands],
        "results": [entry(t) for t in results],
        "weights": entry(weights),
        "gradients": [entry(t) for t in grads],
    }


def conv(name, x, w, stride, padding, dilation, groups):
    function = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[len(stride)]
    attrs = {"strides": stride, "low": padding, "high": padding, "dilations": dilation, "groups": groups}
    run = lambda x, w: function(x, w, None, stride, padding, dilation, groups)
    return case(name, "conv", attrs, [numbers(*x), numbers(*w)], run)


def max_pool(name, x, kernel, stride, padding, dilation, ceil):
    function = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}[len(kernel)]
    attrs = {"kernel": kernel, "strides": stride, "low": padding, "high": padding, "dilations": dilation, "ceil": ceil}
    return case(name, "max_pool", attrs, [x], lambda x: function(x, kernel, stride, padding, dilation, ceil))


def average_pool(name, x, kernel, stride, padding, ceil, pads):
    function = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}[len(kernel)]
    attrs = {"kernel": kernel, "strides": stride, "low": padding, "high": padding, "dilations": [1] * len(kernel)}
    attrs |= {"ceil": ceil, "pads": pads}
    return case(name, "average_pool", attrs, [x], lambda x: function(x, kernel, stride, padding, ceil, pads))


def batch_norm(name, x, eps):
    def run(x, w, b):
        return F.batch_norm(x, None, None, w, b, training=True, eps=eps)

    found = case(name, "batch_norm", {"eps": eps}, [x, numbers(x.shape[1]), numbers(x.shape[1])], run)
    axes = [0, *range(2, x.dim())]
    found["results"] += [entry(x.mean(axes)), entry(x.var(axes, correction=0))]
    return found


def main():
    setup(77)
    ties = torch.randint(0, 3, (1, 2, 5, 6)).double()
    with_nan = numbers(1, 1, 4, 4)
    with_nan[0, 0, 1, 1] = float("nan")
    flat = numbers(3, 3, 2, 2)
    flat[:, 1] = 0.75
    flat[:, 2] = 0
    cases = [
        conv("plain", (2, 2, 4, 5), (3, 2, 3, 2), [1, 1], [0, 0], [1, 1], 1),
        conv("stride and padding", (2, 2, 6, 5), (3, 2, 3, 3), [2, 3], [1, 2], [1, 1], 1),
        conv("dilation", (1, 2, 6, 7), (2, 2, 2, 3), [1, 2], [1, 0], [3, 2], 1),
        conv("groups", (2, 4, 4, 4), (6, 2, 3, 3), [1, 1], [1, 1], [1, 1], 2),
        conv("depthwise", (1, 3, 4, 4), (3, 1, 2, 2), [2, 2], [0, 0], [1, 1], 3),
        conv("pointwise", (2, 3, 2, 3), (2, 3, 1, 1), [1, 1], [0, 0], [1, 1], 1),
        conv("pointwise with a stride", (1, 3, 5, 4), (2, 3, 1, 1), [2, 2], [0, 0], [1, 1], 1),
        conv("one axis", (2, 2, 7), (3, 2, 3), [2], [1], [1], 1),
        conv("three axes", (1, 2, 3, 3, 4), (2, 2, 2, 2, 3), [1, 2, 1], [1, 0, 1], [1, 1, 1], 1),
        max_pool("plain", numbers(2, 2, 4, 6), [2, 3], [2, 3], [0, 0], [1, 1], False),
        max_pool("overlapping, ties", ties, [3, 3], [1, 2], [1, 1], [1, 1], False),
        max_pool("dilation", numbers(1, 2, 6, 6), [2, 2], [1, 1], [0, 0], [2, 3], False),
        max_pool("ceil", numbers(1, 2, 5, 6), [2, 3], [2, 2], [1, 1], [1, 1], True),
        max_pool("nan", with_nan, [2, 2], [1, 1], [0, 0], [1, 1], False),
        max_pool("infinite", torch.full((1, 1, 2, 4), float("-inf"), dtype=torch.float64), [2, 2], [2, 2], [0, 0], [1, 1], False),
        max_pool("one axis", numbers(2, 2, 6), [3], [2], [1], [1], True),
        average_pool("plain", numbers(2, 2, 4, 6), [2, 3], [2, 3], [0, 0], False, True),
        average_pool("counting padding", numbers(1, 2, 5, 6), [3, 3], [2, 2], [1, 1], False, True),
        average_pool("not counting padding", numbers(1, 2, 5, 6), [3, 3], [2, 2], [1, 1], False, False),
        average_pool("ceil, counting padding", numbers(1, 1, 6, 8), [3, 2], [2, 3], [1, 1], True, True),
        average_pool("ceil, not counting padding", numbers(1, 1, 6, 8), [3, 2], [2, 3], [1, 1], True, False),
        average_pool("one axis", numbers(2, 2, 7), [3], [2], [1], True, True),
        average_pool("three axes", numbers(1, 1, 3, 4, 4), [2, 2, 3], [1, 2, 2], [1, 0, 1], False, True),
        batch_norm("two axes", numbers(3, 2, 2, 4), 1e-5),
        batch_norm("no axes", numbers(6, 3), 1e-3),
        batch_norm("channels without variance", flat, 1e-5),
    ]
    folder = GOLDENS / "windows"
    folder.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(c) for c in cases)
    (folder / "golden.json").write_text(f'{{"torch": "{torch.__version__}", "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
