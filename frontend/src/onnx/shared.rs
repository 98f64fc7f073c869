//! Vectors of weights that several layers share: exporters merge those that are equal, as in a model that was never trained.

use super::code;
use super::index::IndexedModel;
use std::collections::HashMap;
use trainc_ir::{Diagnostic, Graph, Input, InputRole};

/// Operators that take a whole bias or scale of a layer. `Identity` is how an exporter writes that it merged two.
const LAYERS: [&str; 10] = [
    "Add",
    "BatchNormalization",
    "Conv",
    "ConvTranspose",
    "Gemm",
    "GroupNormalization",
    "Identity",
    "InstanceNormalization",
    "LayerNormalization",
    "Mul",
];

/// A note on the parameters of rank 1 that more than one layer of the model uses.
pub(super) fn shared_vectors(model: &IndexedModel, lowered: &Graph) -> Option<Diagnostic> {
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for node in model.raw.proto.graph.node.iter().filter(|node| LAYERS.contains(&node.op_type.as_str())) {
        for name in &node.input {
            *uses.entry(name).or_insert(0) += 1;
        }
    }
    let is_vector = |input: &&Input| {
        let ty = lowered.ty(input.value);
        input.role == InputRole::Parameter && ty.rank() == 1 && ty.elements() > 1
    };
    let vectors = lowered.inputs.iter().filter(is_vector).map(|input| input.name.as_str());
    let counted = vectors.map(|name| (name, uses.get(name).copied().unwrap_or(0)));
    let shared: Vec<(&str, usize)> = counted.filter(|&(_, n)| n > 1).collect();
    let (name, most) = *shared.iter().rev().max_by_key(|&&(_, n)| n)?;
    let text = match shared.len() {
        1 => format!("{most} layers share the vector `{name}`, which is trained as one"),
        n => format!("layers share {n} vectors, each of which is trained as one: {most} layers share `{name}`"),
    };
    let help = "exporters merge what is equal, as the zeros and ones of a model that was never trained; to train them apart \
                as PyTorch does, export with `optimize=False`, or with `dynamo=False, keep_initializers_as_inputs=True`";
    Some(Diagnostic::note(code::SHARED_VECTORS, text).with_help(help))
}
