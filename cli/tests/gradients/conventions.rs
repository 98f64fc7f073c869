//! Where a value or a slope is a convention, it is PyTorch's (`testdata/goldens/conventions`, made by
//! `testdata/scripts/conventions.py`): ties, kinks, zeros, infinities, rows without variance and rows that see nothing.

use crate::models::{lower, open, weights};
use crate::operators::{cases, failures};
use trainc_backend::{Context, interpret};
use trainc_passes::transform::{Trainable, differentiate};
use trainc_passes::{TrainingOptions, passes};

/// The cases of the golden.
pub(crate) const GOLDEN: &str = include_str!("../../../testdata/goldens/conventions/golden.json");

#[test]
fn values_and_slopes_are_pytorchs() {
    assert!(cases(GOLDEN).len() >= 40);
    let failures = failures(GOLDEN);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What reaches a bound of ONNX's Clip gets no gradient.
#[test]
fn clip_at_its_bounds() {
    let source = open("../frontend/onnx/clip.onnx", "*=1");
    let mut graph = lower(&source);
    let inputs = weights(&source, &graph);
    let options = TrainingOptions { loss: "sum:y".parse().expect("a loss"), ..TrainingOptions::default() };
    for (pass, _) in passes(&options) {
        pass.run(&mut graph, &mut Vec::new()).unwrap_or_else(|errors| panic!("{errors:?}"));
    }
    let step = differentiate(graph, &Trainable::all(), &mut Vec::new()).unwrap_or_else(|errors| panic!("{errors:?}"));
    let results = interpret(&step.graph, &inputs, Context::default()).unwrap_or_else(|error| panic!("{error}"));
    let position = step.graph.outputs.iter().position(|output| output.name == "grad.m.w.0").expect("a gradient");
    let golden: serde_json::Value = serde_json::from_str(GOLDEN).expect("the golden is JSON");
    let expected: Vec<_> =
        golden["clip"].as_array().expect("a list").iter().filter_map(serde_json::Value::as_f64).collect();
    assert_eq!(results[position].to_f64s(), expected);
}
