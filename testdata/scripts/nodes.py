"""Makes frontend/onnx/nodes.json: ONNX's own test cases of single nodes, from the package `onnx` (Apache License 2.0), as far as
they are small. Every case has its model, the tensors of its inputs and those of its outputs."""

import json
import re

import numpy as np
from onnx import helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

from common import ROOT

FAMILIES = (
    r"test_(basic_)?(conv(?!integer)|maxpool|averagepool|batchnorm|globalaveragepool|globalmaxpool|depthtospace|spacetodepth|"
    r"resize_upsample_(scales|sizes)_nearest(_ceil_half_pixel|_floor_align_corners|_round_prefer_ceil_asymmetric)?$)"
)
# Numbers of a case, inputs and outputs together.
MOST = 300


def tensor(array):
    array = np.asarray(array)
    flat = array.flatten().tolist()
    if array.dtype == np.float32:
        # The shortest decimal that reads back to the same float.
        flat = [float(str(np.float32(v))) for v in flat]
        flat = [int(v) if v == int(v) else v for v in flat]
    return {"dtype": str(array.dtype), "shape": list(array.shape), "values": flat}


def lift(graph, inputs):
    """Makes constants of all inputs but the first, as exporters write scales and sizes."""
    for value, given in list(zip(graph.input, inputs))[1:]:
        tensor = numpy_helper.from_array(np.asarray(given))
        graph.node.insert(0, helper.make_node("Constant", [], [value.name], value=tensor))
        graph.input.remove(value)
    return []


def main():
    cases = []
    for case in collect_testcases(None):
        if not re.match(FAMILIES, case.name) or case.model is None:
            continue
        (inputs, outputs), *_ = case.data_sets
        if "resize" in case.name:
            inputs = inputs[:1] + lift(case.model.graph, inputs)
        if sum(np.asarray(t).size for t in [*inputs, *outputs]) > MOST:
            continue
        graph = case.model.graph
        cases.append({
            "name": case.name,
            "model": case.model.SerializeToString().hex(),
            "inputs": {i.name: tensor(t) for i, t in zip(graph.input, inputs)},
            "outputs": {o.name: tensor(t) for o, t in zip(graph.output, outputs)},
        })
    lines = ",\n".join(json.dumps(case) for case in sorted(cases, key=lambda case: case["name"]))
    (ROOT / "frontend" / "onnx" / "nodes.json").write_text(f"[\n{lines}\n]\n")
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
