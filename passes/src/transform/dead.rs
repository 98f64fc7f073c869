//! Dead code: nodes and inputs that no output depends on.

use trainc_ir::id::{Id, SideTable};
use trainc_ir::{Copier, Graph, GraphBuilder, InputRole, ValueId};

/// Drops the nodes that no output depends on, and says whether there were any.
pub(super) fn drop_nodes(graph: &mut Graph) -> bool {
    let live = live(graph);
    let before = graph.nodes.len();
    // Where nothing goes and all inputs come first, the copy would be equal.
    let inputs_first = graph.inputs.iter().enumerate().all(|(i, input)| input.value.index() == i);
    if inputs_first && graph.nodes.values().all(|node| node.outputs.iter().any(|&v| live[v])) {
        return false;
    }
    let mut b = GraphBuilder::new(graph.name.clone());
    let mut copier = Copier::new(graph);
    copier.inputs(&mut b);
    for (id, node) in graph.nodes.iter() {
        if node.outputs.iter().any(|&v| live[v]) {
            copier.node(id, &mut b);
        }
    }
    copier.outputs(&mut b);
    *graph = b.finish();
    graph.nodes.len() != before
}

/// Drops the data, labels and buffers that no output depends on. Parameters stay: the model has them, used or not.
pub(super) fn drop_inputs(graph: &mut Graph) {
    let live = live(graph);
    let mut b = GraphBuilder::new(graph.name.clone());
    let mut copier = Copier::new(graph);
    for input in &graph.inputs {
        let stays = match input.role {
            InputRole::Data | InputRole::Label | InputRole::Buffer => live[input.value],
            InputRole::Parameter | InputRole::State | InputRole::GradientSum | InputRole::Scalar => true,
        };
        if stays {
            let value = b.input(input.name.clone(), input.role, graph.ty(input.value).clone());
            copier.set(input.value, value);
        }
    }
    for (id, node) in graph.nodes.iter() {
        if node.outputs.iter().any(|&v| live[v]) {
            copier.node(id, &mut b);
        }
    }
    copier.outputs(&mut b);
    *graph = b.finish();
}

fn live(graph: &Graph) -> SideTable<ValueId, bool> {
    let mut live = SideTable::new(false);
    for output in &graph.outputs {
        live.set(output.value, true);
    }
    for node in graph.nodes.values().rev() {
        if node.outputs.iter().any(|&v| live[v]) {
            for &input in &node.inputs {
                live.set(input, true);
            }
        }
    }
    live
}
