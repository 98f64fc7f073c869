"""Makes small models by hand, each for one message: batch normalization in inference mode, unsupported operators, statistics
that two nodes share, batch normalization as operator sets before 14 spell it, a dropout in training mode whose mask has a
name, one whose mask is used, and norms that share their vectors."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import ROOT


def save(name, nodes, inputs, outputs, weights, opset=17):
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph(
        nodes, name, [value(*i) for i in inputs], [value(*o) for o in outputs],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, ROOT / "frontend" / "onnx" / name)


def norm(name, x, y, results=(), **attributes):
    operands = [x, f"{name}.weight", f"{name}.bias", f"{name}.running_mean", f"{name}.running_var"]
    return helper.make_node("BatchNormalization", operands, [y, *results], name=f"/{name}", **attributes)


def weights(name, channels):
    random = np.random.default_rng(3)
    return {
        "conv.weight": random.normal(size=(channels, 2, 3, 3)),
        f"{name}.weight": random.uniform(0.5, 1.5, channels),
        f"{name}.bias": random.normal(size=channels),
        f"{name}.running_mean": random.normal(size=channels),
        f"{name}.running_var": random.uniform(0.5, 1.5, channels),
    }


def main():
    conv = helper.make_node("Conv", ["x", "conv.weight"], ["c"], name="/conv", pads=[1, 1, 1, 1])
    pool = helper.make_node("GlobalAveragePool", ["n"], ["y"], name="/pool")
    x, y = ("x", ["batch", 2, 6, 6]), ("y", ["batch", 4, 1, 1])
    save("frozen_batch_norm.onnx", [conv, norm("norm", "c", "n"), pool], [x], [y], weights("norm", 4))
    train = {"momentum": 0.75, "epsilon": 1e-3}
    results = ["norm.mean", "norm.var", "norm.saved_mean", "norm.saved_var"]
    old = norm("norm", "c", "n", results, **train)
    save("batch_norm_opset13.onnx", [conv, old, pool], [x], [y], weights("norm", 4), opset=13)
    first = norm("norm", "c", "m", results[:2], training_mode=1)
    second = norm("norm", "m", "n", ["other.mean", "other.var"], training_mode=1)
    save("shared_batch_norm.onnx", [conv, first, second, pool], [x], [y], weights("norm", 4))
    nodes = [
        helper.make_node("LRN", ["x"], ["a"], name="/local", size=3),
        helper.make_node("MeanVarianceNormalization", ["a"], ["b"], name="/mean", axes=[2, 3]),
        helper.make_node("LRN", ["b"], ["y"], name="/local_1", size=5),
    ]
    save("unsupported.onnx", nodes, [x], [("y", ["batch", 2, 6, 6])], {})
    drop = lambda *results: helper.make_node("Dropout", ["h", "ratio", "on"], list(results), name="/drop")
    on = helper.make_node("Constant", [], ["on"], name="/on", value=numpy_helper.from_array(np.array(True)))
    ratio = helper.make_node("Constant", [], ["ratio"], name="/ratio", value_float=0.5)
    first = helper.make_node("MatMul", ["x", "w"], ["h"], name="/first")
    x, y = ("x", ["batch", 8]), ("y", ["batch", 8])
    w = {"w": np.random.default_rng(4).normal(size=(8, 8))}
    save("dropout_mask.onnx", [on, ratio, first, drop("y", "mask")], [x], [y], w)
    used = [
        helper.make_node("Cast", ["mask"], ["m"], name="/cast", to=TensorProto.FLOAT),
        helper.make_node("Add", ["d", "m"], ["y"], name="/add"),
    ]
    save("dropout_mask_used.onnx", [on, ratio, first, drop("d", "mask"), *used], [x], [y], w)
    norms = [
        helper.make_node("LayerNormalization", [i, "a.weight", "a.bias"], [o], name=f"/{o}") for i, o in ["hb", "bc", "cy"]
    ]
    save("shared_norms.onnx", [first, *norms], [x], [y], w | {"a.weight": np.ones(8), "a.bias": np.zeros(8)})


if __name__ == "__main__":
    main()
