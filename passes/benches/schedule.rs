//! Measures how long schedules take to make and to simulate, and what the search gains on unequal stages.
#![allow(clippy::print_stdout, clippy::expect_used, reason = "a bench prints its results")]

use std::time::Instant;

use trainc_passes::schedule::{
    Boundary, Costs, Generator, ScheduleKind, SearchOptions, Shape, StageCost, Unequal, search, simulate,
};

fn main() {
    let looped = Shape { ranks: 64, loops: 8, micro_batches: 4096 };
    for kind in ScheduleKind::ALL {
        let loops = match kind {
            ScheduleKind::GPipe | ScheduleKind::OneFOneB => 1,
            ScheduleKind::ZbV => 2,
            ScheduleKind::Interleaved | ScheduleKind::BreadthFirst { contiguous: _ } | ScheduleKind::ZbH1 => 8,
        };
        measure(kind, &Shape { loops, ..looped });
    }
    for (ranks, loops, micro_batches, split) in [
        (4, 1, 8, false),
        (4, 1, 16, false),
        (4, 1, 16, true),
        (4, 2, 8, false),
        (8, 1, 32, false),
        (8, 2, 32, true),
        (16, 2, 64, false),
    ] {
        let gains: Vec<Gain> = (0..5).map(|seed| gain(seed, ranks, loops, micro_batches, split)).collect();
        let sum = |of: fn(&Gain) -> u128| gains.iter().map(of).sum::<u128>() / gains.len() as u128;
        println!(
            "search, {ranks} ranks x {loops} stages, {micro_batches} micro-batches{}: {} permille less than the best fixed, \
             gap {} permille, {} of {} proven, {} ms",
            if split { ", split" } else { "" },
            sum(|gain| gain.less),
            sum(|gain| gain.gap),
            gains.iter().filter(|gain| gain.gap == 0).count(),
            gains.len(),
            sum(|gain| gain.ms)
        );
    }
}

/// Makes, checks and simulates three times and prints the least times.
fn measure(kind: ScheduleKind, shape: &Shape) {
    let costs = Costs::uniform(shape.n_stages());
    let mut least = [u128::MAX; 3];
    let mut works = 0;
    for _ in 0..3 {
        let begin = Instant::now();
        let schedule = kind.generate(shape).expect("the shape fits");
        let made = begin.elapsed();
        schedule.check().expect("it can be executed");
        let checked = begin.elapsed() - made;
        simulate(&schedule, &costs).expect("it can be executed");
        let simulated = begin.elapsed() - made - checked;
        works = schedule.ranks.iter().map(Vec::len).sum();
        for (least, time) in least.iter_mut().zip([made, checked, simulated]) {
            *least = (*least).min(time.as_millis());
        }
    }
    let [made, checked, simulated] = least;
    println!(
        "{kind}, {shape:?}: {works} works, made in {made} ms, checked in {checked} ms, simulated in {simulated} ms"
    );
}

/// What a search comes to, in permille and milliseconds.
struct Gain {
    less: u128,
    gap: u128,
    ms: u128,
}

/// Stages that differ by up to a half, links by up to threefold, room for half as many micro-batches more than ranks, and two.
fn gain(seed: u64, ranks: usize, loops: usize, micro_batches: u64, split: bool) -> Gain {
    let mut state = seed;
    let mut number = |from: u64, to: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        from + (state >> 33) % (to - from + 1)
    };
    let n_stages = ranks * loops;
    let stages = (0..n_stages).map(|_| {
        let forward_ps = number(100, 150);
        let (input_grad_ps, weight_grad_ps) = (forward_ps + number(0, 20), forward_ps - number(0, 20));
        StageCost {
            forward_ps,
            backward_ps: input_grad_ps + weight_grad_ps,
            input_grad_ps,
            weight_grad_ps,
            recompute_ps: 0,
            kept_bytes: 100,
            kept_for_weights_bytes: 60,
        }
    });
    let stages = stages.collect();
    let boundaries = (1..n_stages).map(|_| Boundary { forward_ps: number(10, 30), backward_ps: number(10, 30) });
    let costs = Costs { stages, boundaries: boundaries.collect(), traffic: None };
    let problem = Unequal {
        rank_of: (0..n_stages).map(|stage| stage % ranks).collect(),
        micro_batches,
        costs,
        room_bytes: vec![100 * (loops * (ranks + ranks / 2 + 2)) as u64; ranks],
        split,
    };
    let begin = Instant::now();
    let found = search(&problem, &SearchOptions::default()).expect("1F1B fits");
    let ms = begin.elapsed().as_millis();
    let fixed = found.fixed.iter().filter_map(|(_, makespan)| *makespan).min().expect("1F1B fits");
    let permille = |part: u64, whole: u64| u128::from(part) * 1000 / u128::from(whole);
    Gain {
        less: permille(fixed - found.makespan_ps, fixed),
        gap: permille(found.makespan_ps - found.lower_bound_ps, found.makespan_ps),
        ms,
    }
}
