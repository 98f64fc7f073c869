//! Goldens of single operators: operands, results, and the gradients of the weighted sum of the first result.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::Value;
use std::collections::BTreeMap;
use trainc_backend::{Context, Tensor, interpret};
use trainc_ir::op::{Elementwise, ReduceKind, Reduction, encode_f64};
use trainc_ir::{DType, GraphBuilder, InputRole, Op, OutputRole, Type};
use trainc_passes::transform::{Trainable, differentiate};

/// The cases of a golden.
pub(crate) fn cases(golden: &str) -> Vec<Value> {
    let text = golden.replace("-Infinity", "\"-inf\"");
    let golden: Value = serde_json::from_str(&text).unwrap();
    golden["cases"].as_array().unwrap().clone()
}

/// The operator of a case.
pub(crate) fn operator(case: &Value) -> Op {
    serde_json::from_value(case["operator"].clone()).unwrap()
}

fn read(entry: &Value) -> Tensor {
    let shape: Vec<u64> = entry["shape"].as_array().unwrap().iter().map(|dim| dim.as_u64().unwrap()).collect();
    let dtype = entry.get("dtype").map_or(DType::F64, |name| DType::from_name(name.as_str().unwrap()).unwrap());
    let number = |value: &Value| match value {
        Value::String(text) => text.parse().unwrap(),
        number => number.as_f64().unwrap(),
    };
    let values = entry["values"].as_array().unwrap();
    let bytes: Vec<u8> = values.iter().flat_map(|value| encode_f64(dtype, number(value))).collect();
    Tensor::from_bytes(Type::new(dtype, shape), &bytes).unwrap()
}

fn list(entries: &Value) -> Vec<Tensor> {
    entries.as_array().unwrap().iter().map(read).collect()
}

/// Distance that rounding explains; a NaN agrees with a NaN only.
fn differ(found: &Tensor, expected: &Tensor) -> bool {
    let far = |(a, b): (f64, f64)| a.is_nan() != b.is_nan() || (a != b && (a - b).abs() > 1e-12 * b.abs().max(1.0));
    found.ty() != expected.ty() || found.to_f64s().into_iter().zip(expected.to_f64s()).any(far)
}

/// The cases of a golden that trainc computes otherwise.
pub(crate) fn failures(golden: &str) -> Vec<String> {
    cases(golden).iter().flat_map(wrong).collect()
}

fn wrong(case: &Value) -> Vec<String> {
    let op = operator(case);
    let name = format!("{}, {}", op.spelling(), case["name"]);
    let (operands, results) = (list(&case["operands"]), list(&case["results"]));
    let mut b = GraphBuilder::new(name.clone());
    let mut inputs = BTreeMap::from([("weights".to_owned(), read(&case["weights"]))]);
    let mut values = Vec::new();
    for (i, operand) in operands.iter().enumerate() {
        let trained = operand.ty().dtype.is_float();
        let role = if trained { InputRole::Parameter } else { InputRole::Data };
        values.push(b.input(format!("p{i}"), role, operand.ty().clone()));
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
        let position = step.graph.outputs.iter().position(|output| output.name == name);
        position.map(|position| computed[position].clone())
    };
    let mut failures = Vec::new();
    for (i, expected) in results.iter().enumerate() {
        let result = output(format!("y{i}")).unwrap();
        if differ(&result, expected) {
            failures.push(format!("{name}: result {i}: {:?}, expected {:?}", result.to_f64s(), expected.to_f64s()));
        }
    }
    for (i, expected) in case["gradients"].as_array().unwrap().iter().enumerate().filter(|(_, g)| !g.is_null()) {
        let expected = read(expected);
        // What gets no gradient has one of zeros.
        let found = output(format!("grad.p{i}.0")).unwrap_or_else(|| Tensor::zeros(expected.ty().clone()));
        if differ(&found, &expected) {
            failures.push(format!("{name}: gradient {i}: {:?}, expected {:?}", found.to_f64s(), expected.to_f64s()));
        }
    }
    failures
}
