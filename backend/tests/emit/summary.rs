//! `summary.json` of a plan.

use crate::{golden, plan};
use serde_json::Value;
use trainc_backend::summary_to_json;

#[test]
fn the_summary_has_its_documented_fields() {
    let text = summary_to_json(&plan());
    golden("two_stages.summary.json", &text);
    let summary: Value = serde_json::from_str(&text).unwrap();
    // Two seconds for 384 tokens on two ranks, of which one second is idle.
    assert_eq!(summary["step_time_s"], 2.0);
    assert_eq!(summary["tokens_per_s"], 192.0);
    assert_eq!(summary["bubble_share"], 0.25);
    assert_eq!(summary["recompute"]["total_s"], 3e-12);
    assert_eq!(summary["ranks"][1]["headroom_bytes"], 1000);
}

#[test]
fn a_plan_without_predictions_divides_by_nothing() {
    let mut plan = plan();
    plan.prediction.step_ps = 0;
    let summary: Value = serde_json::from_str(&summary_to_json(&plan)).unwrap();
    assert_eq!(summary["tokens_per_s"], 0.0);
    assert_eq!(summary["bubble_share"], 0.0);
}
