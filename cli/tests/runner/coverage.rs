//! What there is for each operator, found out by trying it on the graph of `testdata/ops/every-op.ir`.

use crate::{elementwise, structured};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use trainc_backend::{Context, Tensor, interpret};
use trainc_ir::id::Id;
use trainc_ir::op::{ReduceKind, Reduction};
use trainc_ir::text::{parse, print};
use trainc_ir::{Def, Graph, GraphBuilder, InputRole, Node, Op, OutputRole, ValueId, verify};
use trainc_passes::transform::{Step, Trainable, differentiate, has_gradient};

/// The head of the file that lists the operators.
const HEAD: &str = "\
# Operators

Made by `cargo bless`; a test keeps it up to date. What each operator means is written where it is declared, in `ir/src/op/`.
Each column is found out, not claimed, on the sample of the operator in `testdata/ops/every-op.ir`:

- **type rule**: the verifier accepts the sample;
- **flops**, **bytes**: the counts of the sample (`-`: none; a reshape moves no bytes);
- **gradient**: `da(b, y)` says that operand `a` has a gradient, made from the incoming one and the values `b` and `y` that are
  kept for it; operands are `a`, `b`, `c`, .., results `y`, `y1`, ..; `zero`: flat everywhere; `-`: no gradient passes;
- **host kernel**: the host device runs the sample;
- **text**: its text reads back to the same graph;
- **differences**: gradients are held to central differences in double precision (`cli/tests/gradients`);
- **PyTorch**: values and gradients held to PyTorch's where they are conventions (ties, kinks, zeros, rows that see nothing):
  the number of cases in `testdata/goldens/conventions` and `testdata/goldens/windows`;
- **sharding rules**: in how many ways ranks can share the sample, each running the operator on its parts; a test holds them to
  the whole operator;
- **CUDA lowering**: there is none yet.

";

const COLUMNS: [&str; 12] = [
    "family",
    "operator",
    "type rule",
    "flops",
    "bytes",
    "gradient",
    "host kernel",
    "text",
    "differences",
    "PyTorch",
    "sharding rules",
    "CUDA lowering",
];

/// Goldens of single operators that PyTorch made.
const GOLDENS: [&str; 2] = [
    include_str!("../../../testdata/goldens/conventions/golden.json"),
    include_str!("../../../testdata/goldens/windows/golden.json"),
];

/// The whole of `docs/ops.md`.
///
/// # Errors
/// The sample does not have one node of each operator, or what is said of an operator's gradient is not so.
pub(crate) fn table(sample: &str) -> Result<String, String> {
    let graph = parse("every-op.ir", sample).map_err(|errors| format!("{errors:#?}"))?;
    let mut nodes: BTreeMap<&str, &Node> = BTreeMap::new();
    for node in graph.nodes.values() {
        if nodes.insert(node.op.spelling(), node).is_some() {
            return Err(format!("`{}` stands in the sample twice", node.op.spelling()));
        }
    }
    let (differences, pytorch) = (differences(), pytorch());
    let mut out = HEAD.to_owned();
    let mut rows = vec![COLUMNS.map(str::to_owned), ["---"; 12].map(str::to_owned)];
    for (family, spelling) in Op::spellings() {
        let node = nodes.get(spelling).ok_or_else(|| format!("the sample has no `{spelling}`"))?;
        rows.push(row(&graph, node, family, (&differences, &pytorch))?);
    }
    for row in rows {
        writeln!(out, "| {} |", row.join(" | ")).expect("writing to a string does not fail");
    }
    Ok(out)
}

/// The operators of the cases that are held to central differences.
fn differences() -> BTreeSet<&'static str> {
    [elementwise::cases(), structured::cases()].concat().iter().flat_map(crate::finite::Case::spellings).collect()
}

