//! Gradients held to central differences, conventions to PyTorch's, single nodes to ONNX's own test cases, and whole
//! models to PyTorch's numbers.

mod conventions;
mod elementwise;
mod finite;
mod fused;
mod models;
mod nodes;
mod operators;
mod shards;
mod structured;
mod windows;

use finite::Case;
use std::collections::BTreeSet;
use trainc_ir::Op;
use trainc_passes::transform::has_gradient;

fn cases() -> Vec<Case> {
    [elementwise::cases(), structured::cases()].concat()
}

#[test]
fn every_rule_agrees_with_central_differences() {
    let failures: Vec<String> = cases().iter().filter_map(|case| case.check().err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_operator_with_a_rule_has_a_case() {
    let tested: BTreeSet<&str> = cases().iter().flat_map(Case::spellings).collect();
    let known = Op::spellings().map(|(_, spelling)| spelling);
    let missing: Vec<&str> = known.filter(|s| has_gradient(s) && !tested.contains(s)).collect();
    assert!(missing.is_empty(), "operators with a gradient rule but without a case: {missing:?}");
}

#[test]
fn second_derivatives_are_refused() {
    use trainc_ir::op::Elementwise;
    let case = Case::new("tanh_grad", &[(&[3], 0.1, 0.9), (&[3], 0.1, 0.9)], |b, p| {
        vec![b.one(Elementwise::TanhGrad, p).expect("two floats of one type")]
    });
    assert!(!has_gradient("tanh_grad"));
    let errors = case.step().expect_err("gradients have no gradients");
    assert_eq!(errors[0].code, "E0502");
    assert!(errors[0].message.contains("second derivatives"), "{}", errors[0]);
}
