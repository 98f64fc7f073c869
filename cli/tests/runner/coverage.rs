//! What there is for each operator, found out by trying it on the graph of `testdata/ops/every-op.ir`.

use std::collections::BTreeMap;
use std::fmt::Write;
use trainc_backend::{Context, Tensor, interpret};
use trainc_ir::text::{parse, print};
use trainc_ir::{Graph, GraphBuilder, InputRole, Node, Op, OutputRole, verify};
use trainc_passes::transform::has_gradient;

/// The head of the file that lists the operators.
const HEAD: &str = "\
# Operators

Made by `cargo bless` from `testdata/ops/every-op.ir`; a test keeps it up to date. Each column is tried out: the type rule accepts
the sample, differentiation has a rule, the host device runs the sample, the sample has a count of floating-point operations,
and its text reads back. The meaning of each operator is written where it is declared, in `ir/src/op/`.

";

/// The whole of `docs/ops.md`.
///
/// # Errors
/// The sample does not have one node of each operator.
pub(crate) fn table(sample: &str) -> Result<String, String> {
    let graph = parse("every-op.ir", sample).map_err(|errors| format!("{errors:#?}"))?;
    let mut nodes: BTreeMap<&str, &Node> = BTreeMap::new();
    for node in graph.nodes.values() {
        if nodes.insert(node.op.spelling(), node).is_some() {
            return Err(format!("`{}` stands in the sample twice", node.op.spelling()));
        }
    }
    let mut out = HEAD.to_owned();
    let mut rows = vec![
        [
            "family",
            "operator",
            "type rule",
            "gradient",
            "host kernel",
            "flops",
            "text",
            "sharding rule",
            "CUDA lowering",
        ]
        .map(str::to_owned),
        ["---"; 9].map(str::to_owned),
    ];
    for (family, spelling) in Op::spellings() {
        let node = nodes.get(spelling).ok_or_else(|| format!("the sample has no `{spelling}`"))?;
        rows.push(row(&graph, node, family));
    }
    for row in rows {
        writeln!(out, "| {} |", row.join(" | ")).expect("writing to a string does not fail");
    }
    Ok(out)
}

fn row(graph: &Graph, node: &Node, family: &str) -> [String; 9] {
    let yes = |yes: bool| if yes { "yes" } else { "-" }.to_owned();
    let alone = alone(graph, node);
    let flops = node.op.flops(&graph.types(&node.inputs), &graph.types(&node.outputs));
    let text = print(&alone);
    [
        family.to_lowercase(),
        format!("`{}`", node.op.spelling()),
        yes(verify(alone.clone()).is_ok()),
        yes(has_gradient(node.op.spelling())),
        yes(runs(&alone)),
        if flops == 0 { "none".to_owned() } else { "yes".to_owned() },
        yes(parse("alone.ir", &text).is_ok_and(|back| *back == alone)),
        "not yet".to_owned(),
        "not yet".to_owned(),
    ]
}

/// A graph of this node only.
fn alone(graph: &Graph, node: &Node) -> Graph {
    let mut b = GraphBuilder::new(node.op.spelling());
    let inputs: Vec<_> = node
        .inputs
        .iter()
        .enumerate()
        .map(|(i, &value)| b.input(format!("x{i}"), InputRole::Data, graph.ty(value).clone()))
        .collect();
    let results = b.add(node.op.clone(), &inputs).expect("the sample is verified");
    for (i, result) in results.into_iter().enumerate() {
        b.output(format!("y{i}"), OutputRole::Prediction, result);
    }
    b.finish()
}

/// Whether the host device runs it, on zeros, and gives results of the right types.
fn runs(graph: &Graph) -> bool {
    let zeros = |input: &trainc_ir::Input| (input.name.clone(), Tensor::zeros(graph.ty(input.value).clone()));
    let inputs: BTreeMap<_, _> = graph.inputs.iter().map(zeros).collect();
    let Ok(results) = interpret(graph, &inputs, Context::default()) else { return false };
    let expected = graph.outputs.iter().map(|output| graph.ty(output.value));
    results.iter().map(Tensor::ty).eq(expected)
}
