//! What was fused, and what looks like a composite form and is not one.

use super::attention::{Miss, recognise};
use super::{Fuser, norm, rope};
use std::collections::BTreeMap;
use trainc_ir::id::SideTable;
use trainc_ir::op::{Attention, Elementwise, GeluForm, Movement, Normalization, Random};
use trainc_ir::{Graph, NodeId, Op, ValueId};

/// The composite operators of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fusions {
    /// Composite operators that are there.
    pub forms: Vec<Form>,
    /// Forms that stay apart.
    pub apart: Vec<Apart>,
}

/// A composite operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// Its spelling.
    pub name: &'static str,
    /// How many there are.
    pub count: usize,
    /// How many of them have which trait, in words.
    pub details: Vec<(String, usize)>,
}

impl Form {
    /// The details in one line: `12 causal, 12 with a mask`.
    pub fn words(&self) -> String {
        let details: Vec<_> = self.details.iter().map(|(detail, count)| format!("{count} {detail}")).collect();
        details.join(", ")
    }
}

/// What looks like a composite operator and is not one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart {
    /// What it looks like.
    pub name: &'static str,
    /// Why it is none, in words.
    pub reason: String,
    /// How many there are.
    pub count: usize,
}

/// The order of the forms in a report.
const FORMS: [&str; 7] = ["attention", "rope", "layer_norm", "rms_norm", "gelu", "silu", "cross_entropy"];

/// Lists the composite operators of a graph that was fused.
pub fn fusions(graph: &Graph) -> Fusions {
    let users = graph.users();
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut details: BTreeMap<(&'static str, String), usize> = BTreeMap::new();
    let mut apart: BTreeMap<(&'static str, String), usize> = BTreeMap::new();
    let mut fuser = Fuser::over(graph.clone());
    for node in graph.nodes.ids() {
        let name = graph.nodes[node].op.spelling();
        if FORMS.contains(&name) {
            *counts.entry(name).or_default() += 1;
            for detail in traits(&mut fuser, graph, &users, node) {
                *details.entry((name, detail)).or_default() += 1;
            }
        }
        if let Some((name, reason)) = stays_apart(&mut fuser, graph, &users, node) {
            *apart.entry((name, reason)).or_default() += 1;
        }
    }
    let form = |name| {
        let of = details.iter().filter(|((form, _), _)| *form == name);
        let details = of.map(|((_, detail), &count)| (detail.clone(), count)).collect();
        counts.get(name).map(|&count| Form { name, count, details })
    };
    Fusions {
        forms: FORMS.into_iter().filter_map(form).collect(),
        apart: apart.into_iter().map(|((name, reason), count)| Apart { name, reason, count }).collect(),
    }
}

/// What is worth saying about a composite operator.
fn traits(f: &mut Fuser, graph: &Graph, users: &SideTable<ValueId, Vec<NodeId>>, node: NodeId) -> Vec<String> {
    let id = node;
    let node = &graph.nodes[node];
    match &node.op {
        Op::Attention(Attention::Attention { scale: _, causal }) => {
            let mut out = Vec::new();
            if *causal {
                out.push("causal".to_owned());
            }
            if let Some(&mask) = node.inputs.get(3) {
                out.push(if f.has_parameter(mask) { "with a trained mask" } else { "with a mask" }.to_owned());
            }
            let repeat = graph.ty(node.inputs[0]).shape[1] / graph.ty(node.inputs[1]).shape[1];
            if repeat > 1 {
                out.push(format!("with {repeat} query heads per KV head"));
            }
            out
        }
        Op::Elementwise(Elementwise::Gelu { form }) => {
            let form = match form {
                GeluForm::Erf => "erf",
                GeluForm::Tanh => "tanh",
                GeluForm::Quick => "quick",
            };
            if gates(graph, users, id) { vec![form.to_owned(), "gates".to_owned()] } else { vec![form.to_owned()] }
        }
        Op::Elementwise(Elementwise::Silu) if gates(graph, users, id) => vec!["gates".to_owned()],
        _ => Vec::new(),
    }
}

/// Whether the result is only multiplied with another value of its type.
fn gates(graph: &Graph, users: &SideTable<ValueId, Vec<NodeId>>, node: NodeId) -> bool {
    let result = graph.nodes[node].outputs[0];
    let &[user] = &users[result][..] else { return false };
    let user = &graph.nodes[user];
    let is_product = matches!(user.op, Op::Elementwise(Elementwise::Mul));
    is_product && user.inputs.iter().all(|&v| graph.ty(v) == graph.ty(result))
}

fn stays_apart(
    f: &mut Fuser,
    graph: &Graph,
    users: &SideTable<ValueId, Vec<NodeId>>,
    node: NodeId,
) -> Option<(&'static str, String)> {
    let result = *graph.nodes[node].outputs.first()?;
    match &graph.nodes[node].op {
        Op::Normalization(Normalization::Softmax) => {
            let mut miss = Miss::NoSoftmax;
            for product in products(graph, users, result) {
                match recognise(f, product) {
                    Ok(_) => return None,
                    Err(found) => miss = miss.max(found),
                }
            }
            Some(("softmax", miss.reason()))
        }
        Op::Normalization(Normalization::LogSoftmax) => {
            Some(("log_softmax", "no lookup of labels under a sum or a mean follows".to_owned()))
        }
        Op::Elementwise(Elementwise::Erf) => Some(("erf", "outside of a GELU".to_owned())),
        Op::Elementwise(Elementwise::Mul | Elementwise::Div) => {
            norm::almost(graph, result).map(|reason| ("norm", reason.to_owned()))
        }
        Op::Elementwise(Elementwise::Add) => rope::almost(f, result).map(|reason| ("rope", reason.to_owned())),
        _ => None,
    }
}

/// The matrix products that a value takes part in as weights, behind what may stand between.
fn products(graph: &Graph, users: &SideTable<ValueId, Vec<NodeId>>, value: ValueId) -> Vec<ValueId> {
    let mut out = Vec::new();
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        for &user in &users[value] {
            let user = &graph.nodes[user];
            match &user.op {
                Op::Contraction(_) if user.inputs[0] == value => out.push(user.outputs[0]),
                Op::Elementwise(Elementwise::Select | Elementwise::Cast { to: _ })
                | Op::Random(Random::Dropout { p: _, site: _ })
                | Op::Movement(Movement::Reshape { shape: _ }) => pending.push(user.outputs[0]),
                _ => {}
            }
        }
    }
    out
}
