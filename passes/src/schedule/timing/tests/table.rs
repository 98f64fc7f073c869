//! The closed forms of breadth-first pipeline parallelism (arXiv 2211.05953) and of the zero-bubble schedules (arXiv
//! 2401.10241): `p` ranks with `l` stages each, `m` micro-batches, backward twice the forward.

use super::uniform;
use crate::schedule::{Ratio, ScheduleKind, Timing};

const BREADTH_FIRST: ScheduleKind = ScheduleKind::BreadthFirst { contiguous: None };

/// Ranks, stages per rank, micro-batches.
fn shapes(loops: std::ops::RangeInclusive<usize>) -> impl Iterator<Item = (usize, usize, u64)> {
    (1..=8).flat_map(move |p| loops.clone().flat_map(move |l| (1..=34).map(move |m| (p, l, m))))
}

fn ratio(numerator: usize, denominator: usize) -> Ratio {
    Ratio::new(numerator as u128, denominator as u128)
}

/// The slack of the stages of rank 0, in the time in which a rank runs all of its layers forward.
fn slack(timing: &Timing) -> Vec<Ratio> {
    let stages = &timing.ranks[0].stages;
    stages.iter().map(|stage| Ratio::new(u128::from(stage.slack_ps), stages.len() as u128)).collect()
}

/// What all schedules of `l` stages per rank have in common: a micro-batch goes to another rank `l` times, except that nothing
/// comes before the first stage and nothing after the last.
fn sends_as_many(timing: &Timing, p: usize, l: usize, m: u64) {
    for (rank, of_rank) in timing.ranks.iter().enumerate() {
        let all = if p == 1 { 0 } else { l as u64 * m };
        let ends = |at_end: bool| if at_end && p > 1 { m } else { 0 };
        assert_eq!(of_rank.activations_sent, all - ends(rank == p - 1), "rank {rank} of {p}, {l} stages, {m}");
        assert_eq!(of_rank.gradients_sent, all - ends(rank == 0), "rank {rank} of {p}, {l} stages, {m}");
    }
}

#[test]
fn gpipe_and_1f1b() {
    for (p, l, m) in shapes(1..=1) {
        for (kind, peak) in [(ScheduleKind::GPipe, m), (ScheduleKind::OneFOneB, m.min(p as u64))] {
            let timing = uniform(kind, p, l, m);
            let at = format!("{kind} {p} {m}");
            assert_eq!(timing.bubble(), ratio(p - 1, m as usize), "{at}");
            assert_eq!(timing.peak_micro_batches(), Ratio::new(peak.into(), 1), "{at}");
            sends_as_many(&timing, p, l, m);
            for rank in &timing.ranks {
                let [stage] = rank.stages[..] else { panic!("{at}: one stage") };
                assert_eq!((stage.gathers_each_use, stage.gathers_one, stage.reduces), (2 * m, 1, 1), "{at}");
                assert_eq!((stage.slack_ps, rank.switches), (0, 1), "{at}");
            }
        }
    }
}

/// With fewer micro-batches than ranks each of the `l - 1` turns waits for `p - m` more of them; the published form is for
/// `m >= p`.
fn looped_bubble(p: usize, l: usize, m: usize) -> Ratio {
    ratio(p - 1 + (l - 1) * p.saturating_sub(m), m * l)
}

#[test]
fn breadth_first() {
    for (p, l, m) in shapes(1..=4) {
        let timing = uniform(BREADTH_FIRST, p, l, m);
        let at = format!("{p} {l} {m}");
        assert_eq!(timing.bubble(), looped_bubble(p, l, m as usize), "{at}");
        assert_eq!(timing.peak_micro_batches(), Ratio::new(m.into(), 1), "{at}");
        sends_as_many(&timing, p, l, m);
        for rank in &timing.ranks {
            assert_eq!(rank.switches, 2 * l as u64 - 1, "{at}");
            let gathers: Vec<u64> = rank.stages.iter().map(|stage| stage.gathers_one).collect();
            assert_eq!((gathers[0], &gathers[1..]), (1, &vec![2; l - 1][..]), "{at}: the turning stage only once");
            assert!(rank.stages.iter().all(|stage| stage.reduces == 1), "{at}");
        }
        let expected: Vec<Ratio> = (0..l).rev().map(|i| ratio(2 * m as usize * i, l)).collect();
        assert_eq!(slack(&timing), expected, "{at}");
    }
}

#[test]
fn depth_first() {
    // With one stage per rank interleaved is 1F1B.
    for (p, l, m) in shapes(2..=4) {
        let timing = uniform(ScheduleKind::Interleaved, p, l, m);
        let at = format!("{p} {l} {m}");
        assert_eq!(timing.bubble(), looped_bubble(p, l, m as usize), "{at}");
        sends_as_many(&timing, p, l, m);
        let m = m as usize;
        // The published forms are for whole rounds of p micro-batches; longer rounds keep more.
        let n_rounds = (m / p).max(1);
        let (longest, last) = (m.div_ceil(n_rounds), m / n_rounds);
        let peak = ratio((l - 1) * longest + 2 * p - 1, l).min(ratio(m, 1));
        assert_eq!(timing.peak_micro_batches(), peak, "{at}");
        if m.is_multiple_of(p) {
            let published = if m >= 2 * p { ratio(p * l + p - 1, l) } else { ratio(m, 1) };
            assert_eq!(peak, published, "{at}");
        }
        for rank in &timing.ranks {
            for stage in &rank.stages {
                assert_eq!(stage.gathers_two, 2 * n_rounds as u64, "{at}");
                assert_eq!(stage.reduces, n_rounds as u64, "{at}");
            }
        }
        let expected: Vec<Ratio> = (0..l).rev().map(|i| ratio(2 * last * i, l)).collect();
        assert_eq!(slack(&timing), expected, "{at}");
    }
}

