//! Folding: values that depend on constants only become constants, where that does not make the graph larger.
//!
//! Results of at most a few thousand elements, and results of any size whose elements are all equal, are stored in the
//! graph. Larger tables (a mask over all pairs of positions, say) stay computed: they are cheaper to compute than to
//! carry in every plan. Functions that depend on the machine's libm are not folded, so that folding gives the same
//! bytes everywhere.

mod elementwise;
mod evaluator;
mod movement;
mod reduction;
mod tensor;

pub(crate) use evaluator::Evaluator;

use crate::pass::{Changed, Pass};
use trainc_ir::op::{Creation, Literal};
use trainc_ir::{Copier, Diagnostic, Diagnostics, Graph, GraphBuilder, Op};

/// Results of more elements are not stored, unless all are equal.
const MAX_STORED: u64 = 4096;
/// Values of more stored elements are not evaluated on the way.
const MAX_EVALUATED: u64 = 65_536;

/// Folds constants.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fold;

impl Pass for Fold {
    fn name(&self) -> &'static str {
        "fold"
    }

    fn run(&self, graph: &mut Graph, _notes: &mut Vec<Diagnostic>) -> Result<Changed, Diagnostics> {
        let mut evaluator = Evaluator::new(MAX_EVALUATED);
        let mut b = GraphBuilder::new(graph.name.clone());
        let mut copier = Copier::new(graph);
        let mut changed = false;
        copier.inputs(&mut b);
        for (id, node) in graph.nodes.iter() {
            let literals = match node.op {
                Op::Creation(Creation::Constant { value: _ }) => None,
                _ => literals(&mut evaluator, graph, node),
            };
            match literals {
                None => copier.node(id, &mut b),
                Some(literals) => {
                    changed = true;
                    for (&output, literal) in node.outputs.iter().zip(literals) {
                        let constant = b.constant(literal);
                        copier.set(output, constant);
                    }
                }
            }
        }
        copier.outputs(&mut b);
        *graph = b.finish();
        Ok(changed.into())
    }
}

/// The results of a node as literals, where all of them are known and small enough.
fn literals(evaluator: &mut Evaluator, graph: &Graph, node: &trainc_ir::Node) -> Option<Vec<Literal>> {
    let tensors: Option<Vec<_>> = node.outputs.iter().map(|&output| evaluator.value(graph, output)).collect();
    let tensors = tensors?;
    let stored = |tensor: &tensor::Tensor| tensor.uniform().is_some() || tensor.ty.elements() <= MAX_STORED;
    tensors.iter().all(|t| stored(t)).then(|| tensors.iter().map(|t| t.to_literal()).collect())
}
