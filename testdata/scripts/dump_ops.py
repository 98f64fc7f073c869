"""Prints the nodes, inputs, outputs and initializers of ONNX files in a readable form.

usage: python dump_ops.py FILE.onnx...
"""

import collections
import sys

import onnx

TYPES = onnx.TensorProto.DataType


def shape_of(value) -> str:
    kind = value.type.tensor_type
    if not kind.HasField("shape"):
        return f"{TYPES.Name(kind.elem_type).lower()}?"
    dims = [d.dim_param or (str(d.dim_value) if d.HasField("dim_value") else "?") for d in kind.shape.dim]
    return f"{TYPES.Name(kind.elem_type).lower()}[{', '.join(dims)}]"


def constant(tensor) -> str:
    text = f"{TYPES.Name(tensor.data_type).lower()}{list(tensor.dims)}"
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return text + " external " + str({e.key: e.value for e in tensor.external_data})
    array = onnx.numpy_helper.to_array(tensor)
    return text + (f" = {array.tolist()}" if array.size <= 8 else "")


def attribute(a) -> str:
    if a.ref_attr_name:
        return f"{a.name}=@{a.ref_attr_name}"
    if a.type == onnx.AttributeProto.TENSOR:
        return f"{a.name}={constant(a.t)}"
    if a.type == onnx.AttributeProto.GRAPH:
        return f"{a.name}=<graph of {len(a.g.node)} nodes>"
    return f"{a.name}={onnx.helper.get_attribute_value(a)}"


def nodes(items, types, indent="  ") -> None:
    for node in items:
        domain = f"{node.domain}::" if node.domain else ""
        attributes = ", ".join(attribute(a) for a in node.attribute)
        outputs = ", ".join(f"{o}: {types[o]}" if o in types else o for o in node.output)
        print(f"{indent}{node.name}: {domain}{node.op_type}({', '.join(node.input)}){' {' + attributes + '}' if attributes else ''} -> {outputs}")
        for a in node.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                nodes(a.g.node, types, indent + "    ")


for path in sys.argv[1:]:
    model = onnx.load(path, load_external_data=False)
    graph = model.graph
    print(f"==== {path.rsplit('/', 1)[-1]}")
    print(f"ir_version {model.ir_version}, producer {model.producer_name} {model.producer_version}, opsets {[(o.domain, o.version) for o in model.opset_import]}")
    print("model metadata", {p.key: p.value[:200] for p in model.metadata_props})
    print("op counts:", dict(sorted(collections.Counter((n.domain + "::" if n.domain else "") + n.op_type for n in graph.node).items())))
    print("inputs: ", ", ".join(f"{v.name}: {shape_of(v)}" for v in graph.input))
    print("outputs:", ", ".join(f"{v.name}: {shape_of(v)}" for v in graph.output))
    print(f"initializers ({len(graph.initializer)}):")
    for tensor in graph.initializer:
        print("  ", tensor.name, constant(tensor))
    print(f"functions: {[(f.domain, f.name) for f in model.functions]}")
    print(f"nodes ({len(graph.node)}), value_info for {len(graph.value_info)}:")
    nodes(graph.node, {v.name: shape_of(v) for v in graph.value_info})
    for node in graph.node[:3]:
        print("node metadata sample", node.name, {p.key: p.value[:300] for p in node.metadata_props})
    print()
