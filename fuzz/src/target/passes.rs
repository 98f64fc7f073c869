//! Every pass over every valid graph: nothing panics, and every graph between passes is valid.

use super::text::{TOKENS, all_seeds};
use super::{Kind, Target};
use trainc_ir::text::parse;
use trainc_ir::verify_training;
use trainc_passes::transform::LossSpec;
use trainc_passes::{BROKEN_PASS, Lowering, TrainingOptions, lower_to_training};

pub(super) const TARGET: Target =
    Target { name: "passes", kind: Kind::Text, run, seeds: all_seeds, tokens: TOKENS, n_bounded: 5_000 };

/// Larger tensors are of no use here: passes look at types.
const MAX_ELEMENTS: u64 = 1 << 40;

fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(graph) = parse("fuzz.ir", text) else { return };
    if graph.values.values().any(|value| value.ty.elements() > MAX_ELEMENTS) {
        return;
    }
    let named = graph.outputs.first().map(|output| LossSpec::Sum(output.name.clone()));
    for loss in std::iter::once(LossSpec::FromModel).chain(named) {
        let options = TrainingOptions { loss, ..TrainingOptions::default() };
        match lower_to_training(graph.graph().clone(), &options, None, &mut |_| {}, &mut Vec::new()) {
            Ok(Lowering::Done(training)) => {
                if let Err((_, errors)) = verify_training(*training) {
                    panic!("the training graph is not valid: {}", errors[0]);
                }
            }
            Ok(Lowering::Stopped { after, graph: _ }) => panic!("stopped after {after} without being asked to"),
            Err(problems) => {
                let broken = problems.iter().find(|problem| problem.code == BROKEN_PASS);
                assert!(broken.is_none(), "{broken:?}");
            }
        }
    }
}