#[test]
fn eight_ranks_with_four_stages_each() {
    let timing = |kind, m| uniform(kind, 8, 4, m);
    let numbers = |slack: &[u128]| slack.iter().map(|&number| Ratio::new(number, 1)).collect::<Vec<_>>();
    let depth_first = timing(ScheduleKind::Interleaved, 32);
    assert_eq!(format!("{:.4}", depth_first.bubble()), "0.0547");
    assert_eq!(depth_first.peak_micro_batches().to_string(), "9.75");
    assert_eq!(depth_first.ranks[0].switches, 123);
    assert_eq!(depth_first.ranks[0].stages.iter().map(|stage| stage.gathers_one).sum::<u64>(), 123);
    assert_eq!(slack(&depth_first), numbers(&[12, 8, 4, 0]));
    let breadth_first = timing(BREADTH_FIRST, 32);
    assert_eq!(format!("{:.4}", breadth_first.bubble()), "0.0547");
    assert_eq!(breadth_first.peak_micro_batches().to_string(), "32");
    assert_eq!(breadth_first.ranks[0].switches, 7);
    assert_eq!(slack(&breadth_first), numbers(&[48, 32, 16, 0]));
    for kind in [ScheduleKind::Interleaved, BREADTH_FIRST] {
        let few = timing(kind, 8);
        assert_eq!(format!("{:.4}", few.bubble()), "0.2188");
        assert_eq!(few.peak_micro_batches().to_string(), "8");
        assert_eq!(few.ranks[0].switches, 7);
    }
}

#[test]
fn contiguous_micro_batches_lie_between_depth_first_and_breadth_first() {
    for (p, l, m) in shapes(2..=3).filter(|&(p, _, m)| m >= p as u64 && m <= 20) {
        // All of them in a row is `breadth_first`.
        for n in p..m as usize {
            let timing = uniform(ScheduleKind::BreadthFirst { contiguous: Some(n as u64) }, p, l, m);
            let at = format!("{p} {l} {m} {n}");
            assert_eq!(timing.bubble(), ratio(p - 1, m as usize * l), "{at}");
            let n_rounds = m / n as u64;
            let longest = m.div_ceil(n_rounds) as usize;
            assert_eq!(
                timing.peak_micro_batches(),
                ratio((l - 1) * longest + 2 * p - 1, l).min(ratio(m as usize, 1)),
                "{at}"
            );
            assert!(timing.ranks[0].stages.iter().all(|stage| stage.gathers_two == 2 * n_rounds), "{at}");
        }
    }
}

#[test]
fn zero_bubble() {
    for (p, l, m) in shapes(1..=1).filter(|&(p, _, m)| m >= p as u64) {
        let timing = uniform(ScheduleKind::ZbH1, p, l, m);
        // Forward, input and weight gradients take 1 each: (p - 1) of them are idle, a third of 1F1B's.
        assert_eq!(timing.makespan_ps, 3 * m + p as u64 - 1, "{p} {m}");
        assert_eq!(timing.peak_micro_batches(), ratio(p, 1), "{p} {m}");
    }
    for (p, l, m) in shapes(2..=2).filter(|&(p, _, m)| m >= 2 * p as u64 - 1) {
        let timing = uniform(ScheduleKind::ZbV, p, l, m);
        // Rank p - 1 cannot begin before p - 1, and no rank waits after it has begun.
        assert_eq!(timing.makespan_ps, 6 * m + p as u64 - 1, "{p} {m}");
        assert_eq!(timing.peak_micro_batches(), ratio(p, 1), "{p} {m}");
        let idle: Vec<u64> = timing.ranks.iter().map(|rank| timing.makespan_ps - rank.busy_ps).collect();
        assert!(idle.iter().all(|&idle| idle == p as u64 - 1), "{p} {m}: {idle:?}");
    }
}

#[test]
fn short_rounds_keep_less_and_wait_more() {
    for (p, l, m) in shapes(2..=3).filter(|&(p, _, m)| m >= p as u64 && m <= 16) {
        let interleaved = uniform(ScheduleKind::Interleaved, p, l, m);
        for n in 1..p {
            let timing = uniform(ScheduleKind::BreadthFirst { contiguous: Some(n as u64) }, p, l, m);
            let at = format!("{p} {l} {m} {n}");
            let longest = m.div_ceil(m / n as u64) as usize;
            let most = ratio((l - 1) * longest + 2 * p - 1, l).min(ratio(m as usize, 1));
            assert!(timing.peak_micro_batches() <= most, "{at}");
            assert!(timing.makespan_ps >= interleaved.makespan_ps, "{at}");
            let keeps_less = timing.peak_micro_batches() < interleaved.peak_micro_batches();
            assert!(n > 1 || (keeps_less && timing.makespan_ps > interleaved.makespan_ps), "{at}");
        }
    }
}
