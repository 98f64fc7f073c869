//! Every code that a diagnostic of trainc can have, with its meaning.

use crate::cluster::PLANNED_CLUSTER_CODES;
use crate::failure::COMMAND_CODES;
use crate::infeasible::PLAN_CODES;
use std::collections::BTreeMap;
use trainc_backend::{EMIT_CODES, REQUEST_CODES};
use trainc_frontend::ONNX_CODES;
use trainc_ir::plan::{PlanError, PlanRule};
use trainc_ir::text::TEXT_CODES;
use trainc_ir::{CLUSTER_CODES, PROFILE_CODES, Rule};
use trainc_passes::transform::TRANSFORM_CODES;

/// The codes in ascending order of their numbers.
pub fn codes() -> Vec<(&'static str, &'static str)> {
    let mut all: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let own = [
        (PlanError::CODE, "the plan does not compute what its model says: it was changed, or is the work of a bug"),
        ("E0590", "a pass left a graph that is not valid: a bug that is worth a report"),
        ("E0591", "the graph that the passes got is not valid: a bug that is worth a report"),
    ];
    let onnx = ONNX_CODES.iter().map(|info| (info.code, info.meaning));
    let crates = [
        &CLUSTER_CODES[..],
        &PROFILE_CODES[..],
        &TEXT_CODES[..],
        &TRANSFORM_CODES[..],
        &EMIT_CODES[..],
        &REQUEST_CODES[..],
    ];
    let here = [&PLAN_CODES[..], &PLANNED_CLUSTER_CODES[..], &COMMAND_CODES[..], &own[..]];
    for (code, meaning) in onnx.chain(crates.into_iter().chain(here).flatten().copied()) {
        all.insert((&code[1..], code), meaning);
    }
    all.into_iter().map(|((_, code), meaning)| (code, meaning)).collect()
}

/// The rules of the verifiers of graphs (`V06`) and plans (`P21`), with what they demand.
pub fn rules() -> Vec<(String, &'static str)> {
    let graphs = Rule::ALL.iter().map(|rule| (rule.to_string(), rule.meaning()));
    graphs.chain(PlanRule::ALL.iter().map(|(rule, meaning)| (rule.to_string(), *meaning))).collect()
}

#[cfg(test)]
mod tests {
    use super::{codes, rules};

    #[test]
    fn no_rule_is_named_like_another_rule_or_a_code() {
        let mut names: Vec<String> = rules().into_iter().map(|(name, _)| name).collect();
        names.extend(codes().into_iter().map(|(name, _)| name.to_owned()));
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn codes_have_one_meaning_each() {
        let codes = codes();
        for pair in codes.windows(2) {
            assert!(pair[0].0[1..] < pair[1].0[1..], "{pair:?} share a number");
        }
        assert!(codes.iter().all(|(code, meaning)| code.len() == 5 && meaning.len() > 15));
    }
}
