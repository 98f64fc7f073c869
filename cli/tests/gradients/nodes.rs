//! Single nodes against ONNX's own test cases (`testdata/frontend/onnx/nodes.json`, made by `testdata/scripts/nodes.py`).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use trainc_backend::{Context, Tensor, interpret};
use trainc_frontend::{Bindings, ModelBytes, OnnxModel};
use trainc_ir::op::encode_f64;
use trainc_ir::{DType, ModelSource, OutputRole, Type};

/// Some cases give four decimals only.
const TOLERANCE: f64 = 1e-4;

/// Cases that are refused, and what the message says.
const REFUSED: [(&str, &str); 7] = [
    ("test_maxpool_2d_uint8", "expected a float type, found u8"),
    ("test_maxpool_with_argmax_2d_precomputed_pads", "the use of result 1 of node"),
    ("test_maxpool_with_argmax_2d_precomputed_strides", "the use of result 1 of node"),
    ("test_resize_upsample_sizes_nearest", "a factor that is not a whole number"),
    ("test_resize_upsample_sizes_nearest_ceil_half_pixel", "coordinates `half_pixel` and rounding `ceil`"),
    ("test_resize_upsample_sizes_nearest_floor_align_corners", "coordinates `align_corners` and rounding `floor`"),
    (
        "test_resize_upsample_sizes_nearest_round_prefer_ceil_asymmetric",
        "`asymmetric` and rounding `round_prefer_ceil`",
    ),
];

fn tensor(entry: &Value) -> Tensor {
    let shape: Vec<u64> = entry["shape"].as_array().unwrap().iter().map(|dim| dim.as_u64().unwrap()).collect();
    let dtype = match entry["dtype"].as_str().unwrap() {
        "float32" => DType::F32,
        "uint8" => DType::U8,
        "int64" => DType::I64,
        other => panic!("unknown element type {other}"),
    };
    let values = entry["values"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap());
    let bytes: Vec<u8> = values.flat_map(|value| encode_f64(dtype, value)).collect();
    Tensor::from_bytes(Type::new(dtype, shape), &bytes).unwrap()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

fn check(case: &Value) -> Result<(), String> {
    let name = case["name"].as_str().unwrap();
    let bytes = ModelBytes::from_vec(PathBuf::from(format!("{name}.onnx")), unhex(case["model"].as_str().unwrap()));
    let lowered = OnnxModel::from_bytes(bytes, Bindings::default()).and_then(|model| model.lower(None));
    let refused = REFUSED.iter().find(|(refused, _)| *refused == name);
    let graph = match (lowered, refused) {
        (Ok(lowered), None) => lowered.graph,
        (Err(problems), Some((_, message))) if problems[0].message.contains(message) => return Ok(()),
        (Ok(_), Some(_)) => return Err(format!("{name} is not refused")),
        (Err(problems), _) => return Err(format!("{name}: {}", problems[0].message)),
    };
    assert!(graph.outputs.iter().all(|output| output.role == OutputRole::Prediction), "{name}");
    let table = |key: &str| -> BTreeMap<String, Tensor> {
        case[key].as_object().unwrap().iter().map(|(name, entry)| (name.clone(), tensor(entry))).collect()
    };
    let found = interpret(&graph, &table("inputs"), Context::default()).map_err(|error| format!("{name}: {error}"))?;
    let expected = table("outputs");
    for (output, found) in graph.outputs.iter().zip(&found) {
        let expected = &expected[&output.name];
        let pairs = || found.to_f64s().into_iter().zip(expected.to_f64s());
        let far = pairs().map(|(a, b)| (a - b).abs() / b.abs().max(1.0)).fold(0.0, f64::max);
        if found.ty() != expected.ty() || far > TOLERANCE {
            return Err(format!("{name}: `{}` is {found:?}, expected {expected:?}: off by {far}", output.name));
        }
    }
    Ok(())
}

#[test]
fn nodes_compute_what_onnx_expects() {
    let cases: Value = serde_json::from_str(include_str!("../../../testdata/frontend/onnx/nodes.json")).unwrap();
    let cases = cases.as_array().unwrap();
    assert_eq!(cases.len(), 62);
    let failures: Vec<String> = cases.iter().filter_map(|case| check(case).err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
