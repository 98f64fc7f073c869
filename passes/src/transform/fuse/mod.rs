//! Fusion: composite forms that exporters take apart become the operators that they were.
//!
//! Each node is added to the new graph and then looked at as the last node of every pattern. Where one matches, the
//! fused operator takes its place; what only the pattern used is dropped at the end. Fused operators are seen by later
//! patterns, so that attention is found behind a softmax that was itself taken apart.

mod activation;
mod attention;
mod cross_entropy;
mod heads;
mod mask;
mod norm;
mod product;
mod report;
mod rope;
mod softmax;

pub use report::{Apart, Form, Fusions, fusions};

use super::dead;
use super::fold::Evaluator;
use crate::pass::{Changed, Pass};
use std::collections::BTreeMap;
use trainc_ir::id::{Id, Table};
use trainc_ir::op::{Literal, Movement};
use trainc_ir::{Copier, DType, Def, Diagnostic, Diagnostics, Graph, GraphBuilder, InputRole, Op, Type, ValueId};

/// Masks of more elements are not looked into.
const MAX_EVALUATED: u64 = 1 << 24;

/// Fuses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fuse;

impl Pass for Fuse {
    fn name(&self) -> &'static str {
        "fuse"
    }

    fn run(&self, graph: &mut Graph, _notes: &mut Vec<Diagnostic>) -> Result<Changed, Diagnostics> {
        let mut fuser = Fuser::over(Graph { name: graph.name.clone(), ..Graph::default() });
        let mut copier = Copier::new(graph);
        let mut changed = false;
        copier.inputs(&mut fuser.builder);
        for (id, node) in graph.nodes.iter() {
            copier.node(id, &mut fuser.builder);
            let &[result] = &node.outputs[..] else { continue };
            fuser.builder.set_origin(graph.origins[id].clone());
            let added = copier.get(result).expect("the node was just copied");
            if let Some(fused) = fuser.fuse(added) {
                debug_assert_eq!(fuser.ty(fused), graph.ty(result), "a fused operator keeps the type");
                copier.set(result, fused);
                changed = true;
            }
            fuser.builder.set_origin(None);
        }
        copier.outputs(&mut fuser.builder);
        *graph = fuser.builder.finish();
        dead::drop_nodes(graph);
        Ok(changed.into())
    }
}

/// The new graph while it grows.
#[derive(Debug)]
struct Fuser {
    builder: GraphBuilder,
    evaluator: Evaluator,
    /// What is known of masks that were looked at: a model's layers share them.
    masks: BTreeMap<(ValueId, bool, Type), Option<mask::Known>>,
    /// What influences the first values.
    influences: Table<ValueId, Influences>,
}

/// What influences a value.
#[derive(Clone, Copy, Debug, Default)]
struct Influences {
    parameters: bool,
    other_inputs: bool,
}

impl Fuser {
    /// Fuses what is added to a graph.
    fn over(graph: Graph) -> Self {
        Self {
            builder: GraphBuilder::extend(graph),
            evaluator: Evaluator::new(MAX_EVALUATED),
            masks: BTreeMap::new(),
            influences: Table::new(),
        }
    }

    fn graph(&self) -> &Graph {
        self.builder.graph()
    }

    fn ty(&self, value: ValueId) -> &Type {
        self.builder.ty(value)
    }

    fn add(&mut self, op: impl Into<Op>, inputs: &[ValueId]) -> Vec<ValueId> {
        self.builder.add(op, inputs).expect("patterns check the types of what they match")
    }

    fn one(&mut self, op: impl Into<Op>, inputs: &[ValueId]) -> ValueId {
        self.add(op, inputs)[0]
    }

    fn reshape(&mut self, value: ValueId, shape: Vec<u64>) -> ValueId {
        if self.ty(value).shape == shape { value } else { self.one(Movement::Reshape { shape }, &[value]) }
    }

    /// Whether a parameter influences the value.
    fn has_parameter(&mut self, value: ValueId) -> bool {
        self.influences(value).parameters
    }

    /// Whether another input than parameters influences the value.
    fn has_data(&mut self, value: ValueId) -> bool {
        self.influences(value).other_inputs
    }

    /// What is found out of the values before this one is remembered.
    fn influences(&mut self, value: ValueId) -> Influences {
        let graph = self.builder.graph();
        for id in (self.influences.len()..=value.index()).map(ValueId::from_index) {
            self.influences.push(match graph.values[id].def {
                Def::Input(position) => {
                    let parameters = graph.inputs[position].role == InputRole::Parameter;
                    Influences { parameters, other_inputs: !parameters }
                }
                Def::Result { node, index: _ } => {
                    graph.nodes[node].inputs.iter().fold(Influences::default(), |all, &v| Influences {
                        parameters: all.parameters || self.influences[v].parameters,
                        other_inputs: all.other_inputs || self.influences[v].other_inputs,
                    })
                }
            });
        }
        self.influences[value]
    }

    fn splat(&mut self, dtype: DType, shape: &[u64], value: f64) -> ValueId {
        self.builder.constant(Literal::splat_f64(Type::new(dtype, shape), value))
    }

    /// The fused form of the value, whose node is the last of the graph.
    fn fuse(&mut self, value: ValueId) -> Option<ValueId> {
        let op = self.graph().producer_op(value)?;
        match op {
            Op::Elementwise(_) => activation::fuse(self, value)
                .or_else(|| softmax::fuse(self, value))
                .or_else(|| norm::fuse(self, value))
                .or_else(|| rope::fuse(self, value))
                .or_else(|| cross_entropy::fuse(self, value)),
            Op::Contraction(_) => attention::fuse(self, value),
            Op::Reduction(_) => cross_entropy::fuse(self, value),
            Op::Movement(Movement::Concat { axis: _ } | Movement::Reshape { shape: _ }) => {
                rope::fuse_joined(self, value)
            }
            Op::Normalization(_) | Op::Attention(_) | Op::Indexing(_) | Op::Movement(_) | Op::Creation(_) => None,
            Op::Convolution(_) | Op::Pooling(_) | Op::BatchNorm(_) => None,
            Op::Random(_) | Op::Loss(_) | Op::Optimizer(_) | Op::Opaque(_) => None,
        }
    }
}
