//! Canonical form: one spelling for what can be spelled in several ways, nothing computed twice or for nothing.
//!
//! Identities go, chains of movements become one movement, transposes move into matrix products, operands of
//! commutative operators stand in a fixed order with constants last, equal nodes are one node, dead nodes go.
//! Every rule gives bit-identical results, except that `x + 0` may turn a negative zero into a positive one.

mod contraction;
mod elementwise;
mod merged;
mod movement;
mod reduction;

use super::dead;
use crate::pass::{Changed, Pass};
use std::collections::HashMap;
use trainc_ir::id::{Id, SideTable};
use trainc_ir::op::{Creation, LiteralData};
use trainc_ir::{Copier, Diagnostic, Diagnostics, Graph, GraphBuilder, Op, Type, ValueId};

/// Rounds after which the form counts as canonical, changed or not.
const MAX_ROUNDS: usize = 8;
/// Constants of more bytes are not compared with each other.
const MAX_COMPARED: usize = 1 << 16;

/// Brings a graph into canonical form.
#[derive(Clone, Copy, Debug, Default)]
pub struct Canonicalize;

impl Pass for Canonicalize {
    fn name(&self) -> &'static str {
        "canonicalize"
    }

    fn run(&self, graph: &mut Graph, _notes: &mut Vec<Diagnostic>) -> Result<Changed, Diagnostics> {
        let mut changed = false;
        for _ in 0..MAX_ROUNDS {
            let rewritten = round(graph);
            let dropped = dead::drop_nodes(graph);
            if !rewritten && !dropped {
                break;
            }
            changed = true;
        }
        Ok(changed.into())
    }
}

/// Rebuilds the graph with every rule applied to every node once.
fn round(graph: &mut Graph) -> bool {
    let mut rewriter = Rewriter {
        builder: GraphBuilder::new(graph.name.clone()),
        known: HashMap::with_capacity(graph.nodes.len()),
        single: SideTable::new(false),
        changed: false,
    };
    let mut n_users: SideTable<ValueId, u32> = SideTable::new(0);
    graph.nodes.values().flat_map(|node| &node.inputs).for_each(|&input| n_users[input] += 1);
    let mut given: SideTable<ValueId, bool> = SideTable::new(false);
    graph.outputs.iter().for_each(|output| given.set(output.value, true));
    let mut copier = Copier::new(graph);
    copier.inputs(&mut rewriter.builder);
    for (id, node) in graph.nodes.iter() {
        rewriter.builder.set_origin(graph.origins[id].clone());
        let mut inputs = copier.all(&node.inputs);
        let first_new = rewriter.graph().nodes.len();
        let results = match rewriter.simplify(&node.op, &mut inputs) {
            Some(value) => {
                rewriter.changed = true;
                debug_assert_eq!(rewriter.builder.ty(value), graph.ty(node.outputs[0]), "{:?}", node.op);
                vec![value]
            }
            None => rewriter.add(node.op.clone(), &inputs),
        };
        // A value that was there before has another user already.
        let results_are_new =
            results.iter().all(|&v| rewriter.graph().producer(v).is_some_and(|n| n.index() >= first_new));
        for (&from, &to) in node.outputs.iter().zip(&results) {
            let is_new = results_are_new && !given[from] && n_users[from] == 1;
            rewriter.single.set(to, is_new);
            copier.set(from, to);
        }
    }
    rewriter.builder.set_origin(None);
    copier.outputs(&mut rewriter.builder);
    let changed = rewriter.changed;
    *graph = rewriter.builder.finish();
    changed
}

/// Whether equal nodes of this operator become one: what an unknown operator does is not known, and comparing large
/// constants costs more than keeping two.
fn is_compared(op: &Op) -> bool {
    match op {
        Op::Opaque(_) => false,
        Op::Creation(Creation::Constant { value }) => match &value.data {
            LiteralData::Splat(_) => true,
            LiteralData::Dense(bytes) => bytes.len() <= MAX_COMPARED,
        },
        Op::Elementwise(_) | Op::Contraction(_) | Op::Reduction(_) | Op::Normalization(_) | Op::Attention(_) => true,
        Op::Convolution(_) | Op::Pooling(_) | Op::BatchNorm(_) => true,
        Op::Indexing(_) | Op::Movement(_) | Op::Random(_) | Op::Loss(_) | Op::Optimizer(_) => true,
    }
}

/// The new graph while it grows.
#[derive(Debug)]
struct Rewriter {
    builder: GraphBuilder,
    known: HashMap<(Op, Vec<ValueId>), Vec<ValueId>>,
    /// Which values have one user only.
    single: SideTable<ValueId, bool>,
    changed: bool,
}

impl Rewriter {
    fn graph(&self) -> &Graph {
        self.builder.graph()
    }

    fn ty(&self, value: ValueId) -> &Type {
        self.builder.ty(value)
    }

    /// Adds a node, or finds the equal one that is there.
    fn add(&mut self, op: impl Into<Op>, inputs: &[ValueId]) -> Vec<ValueId> {
        let op = op.into();
        if !is_compared(&op) {
            return self.builder.add(op, inputs).expect("rules keep types");
        }
        let key = (op, inputs.to_vec());
        if let Some(results) = self.known.get(&key) {
            self.changed = true;
            return results.clone();
        }
        let results = self.builder.add(key.0.clone(), inputs).expect("rules keep types");
        self.known.insert(key, results.clone());
        results
    }

    fn one(&mut self, op: impl Into<Op>, inputs: &[ValueId]) -> ValueId {
        self.add(op, inputs)[0]
    }

    /// A value that equals the operator's only result, where a rule knows one; operands may be exchanged as well.
    fn simplify(&mut self, op: &Op, inputs: &mut [ValueId]) -> Option<ValueId> {
        match op {
            Op::Elementwise(op) => elementwise::simplify(self, op, inputs),
            Op::Contraction(op) => contraction::simplify(self, op, inputs),
            Op::Reduction(op) => reduction::simplify(self, op, inputs),
            Op::Movement(op) => movement::simplify(self, op, inputs),
            Op::Normalization(_) | Op::Attention(_) | Op::Indexing(_) | Op::Creation(_) | Op::Random(_) => None,
            Op::Convolution(_) | Op::Pooling(_) | Op::BatchNorm(_) => None,
            Op::Loss(_) | Op::Optimizer(_) | Op::Opaque(_) => None,
        }
    }
}
