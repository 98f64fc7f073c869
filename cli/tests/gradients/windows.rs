//! Convolution, pooling and batch normalization against PyTorch (`testdata/goldens/windows`, made by
//! `testdata/scripts/windows.py`): values, and gradients where PyTorch's convention matters.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::finite::tensor;
use serde_json::Value;
use std::collections::BTreeMap;
use trainc_backend::{Context, Tensor, interpret};
use trainc_ir::op::{Elementwise, ReduceKind, Reduction};
use trainc_ir::{GraphBuilder, InputRole, Op, OutputRole};
use trainc_passes::transform::{Trainable, differentiate};

fn read(entry: &Value) -> Tensor {
    let shape: Vec<u64> = entry["shape"].as_array().unwrap().iter().map(|dim| dim.as_u64().unwrap()).collect();
    let number = |value: &Value| match value {
        Value::String(text) => text.parse().unwrap(),
        number => number.as_f64().unwrap(),
    };
    tensor(&shape, &entry["values"].as_array().unwrap().iter().map(number).collect::<Vec<f64>>())
}

fn list(entries: &Value) -> Vec<Tensor> {
    entries.as_array().unwrap().iter().map(read).collect()
}

/// Distance that rounding explains; a NaN agrees with a NaN only.
fn differ(found: &Tensor, expected: &Tensor) -> bool {
    let far = |(a, b): (f64, f64)| a.is_nan() != b.is_nan() || (a != b && (a - b).abs() > 1e-12 * b.abs().max(1.0));
    found.ty() != expected.ty() || found.to_f64s().into_iter().zip(expected.to_f64s()).any(far)
}

#[test]
fn values_and_gradients_are_pytorchs() {
    let text = include_str!("../../../testdata/goldens/windows/golden.json").replace("-Infinity", "\"-inf\"");
    let golden: Value = serde_json::from_str(&text).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 26);
    let mut failures = Vec::new();
    for case in cases {
        let op: Op = serde_json::from_value(case["operator"].clone()).unwrap();
        let name = format!("{}, {}", op.spelling(), case["name"]);
        let (operands, results) = (list(&case["operands"]), list(&case["results"]));
        let mut b = GraphBuilder::new(name.clone());
        let mut inputs = BTreeMap::from([("weights".to_owned(), read(&case["weights"]))]);
        let mut values = Vec::new();
        for (i, operand) in operands.iter().enumerate() {
            values.push(b.input(format!("p{i}"), InputRole::Parameter, operand.ty().clone()));
            inputs.insert(format!("p{i}"), operand.clone());
        }
        let weights = b.input("weights", InputRole::Data, inputs["weights"].ty().clone());
        let found = b.add(op, &values).unwrap();
        let terms = b.one(Elementwise::Mul, &[found[0], weights]).unwrap();
        let axes = (0..b.ty(terms).rank() as u64).collect();
        let loss = b.one(Reduction::Reduce { kind: ReduceKind::Sum, axes, keep: false }, &[terms]).unwrap();
        b.output("loss_sum", OutputRole::LossSum, loss);
        for (i, &value) in found.iter().enumerate() {
            b.output(format!("y{i}"), OutputRole::Prediction, value);
        }
        let step = differentiate(b.finish(), &Trainable::all(), &mut Vec::new()).unwrap();
        let computed = interpret(&step.graph, &inputs, Context::default()).unwrap();
        let output = |name: String| {
            let position = step.graph.outputs.iter().position(|output| output.name == name).unwrap();
            &computed[position]
        };
        for (i, expected) in results.iter().enumerate() {
            if differ(output(format!("y{i}")), expected) {
                failures.push(format!("{name}: result {i}: {:?}", output(format!("y{i}"))));
            }
        }
        for (i, expected) in list(&case["gradients"]).iter().enumerate() {
            if differ(output(format!("grad.p{i}.0")), expected) {
                failures.push(format!("{name}: gradient {i}: {:?}", output(format!("grad.p{i}.0"))));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
