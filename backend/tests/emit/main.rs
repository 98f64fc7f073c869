//! Tests of plan files: both forms hold the same, damage and edits are named, the schema fits, writing is atomic.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../../../ir/tests/plan_verify/assembler.rs"]
mod assembler;
mod forms;
mod judge;
#[path = "../../../ir/tests/plan_verify/model.rs"]
#[allow(dead_code, reason = "only the operators of the model are needed to write its plan")]
mod model;
mod schema;
mod summary;
#[path = "../../../ir/tests/plan_verify/two_stages.rs"]
mod two_stages;
mod writing;

use std::path::Path;
use trainc_ir::op::{Creation, Literal, Random, Real};
use trainc_ir::plan::{BlockClass, Kernel, Plan};
use trainc_ir::{DType, Type};

/// The hand-written plan of the plan verifier's tests, with what it does not have: dense data, numbers that JSON cannot
/// spell, text that must be escaped, predictions.
fn plan() -> Plan {
    let mut plan = two_stages::plan();
    let vector = Type::new(DType::I64, [3]);
    let data = [1i64, -2, i64::MAX].iter().flat_map(|value| value.to_le_bytes()).collect();
    let value = Literal::from_bytes(vector.clone(), data).unwrap();
    plan.kernels.push(Kernel { op: Creation::Constant { value }.into(), inputs: vec![], outputs: vec![vector] });
    for p in [0.1, 1.0 / 3.0, f64::INFINITY, -0.0] {
        let ty = Type::new(DType::F32, [2]);
        let op = Random::Dropout { p: Real::new(p), site: 3 }.into();
        plan.kernels.push(Kernel { op, inputs: vec![ty.clone()], outputs: vec![ty] });
    }
    plan.header.model = "a \"model\"\nof {brackets}, [lists] and ünïcode".to_owned();
    plan.prediction.step_ps = 2_000_000_000_000;
    plan.prediction.idle_ps = 1_000_000_000_000;
    plan.prediction.samples = 6;
    plan.prediction.tokens = 384;
    plan.prediction.recompute.total_ps = 3;
    plan.prediction.blocks.push(BlockClass {
        name: "block class 0".to_owned(),
        instances: 4,
        nodes: 7,
        parameter_bytes: 100,
        saved_bytes: 50,
    });
    plan.prediction.ranks[0].units = vec!["embedding".to_owned(), "block 1".to_owned()];
    plan
}

/// Compares with a file under `testdata/plan`, or rewrites it where `BLESS` is set.
fn golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/plan").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == found, "{name} differs; run the test with BLESS=1 and look at the difference\n{found}");
}