/// How many of PyTorch's cases there are for each operator.
fn pytorch() -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for golden in GOLDENS {
        let text = golden.replace("-Infinity", "\"-inf\"");
        let golden: serde_json::Value = serde_json::from_str(&text).expect("the golden is JSON");
        for case in golden["cases"].as_array().expect("a list of cases") {
            let name = case["operator"]["op"].as_str().expect("an operator");
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    counts
}

fn row(
    graph: &Graph,
    node: &Node,
    family: &str,
    (differences, pytorch): (&BTreeSet<&str>, &BTreeMap<String, usize>),
) -> Result<[String; 12], String> {
    let yes = |yes: bool| if yes { "yes" } else { "-" }.to_owned();
    let number = |n: u64| if n == 0 { "-".to_owned() } else { n.to_string() };
    let spelling = node.op.spelling();
    let alone = alone(graph, node, None);
    let types = (graph.types(&node.inputs), graph.types(&node.outputs));
    let text = print(&alone);
    let gradient = gradient(graph, node);
    if has_gradient(spelling) != gradient.is_some() {
        return Err(format!("`has_gradient` is wrong about `{spelling}`, whose gradient is {gradient:?}"));
    }
    if gradient.is_some() && !differences.contains(spelling) {
        return Err(format!("no case of central differences has `{spelling}`"));
    }
    Ok([
        family.to_lowercase(),
        format!("`{spelling}`"),
        yes(verify(alone.clone()).is_ok()),
        number(node.op.flops(&types.0, &types.1)),
        number(node.op.bytes(&types.0, &types.1)),
        gradient.clone().unwrap_or_else(|| "-".to_owned()),
        yes(runs(&alone)),
        yes(parse("alone.ir", &text).is_ok_and(|back| *back == alone)),
        yes(gradient.is_some()),
        number(pytorch.get(spelling).map_or(0, |&n| n as u64)),
        number(node.op.shard_rules(&types.0, &types.1).len() as u64),
        "-".to_owned(),
    ])
}

/// A graph of this node only; one operand may be trained, and the sum of its first float result is the loss then.
fn alone(graph: &Graph, node: &Node, trained: Option<usize>) -> Graph {
    let mut b = GraphBuilder::new(node.op.spelling());
    let role = |i: usize| if trained == Some(i) { InputRole::Parameter } else { InputRole::Data };
    let inputs: Vec<_> = node
        .inputs
        .iter()
        .enumerate()
        .map(|(i, &value)| b.input(format!("x{i}"), role(i), graph.ty(value).clone()))
        .collect();
    let results = b.add(node.op.clone(), &inputs).expect("the sample is verified");
    if trained.is_some() {
        let first = results.iter().copied().find(|&v| b.ty(v).dtype.is_float()).expect("it has a float result");
        let axes = (0..b.ty(first).rank() as u64).collect();
        let sum = Reduction::Reduce { kind: ReduceKind::Sum, axes, keep: false };
        let sum = b.one(sum, &[first]).expect("all axes");
        b.output("loss_sum", OutputRole::LossSum, sum);
        return b.finish();
    }
    for (i, result) in results.into_iter().enumerate() {
        b.output(format!("y{i}"), OutputRole::Prediction, result);
    }
    b.finish()
}

/// Which operands have a gradient and what it is made from; `None` where no gradient passes.
fn gradient(graph: &Graph, node: &Node) -> Option<String> {
    let float = |v: &ValueId| graph.ty(*v).dtype.is_float();
    if !node.outputs.iter().any(float) {
        return None;
    }
    let mut passes = false;
    let mut gradients = Vec::new();
    for (i, _) in node.inputs.iter().enumerate().filter(|(_, v)| float(v)) {
        let Ok(step) = differentiate(alone(graph, node, Some(i)), &Trainable::all(), &mut Vec::new()) else { continue };
        passes = true;
        if step.graph.outputs.iter().any(|output| output.role == OutputRole::Gradient) {
            gradients.push(format!("d{}({})", letter(i), kept(&step).join(", ")));
        }
    }
    passes.then(|| if gradients.is_empty() { "zero".to_owned() } else { gradients.join(" ") })
}

fn letter(operand: usize) -> char {
    char::from(b'a' + u8::try_from(operand).expect("few operands"))
}

/// What the backward reads of the operator's operands and results.
fn kept(step: &Step) -> Vec<String> {
    let mut names = BTreeSet::new();
    for (_, node) in step.graph.nodes.iter().filter(|(id, _)| id.index() >= step.forward_nodes) {
        for &value in &node.inputs {
            match step.graph.values[value].def {
                Def::Input(position) => drop(names.insert((0, letter(position).to_string()))),
                Def::Result { node, index: 0 } if node.index() == 0 => drop(names.insert((1, "y".to_owned()))),
                Def::Result { node, index } if node.index() == 0 => drop(names.insert((1, format!("y{index}")))),
                Def::Result { node: _, index: _ } => {}
            }
        }
    }
    names.into_iter().map(|(_, name)| name).collect()
}

/// Whether the host device runs it, on zeros, and gives results of the right types.
fn runs(graph: &Graph) -> bool {
    let zeros = |input: &trainc_ir::Input| (input.name.clone(), Tensor::zeros(graph.ty(input.value).clone()));
    let inputs: BTreeMap<_, _> = graph.inputs.iter().map(zeros).collect();
    let Ok(results) = interpret(graph, &inputs, Context::default()) else { return false };
    let expected = graph.outputs.iter().map(|output| graph.ty(output.value));
    results.iter().map(Tensor::ty).eq(expected)
}
