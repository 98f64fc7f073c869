//! `docs/plan.schema.json` fits real plans, and refuses what is none.

use crate::judge::judge;
use crate::plan;
use serde_json::{Value, json};

const SCHEMA: &str = include_str!("../../../docs/plan.schema.json");

fn validate(document: &Value) -> Result<(), String> {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    judge(&schema, &schema, document, "")
}

#[test]
fn plans_fit_the_schema() {
    assert_eq!(validate(&serde_json::to_value(plan()).unwrap()), Ok(()));
}

#[test]
fn what_is_no_plan_does_not() {
    for (pointer, value, expected) in [
        ("/format", json!(2), ".format: expected another constant: 2"),
        ("/surprise", json!(1), ".surprise: unknown field"),
        ("/header/digests", json!({}), ".header.digests: \"model\" is missing: {}"),
        ("/micro_batches", json!(0), ".micro_batches: out of range: 0"),
        (
            "/programs/0/buffers/0/kind",
            json!("weight"),
            ".programs[0].buffers[0].kind: expected another word: \"weight\"",
        ),
        ("/segments/0/body/0/kernel", json!("k0"), ".segments[0].body[0].kernel: expected integer: \"k0\""),
        ("/ranks/0/stage", json!(-1), ".ranks[0].stage: out of range: -1"),
    ] {
        let mut document = serde_json::to_value(plan()).unwrap();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        document.pointer_mut(parent).unwrap()[key] = value;
        assert_eq!(validate(&document), Err(expected.to_owned()));
    }
    let mut document = serde_json::to_value(plan()).unwrap();
    document["programs"][0]["body"][0]["once"]["send"] = json!({"port": 0, "buffer": "b0"});
    let error = validate(&document).unwrap_err();
    assert!(error.starts_with(".programs[0].body[0]: 0 of 2 forms fit"), "{error}");
}
