//! Small ONNX models as seeds: one for each family of operators, written field by field.

use crate::mutate::varint;

/// Element types by their numbers in ONNX.
const FLOAT: u64 = 1;
const INT64: u64 = 7;
const BOOL: u64 = 9;

/// An attribute's value.
enum Attr {
    Int(i64),
    Ints(&'static [i64]),
    Float(f32),
    Text(&'static str),
    Tensor(u64, &'static [u64], Vec<u8>),
    Graph(Vec<u8>),
}

/// Models whose operators together are most of those that are supported.
pub(crate) fn models() -> Vec<Vec<u8>> {
    let x = || input("x", FLOAT, &[2, 3, 4]);
    let ids = || input("ids", INT64, &[2, 3]);
    let w = |name, dims: &[u64]| floats(name, dims);
    let unary = ["Neg", "Exp", "Sqrt", "Sigmoid", "Erf", "Relu", "Softplus", "Gelu", "HardSwish", "Elu", "Softmax"];
    let mut all = vec![
        chain(&unary),
        chain(&["Softmax", "LogSoftmax", "ReduceMean", "Squeeze", "Shape", "Size"]),
        chain(&["Flatten", "Transpose", "Identity", "Not", "IsNaN", "ArgMax", "TopK", "CumSum", "NonZero", "Trilu"]),
    ];
    let mut add = |name: &str, nodes: Vec<Vec<u8>>, inputs: Vec<Vec<u8>>, initializers: Vec<Vec<u8>>| {
        all.push(model(&graph(name, &nodes, &inputs, &["y"], &initializers)));
    };
    add(
        "linear",
        vec![
            node("MatMul", &["x", "w"], &["a"], &[]),
            node("Add", &["a", "b"], &["c"], &[]),
            node("Gemm", &["d", "w2"], &["y"], &[("transB", Attr::Int(1)), ("alpha", Attr::Float(0.5))]),
            node("Reshape", &["c", "shape"], &["d"], &[]),
        ],
        vec![x()],
        vec![w("w", &[4, 5]), w("b", &[5]), w("w2", &[2, 5]), ints("shape", &[-1, 5])],
    );
    add(
        "shapes",
        vec![
            node("Shape", &["x"], &["s"], &[]),
            node("Gather", &["s", "zero"], &["n"], &[("axis", Attr::Int(0))]),
            node("Unsqueeze", &["n", "zero"], &["n1"], &[]),
            node("Concat", &["n1", "minus"], &["t"], &[("axis", Attr::Int(0))]),
            node("Reshape", &["x", "t"], &["r"], &[]),
            node("Slice", &["r", "zero", "one", "zero", "one"], &["q"], &[]),
            node("Expand", &["q", "big"], &["e"], &[]),
            node("Tile", &["e", "twice"], &["y"], &[]),
        ],
        vec![x()],
        vec![
            ints("zero", &[0]),
            ints("one", &[1]),
            ints("minus", &[-1]),
            ints("big", &[4, 12]),
            ints("twice", &[2, 2]),
        ],
    );
    add(
        "made",
        vec![
            node("ConstantOfShape", &["shape"], &["c"], &[("value", Attr::Tensor(FLOAT, &[1], vec![0, 0, 128, 63]))]),
            node("Range", &["zero", "n", "one"], &["r"], &[]),
            node("Cast", &["r"], &["f"], &[("to", Attr::Int(FLOAT as i64))]),
            node("Mul", &["c", "f"], &["m"], &[]),
            node("EyeLike", &["m"], &["i"], &[]),
            node("Where", &["mask", "i", "m"], &["y"], &[]),
            node("Greater", &["m", "i"], &["mask"], &[]),
            node("OneHot", &["r", "n", "values"], &["hot"], &[("axis", Attr::Int(-1))]),
            node("Pad", &["m", "pads"], &["p"], &[("mode", Attr::Text("constant"))]),
        ],
        vec![x()],
        vec![
            ints("shape", &[3, 6]),
            scalar("zero", 0),
            scalar("n", 6),
            scalar("one", 1),
            floats("values", &[2]),
            ints("pads", &[1, 0, 0, 1]),
        ],
    );
    add(
        "network",
        vec![
            node("Gather", &["table", "ids"], &["e"], &[]),
            node(
                "LayerNormalization",
                &["e", "g", "b"],
                &["l"],
                &[("axis", Attr::Int(-1)), ("epsilon", Attr::Float(1e-5))],
            ),
            node("Split", &["l", "sizes"], &["q", "k"], &[("axis", Attr::Int(2))]),
            node("Transpose", &["k"], &["kt"], &[("perm", Attr::Ints(&[0, 2, 1]))]),
            node("MatMul", &["q", "kt"], &["scores"], &[]),
            node("Softmax", &["scores"], &["p"], &[("axis", Attr::Int(-1))]),
            node("Dropout", &["p"], &["d"], &[]),
            node("MatMul", &["d", "q"], &["y"], &[]),
        ],
        vec![ids()],
        vec![w("table", &[7, 8]), w("g", &[8]), w("b", &[8]), ints("sizes", &[4, 4])],
    );
    add(
        "images",
        vec![
            node(
                "Conv",
                &["im", "k"],
                &["c"],
                &[("pads", Attr::Ints(&[1, 1, 1, 1])), ("strides", Attr::Ints(&[2, 2]))],
            ),
            node("BatchNormalization", &["c", "g", "g", "m", "m"], &["n"], &[]),
            node("MaxPool", &["n"], &["p"], &[("kernel_shape", Attr::Ints(&[2, 2]))]),
            node("GlobalAveragePool", &["p"], &["y"], &[]),
        ],
        vec![input("im", FLOAT, &[1, 2, 8, 8])],
        vec![w("k", &[3, 2, 3, 3]), w("g", &[3]), w("m", &[3])],
    );
    let body = graph(
        "body",
        &[
            node("Add", &["carried", "carried"], &["next"], &[]),
            node("Identity", &["goes_on"], &["again"], &[]),
            node("Identity", &["next"], &["scan"], &[]),
        ],
        &[input("trip", INT64, &[]), input("goes_on", BOOL, &[]), input("carried", FLOAT, &[2, 3, 4])],
        &["again", "next", "scan"],
        &[],
    );
    let branch = |name| graph(name, &[node("Neg", &["last"], &["out"], &[])], &[], &["out"], &[]);
    add(
        "control",
        vec![
            node("Loop", &["trips", "", "x"], &["last", "scans"], &[("body", Attr::Graph(body))]),
            node(
                "If",
                &["yes"],
                &["y"],
                &[("then_branch", Attr::Graph(branch("then"))), ("else_branch", Attr::Graph(branch("else")))],
            ),
        ],
        vec![x()],
        vec![scalar("trips", 3), tensor("yes", BOOL, &[], &[1])],
    );
    add(
        "scatter",
        vec![
            node("GatherElements", &["x", "at"], &["g"], &[("axis", Attr::Int(1))]),
            node(
                "ScatterElements",
                &["x", "at", "g"],
                &["s"],
                &[("axis", Attr::Int(1)), ("reduction", Attr::Text("add"))],
            ),
            node("GatherND", &["s", "nd"], &["y"], &[("batch_dims", Attr::Int(0))]),
            node("Einsum", &["x", "x"], &["z"], &[("equation", Attr::Text("bij,bkj->bik"))]),
        ],
        vec![x(), input("at", INT64, &[2, 2, 4])],
        vec![tensor("nd", INT64, &[1, 2], &[0u64, 1].iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>())],
    );
    all
}

/// Models of at most a few hundred bytes that ask for very much.
pub(crate) fn greedy() -> Vec<(&'static str, Vec<u8>)> {
    let huge = 1i64 << 40;
    let wide = 1i64 << 22;
    let of = |nodes: &[Vec<u8>], inputs: &[Vec<u8>], initializers: &[Vec<u8>]| {
        model(&graph("g", nodes, inputs, &["y"], initializers))
    };
    let made = |value: i64| node("Constant", &[], &["n"], &[("value_int", Attr::Int(value))]);
    let list = |values: &'static [i64]| node("Constant", &[], &["s"], &[("value_ints", Attr::Ints(values))]);
    let range = || node("Range", &["z", "n", "o"], &["r"], &[]);
    let bounds = || vec![scalar("z", 0), scalar("o", 1)];
    let x = || input("x", FLOAT, &[2]);
    let repeated = |op: &str| {
        let names: Vec<String> = (0..12).map(|i| format!("t{i}")).collect();
        let mut nodes = vec![made(wide), node("Range", &["z", "n", "o"], &["t0"], &[])];
        nodes.extend(names.windows(2).map(|pair| node(op, &[&pair[0], &pair[0]], &[&pair[1]], &[])));
        nodes.push(node("ReduceSum", &["t11"], &["y"], &[]));
        of(&nodes, &[], &bounds())
    };
    let looped = |trips: i64, body: Vec<u8>| {
        let nodes = [made(trips), node("Loop", &["n", "", "x"], &["y"], &[("body", Attr::Graph(body))])];
        of(&nodes, &[x()], &[])
    };
    let inputs = || [input("i", INT64, &[]), input("c", BOOL, &[]), input("v", FLOAT, &[2])];
    let simple = || graph("b", &[node("Neg", &["v"], &["w"], &[])], &inputs(), &["c", "w"], &[]);
    let nested = graph(
        "b",
        &[made(4096), node("Loop", &["n", "", "v"], &["w"], &[("body", Attr::Graph(simple()))])],
        &inputs(),
        &["c", "w"],
        &[],
    );
    let mut deep = simple();
    for _ in 0..60 {
        deep = graph(
            "b",
            &[node(
                "If",
                &["c"],
                &["w"],
                &[("then_branch", Attr::Graph(deep.clone())), ("else_branch", Attr::Graph(deep))],
            )],
            &[],
            &["w"],
            &[],
        );
        if deep.len() > 1 << 16 {
            break;
        }
    }
    vec![
        ("constant-of-shape", of(&[list(&[1 << 40]), node("ConstantOfShape", &["s"], &["y"], &[])], &[], &[])),
        ("filled-and-shifted", {
            let fill = node("ConstantOfShape", &["s"], &["f"], &[]);
            of(&[list(&[2048, 2048]), fill, node("Trilu", &["f"], &["y"], &[])], &[], &[])
        }),
        ("range", of(&[made(huge), node("Range", &["z", "n", "o"], &["y"], &[])], &[], &bounds())),
        ("range-wide", of(&[made(wide), node("Range", &["z", "n", "o"], &["y"], &[])], &[], &bounds())),
        ("range-chain", repeated("Add")),
        ("range-products", repeated("Mul")),
        ("range-joined", {
            let join = node("Concat", &["r", "r", "r", "r"], &["q"], &[("axis", Attr::Int(0))]);
            of(&[made(wide - 1), range(), join, node("ReduceMax", &["q"], &["y"], &[])], &[], &bounds())
        }),
        ("expand", of(&[list(&[1 << 31, 1 << 31]), node("Expand", &["x", "s"], &["y"], &[])], &[x()], &[])),
        ("expand-known", {
            let sum = node("ReduceSum", &["e"], &["y"], &[]);
            of(&[list(&[1 << 22, 4]), node("Expand", &["o", "s"], &["e"], &[]), sum], &[], &bounds())
        }),
        ("tile", of(&[list(&[1 << 50]), node("Tile", &["x", "s"], &["y"], &[])], &[x()], &[])),
        ("tile-known", {
            let tiled = node("Tile", &["r", "s"], &["y"], &[]);
            of(&[made(1000), range(), list(&[1 << 40]), tiled], &[], &bounds())
        }),
        ("eye", {
            let fill = node("ConstantOfShape", &["s"], &["f"], &[]);
            of(&[list(&[1 << 20, 1 << 20]), fill, node("EyeLike", &["f"], &["y"], &[])], &[], &[])
        }),
        (
            "one-hot",
            of(&[made(huge), node("OneHot", &["o", "n", "v"], &["y"], &[])], &[], &[scalar("o", 1), floats("v", &[2])]),
        ),
        ("one-hot-wide", {
            let hot = node("OneHot", &["r", "m", "v"], &["y"], &[]);
            let numbers = vec![scalar("z", 0), scalar("o", 1), scalar("m", 100_000), floats("v", &[2])];
            of(&[made(100_000), range(), hot], &[], &numbers)
        }),
        ("pad", of(&[list(&[1 << 40, 1 << 40]), node("Pad", &["x", "s"], &["y"], &[])], &[x()], &[])),
        ("split", of(&[node("Split", &["x"], &["y"], &[("num_outputs", Attr::Int(huge))])], &[x()], &[])),
        ("top-k", of(&[list(&[1 << 40]), node("TopK", &["x", "s"], &["y"], &[])], &[x()], &[])),
        ("unsqueeze", of(&[node("Unsqueeze", &["x"], &["y"], &[("axes", Attr::Ints(&[1 << 40]))])], &[x()], &[])),
        ("loop", looped(i64::MAX, simple())),
        ("loop-4096", looped(4096, simple())),
        ("loop-nested", looped(4096, nested)),
        ("branches", model(&deep)),
        (
            "huge-weight",
            of(&[node("Add", &["x", "w"], &["y"], &[])], &[x()], &[tensor("w", FLOAT, &[1 << 40, 1 << 20], &[])]),
        ),
        (
            "huge-table",
            of(
                &[node("Gather", &["w", "x"], &["y"], &[])],
                &[input("x", INT64, &[])],
                &[tensor("w", INT64, &[1 << 40], &[0; 8])],
            ),
        ),
        ("huge-input", of(&[node("Add", &["x", "x"], &["y"], &[])], &[input("x", FLOAT, &[1 << 62, 1 << 62])], &[])),
        ("long-window", {
            let pool = node("MaxPool", &["x"], &["y"], &[("kernel_shape", Attr::Ints(&[1 << 40, 1 << 40]))]);
            of(&[pool], &[input("x", FLOAT, &[1, 1, 8, 8])], &[])
        }),
    ]
}

/// One operator behind the other, all with the default attributes.
fn chain(ops: &[&str]) -> Vec<u8> {
    let names: Vec<String> = (0..=ops.len()).map(|i| format!("t{i}")).collect();
    let nodes: Vec<Vec<u8>> =
        ops.iter().enumerate().map(|(i, op)| node(op, &[&names[i]], &[&names[i + 1]], &[])).collect();
    model(&graph("chain", &nodes, &[input("t0", FLOAT, &[2, 3, 4])], &[&names[ops.len()]], &[]))
}

fn number(field: u64, value: u64, out: &mut Vec<u8>) {
    varint(field << 3, out);
    varint(value, out);
}

fn bytes(field: u64, value: &[u8], out: &mut Vec<u8>) {
    varint(field << 3 | 2, out);
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

fn model(graph: &[u8]) -> Vec<u8> {
    let mut opset = Vec::new();
    number(2, 17, &mut opset);
    let mut out = Vec::new();
    number(1, 8, &mut out);
    bytes(7, graph, &mut out);
    bytes(8, &opset, &mut out);
    out
}

fn graph(name: &str, nodes: &[Vec<u8>], inputs: &[Vec<u8>], outputs: &[&str], initializers: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    nodes.iter().for_each(|node| bytes(1, node, &mut out));
    bytes(2, name.as_bytes(), &mut out);
    initializers.iter().for_each(|tensor| bytes(5, tensor, &mut out));
    inputs.iter().for_each(|input| bytes(11, input, &mut out));
    for name in outputs {
        let mut info = Vec::new();
        bytes(1, name.as_bytes(), &mut info);
        bytes(12, &info, &mut out);
    }
    out
}

fn node(op: &str, inputs: &[&str], outputs: &[&str], attrs: &[(&str, Attr)]) -> Vec<u8> {
    let mut out = Vec::new();
    inputs.iter().for_each(|name| bytes(1, name.as_bytes(), &mut out));
    outputs.iter().for_each(|name| bytes(2, name.as_bytes(), &mut out));
    bytes(4, op.as_bytes(), &mut out);
    for (name, value) in attrs {
        let mut attr = Vec::new();
        bytes(1, name.as_bytes(), &mut attr);
        let kind = match value {
            Attr::Float(value) => {
                varint(2 << 3 | 5, &mut attr);
                attr.extend_from_slice(&value.to_le_bytes());
                1
            }
            Attr::Int(value) => {
                number(3, *value as u64, &mut attr);
                2
            }
            Attr::Text(value) => {
                bytes(4, value.as_bytes(), &mut attr);
                3
            }
            Attr::Tensor(dtype, dims, data) => {
                bytes(5, &tensor("", *dtype, dims, data), &mut attr);
                4
            }
            Attr::Graph(graph) => {
                bytes(6, graph, &mut attr);
                5
            }
            Attr::Ints(values) => {
                values.iter().for_each(|&value| number(8, value as u64, &mut attr));
                7
            }
        };
        number(20, kind, &mut attr);
        bytes(5, &attr, &mut out);
    }
    out
}

/// A tensor with its elements as raw bytes.
fn tensor(name: &str, dtype: u64, dims: &[u64], data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    dims.iter().for_each(|&dim| number(1, dim, &mut out));
    number(2, dtype, &mut out);
    bytes(8, name.as_bytes(), &mut out);
    bytes(9, data, &mut out);
    out
}

fn ints(name: &str, values: &[i64]) -> Vec<u8> {
    tensor(
        name,
        INT64,
        &[values.len() as u64],
        &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>(),
    )
}

fn scalar(name: &str, value: i64) -> Vec<u8> {
    tensor(name, INT64, &[], &value.to_le_bytes())
}

/// Float elements, all of them one half.
fn floats(name: &str, dims: &[u64]) -> Vec<u8> {
    let n: u64 = dims.iter().product();
    tensor(name, FLOAT, dims, &(0..n).flat_map(|_| 0.5f32.to_le_bytes()).collect::<Vec<u8>>())
}

fn input(name: &str, dtype: u64, dims: &[u64]) -> Vec<u8> {
    let mut shape = Vec::new();
    for &dim in dims {
        let mut entry = Vec::new();
        number(1, dim, &mut entry);
        bytes(1, &entry, &mut shape);
    }
    let mut ty = Vec::new();
    number(1, dtype, &mut ty);
    bytes(2, &shape, &mut ty);
    let mut holder = Vec::new();
    bytes(1, &ty, &mut holder);
    let mut out = Vec::new();
    bytes(1, name.as_bytes(), &mut out);
    bytes(2, &holder, &mut out);
    out
}
