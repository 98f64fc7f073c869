//! The work of the kernels that a measured layer ran, forward and backward.

use crate::layers::{Built, Layer, build};
use std::collections::BTreeSet;
use trainc_ir::id::Id;
use trainc_ir::op::Optimizer;
use trainc_ir::{NodeId, Op, Type};
use trainc_passes::plan::profile::Work;
use trainc_passes::transform::{Trainable, differentiate};

/// The operators and work of the kernels of the forward and of the backward, gradient sums included.
pub(crate) fn kernels(layer: Layer) -> [Vec<(&'static str, Work)>; 2] {
    let Built { graph, uncounted, loss_from } = build(layer);
    let step = differentiate(graph, &Trainable::default(), &mut Vec::new()).expect("every operator has a gradient");
    let uncounted: BTreeSet<NodeId> = uncounted.into_iter().collect();
    let mut kernels = [Vec::new(), Vec::new()];
    for (id, node) in step.graph.nodes.iter() {
        let backward = id.index() >= step.forward_nodes;
        let of = if backward { step.anchors[id].map_or(0, Id::index) } else { id.index() };
        if of >= loss_from || uncounted.contains(&id) {
            continue;
        }
        let (inputs, outputs) = (step.graph.types(&node.inputs), step.graph.types(&node.outputs));
        kernels[usize::from(backward)].push(kernel(&node.op, &inputs, &outputs));
    }
    for parameter in step.parameters.values() {
        let held = step.graph.ty(parameter.input);
        for contribution in &parameter.contributions {
            let op = Op::from(Optimizer::Accumulate);
            kernels[1].push(kernel(&op, &[held, step.graph.ty(contribution.value)], &[held]));
        }
    }
    kernels
}

fn kernel(op: &Op, inputs: &[&Type], outputs: &[&Type]) -> (&'static str, Work) {
    (op.spelling(), Work::of(op, inputs, outputs))
}
