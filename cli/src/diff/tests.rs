//! Tests of differences and conditions; what is expected is said by hand.

use super::facts::RankFacts;
use super::{Condition, Facts, PlanDiff, words};
use crate::failure::FailureKind;
use trainc_ir::plan::Breakdown;

const GIB: u64 = 1 << 30;

fn facts(device: &[u64], step_ps: u64) -> Facts {
    let rank = |(i, &device_bytes): (usize, &u64)| RankFacts {
        gpu: "T4".to_owned(),
        group: "t4".to_owned(),
        stage: i as u32,
        units: vec![format!("block {i}")],
        recomputed_blocks: 0,
        arena_bytes: device_bytes,
        device_bytes,
        capacity_bytes: 15 * GIB,
        breakdown: Breakdown { saved: device_bytes, ..Breakdown::default() },
    };
    Facts {
        model: "m".to_owned(),
        cluster: "c".to_owned(),
        micro_batches: 4,
        step_ps,
        bubble_ppm: 200_000,
        recompute_ps: 0,
        exposed_recompute_ps: 0,
        ranks: device.iter().enumerate().map(rank).collect(),
        plan: None,
    }
}

fn diff(before: Facts, after: Facts) -> PlanDiff {
    let differences = words::differences(&before, &after);
    PlanDiff { before, after, differences }
}

fn holds(condition: &str, diff: &PlanDiff) -> bool {
    condition.parse::<Condition>().unwrap().check(diff).is_some()
}

#[test]
fn conditions_are_exact() {
    // 100 -> 102 bytes on the fullest GPU, 1 s -> 0.9 s, one GPU more.
    let of = diff(facts(&[100, 50], 1_000_000_000_000), facts(&[102, 50, 1], 900_000_000_000));
    for (condition, expected) in [
        ("peak>+2%", false),
        ("peak>=+2%", true),
        ("peak>+1.99%", true),
        ("peak > +1B", true),
        ("peak>+2B", false),
        ("peak>101B", true),
        ("peak>0.1KiB", false),
        ("peak<103B", true),
        ("step<-9%", true),
        ("step<-10%", false),
        ("step<=-10%", true),
        ("step>+0%", false),
        ("step<-99ms", true),
        ("step>0.89s", true),
        ("gpus>+0", true),
        ("gpus>2", true),
        ("gpus>3", false),
        ("stages>+0", true),
        ("bubble>19.9%", true),
        ("bubble>+0%", false),
        ("exposed-recompute>0", false),
        ("saved>+1%", true),
        ("parameters>+1%", false),
    ] {
        assert_eq!(holds(condition, &of), expected, "{condition}");
    }
    let message = "peak>+1%".parse::<Condition>().unwrap().check(&of).unwrap().message;
    assert_eq!(message, "`peak>+1%` holds: `peak` was 100 B and is 102 B");
}

#[test]
fn growth_from_nothing_is_more_than_any_share() {
    let mut after = facts(&[1], 1);
    after.recompute_ps = 1;
    let of = diff(facts(&[1], 1), after);
    assert!(holds("recompute>+1000%", &of));
    assert!(!holds("recompute<+1000%", &of) && !holds("exposed-recompute>+0%", &of));
}

#[test]
fn what_is_no_condition_is_refused() {
    for wrong in
        ["", "peak", "peak=3B", "weight>1B", "peak>2%", "peak>", "peak>x", "peak>+2", "peak>2s", "step>1GiB", "gpus>1B"]
    {
        let failure = wrong.parse::<Condition>().unwrap_err();
        let help = failure.diagnostics[0].help.clone().unwrap_or_default();
        assert_eq!(failure.kind, FailureKind::Usage, "{wrong}");
        assert!(help.contains("`peak>+2%`") && help.contains("`exposed-recompute`"), "{wrong}: {help}");
    }
    for wrong in ["peak>1.2.3B", "peak>--1B", "peak>9999999999999999B", "peak>.B"] {
        assert!(wrong.parse::<Condition>().is_err(), "{wrong}");
    }
}

#[test]
fn the_most_important_comes_first() {
    let mut after = facts(&[2 * GIB, 3 * GIB], 2_000_000_000_000);
    after.ranks[0].units = vec!["block 0".to_owned(), "block 1".to_owned()];
    after.ranks[1].units = Vec::new();
    after.ranks[1].recomputed_blocks = 2;
    after.ranks[1].gpu = "A100".to_owned();
    let of = diff(facts(&[GIB, 3 * GIB], 1_000_000_000_000), after);
    let texts: Vec<&str> = of.differences.iter().map(|difference| difference.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "GPUs: 2 x T4 -> 1 x T4, 1 x A100",
            "step time: 1.00 s -> 2.00 s (100.0 % slower)",
            "rank 0: memory 1.00 GiB -> 2.00 GiB: saved +1.00 GiB",
            "rank 1: now a A100 instead of a T4",
            "block 1 moved from stage 1 to stage 0",
            "stage 1 recomputes 2 blocks instead of 0",
        ]
    );
    assert!(diff(facts(&[1], 1), facts(&[1], 1)).differences.is_empty());
}

#[test]
fn equal_ranks_are_told_of_once() {
    let of = diff(facts(&[GIB, GIB, GIB], 1), facts(&[2 * GIB, 2 * GIB, 2 * GIB], 1));
    let ranks: Vec<&str> = of.differences.iter().filter(|of| of.topic == "rank").map(|of| of.text.as_str()).collect();
    assert_eq!(ranks, ["ranks 0-2: memory 1.00 GiB -> 2.00 GiB: saved +1.00 GiB"]);
}
