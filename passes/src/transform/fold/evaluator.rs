//! Evaluates values that depend on constants only, on demand and within a bound.

use super::tensor::Tensor;
use super::{elementwise, movement, reduction};
use std::rc::Rc;
use trainc_ir::id::SideTable;
use trainc_ir::op::Creation;
use trainc_ir::{Graph, NodeId, Op, Type, ValueId};

/// Remembers what it has evaluated. One evaluator serves one graph, which may grow meanwhile.
#[derive(Debug)]
pub(crate) struct Evaluator {
    limit: u64,
    known: SideTable<ValueId, Option<Rc<Tensor>>>,
    tried: SideTable<NodeId, bool>,
}

impl Evaluator {
    /// An evaluator that stores at most `limit` elements of any one value.
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, known: SideTable::default(), tried: SideTable::default() }
    }

    /// The value, or `None` where it depends on inputs, needs an operator that is not evaluated, or is too large.
    pub(crate) fn value(&mut self, graph: &Graph, value: ValueId) -> Option<Rc<Tensor>> {
        let mut pending = vec![graph.producer(value)?];
        while let Some(&node) = pending.last() {
            if self.tried[node] {
                pending.pop();
                continue;
            }
            let producers = graph.nodes[node].inputs.iter().map(|&input| graph.producer(input));
            // One operand that is an input settles it: the others need not be evaluated.
            let constant = producers.clone().all(|p| p.is_some_and(|p| !self.tried[p] || self.is_known(graph, p)));
            let open: Vec<NodeId> = producers.flatten().filter(|&p| !self.tried[p]).collect();
            if constant && !open.is_empty() {
                pending.extend(open);
                continue;
            }
            pending.pop();
            self.tried.set(node, true);
            if constant {
                self.node(graph, node);
            }
        }
        self.known[value].clone()
    }

    fn is_known(&self, graph: &Graph, node: NodeId) -> bool {
        graph.nodes[node].outputs.iter().all(|&output| self.known[output].is_some())
    }

    fn node(&mut self, graph: &Graph, node: NodeId) {
        let node = &graph.nodes[node];
        let inputs: Option<Vec<Rc<Tensor>>> = node.inputs.iter().map(|&input| self.known[input].clone()).collect();
        let Some(inputs) = inputs else { return };
        let inputs: Vec<&Tensor> = inputs.iter().map(Rc::as_ref).collect();
        let types: Vec<Type> = node.outputs.iter().map(|&output| graph.ty(output).clone()).collect();
        let results = self.evaluate(&node.op, &inputs, &types);
        for (&output, tensor) in node.outputs.iter().zip(results.unwrap_or_default()) {
            self.known.set(output, Some(Rc::new(tensor)));
        }
    }

    fn evaluate(&self, op: &Op, inputs: &[&Tensor], types: &[Type]) -> Option<Vec<Tensor>> {
        let ty = || types[0].clone();
        match op {
            Op::Creation(Creation::Constant { value }) => Tensor::from_literal(value, self.limit).map(|t| vec![t]),
            Op::Elementwise(op) => elementwise::evaluate(op, inputs, ty(), self.limit).map(|t| vec![t]),
            Op::Movement(op) => movement::evaluate(op, inputs, types, self.limit),
            Op::Indexing(op) => movement::lookup(op, inputs[0], inputs[1], ty(), self.limit).map(|t| vec![t]),
            Op::Reduction(op) if types.len() == 1 => {
                reduction::evaluate(op, inputs[0], ty(), self.limit).map(|t| vec![t])
            }
            Op::Contraction(_) | Op::Reduction(_) | Op::Normalization(_) | Op::Attention(_) | Op::Random(_) => None,
            Op::Convolution(_) | Op::Pooling(_) | Op::BatchNorm(_) => None,
            Op::Loss(_) | Op::Optimizer(_) | Op::Opaque(_) => None,
        }
    }
}
