//! All orders of small problems, one by one, each replayed by the simulator.

use super::{MUCH, Numbers, problem};
use crate::schedule::search::{Unequal, search};
use crate::schedule::{Schedule, Work, WorkKind, simulate};

/// All orders of a rank's work that add up gradients in ascending order and fit the memory. With `ascending` only those whose
/// forwards and input gradients ascend too.
fn orders(problem: &Unequal, rank: usize, ascending: bool) -> Vec<Vec<Work>> {
    let stages = (0..problem.rank_of.len()).filter(|&stage| problem.rank_of[stage] == rank);
    let pairs: Vec<(usize, u64)> =
        stages.flat_map(|stage| (0..problem.micro_batches).map(move |micro_batch| (stage, micro_batch))).collect();
    let mut found = Vec::new();
    grow(problem, rank, &pairs, ascending, &mut Vec::new(), &mut found);
    found
}

/// Appends each work that can come next.
fn grow(
    problem: &Unequal,
    rank: usize,
    pairs: &[(usize, u64)],
    ascending: bool,
    order: &mut Vec<Work>,
    found: &mut Vec<Vec<Work>>,
) {
    let has = |order: &[Work], kind, stage, micro_batch| order.contains(&Work { kind, stage, micro_batch });
    let whole = |order: &[Work], stage, micro_batch| has(order, WorkKind::Backward, stage, micro_batch);
    let summed = |order: &[Work], stage, micro_batch| {
        whole(order, stage, micro_batch) || has(order, WorkKind::WeightGrad, stage, micro_batch)
    };
    if pairs.iter().all(|&(stage, micro_batch)| summed(order, stage, micro_batch)) {
        found.push(order.clone());
        return;
    }
    for &(stage, micro_batch) in pairs {
        let before =
            |kind| (0..micro_batch).all(|before| has(order, kind, stage, before) || whole(order, stage, before));
        let all_summed = (0..micro_batch).all(|before| summed(order, stage, before));
        let sent = whole(order, stage, micro_batch) || has(order, WorkKind::InputGrad, stage, micro_batch);
        let run = has(order, WorkKind::Forward, stage, micro_batch);
        let mut next = Vec::new();
        if !run && (!ascending || (0..micro_batch).all(|before| has(order, WorkKind::Forward, stage, before))) {
            next.push(Work::forward(stage, micro_batch));
        }
        if run && !sent && all_summed {
            next.push(Work::backward(stage, micro_batch));
        }
        if problem.split && run && !sent && (!ascending || before(WorkKind::InputGrad)) {
            next.push(Work::input_grad(stage, micro_batch));
        }
        if sent && !summed(order, stage, micro_batch) && all_summed {
            next.push(Work::weight_grad(stage, micro_batch));
        }
        for work in next {
            order.push(work);
            if kept(problem, order) <= problem.room_bytes[rank] {
                grow(problem, rank, pairs, ascending, order, found);
            }
            order.pop();
        }
    }
}

/// Bytes kept after these works.
fn kept(problem: &Unequal, order: &[Work]) -> u64 {
    let change = |work: &Work| {
        let cost = &problem.costs.stages[work.stage];
        let (kept, for_weights) = (cost.kept_bytes as i64, cost.kept_for_weights_bytes as i64);
        match work.kind {
            WorkKind::Forward => kept,
            WorkKind::Backward => -kept,
            WorkKind::InputGrad => for_weights - kept,
            WorkKind::WeightGrad => -for_weights,
        }
    };
    order.iter().map(change).sum::<i64>() as u64
}

/// The least makespan of all combinations of orders.
fn least(problem: &Unequal, ascending: bool) -> u64 {
    let orders: Vec<Vec<Vec<Work>>> =
        (0..problem.room_bytes.len()).map(|rank| orders(problem, rank, ascending)).collect();
    let n_combinations: usize = orders.iter().map(Vec::len).product();
    assert!((1..300_000).contains(&n_combinations), "{n_combinations} combinations");
    let replay = |mut combination: usize| {
        let pick = |orders: &Vec<Vec<Work>>| {
            let order = orders[combination % orders.len()].clone();
            combination /= orders.len();
            order
        };
        let ranks = orders.iter().map(pick).collect();
        let schedule = Schedule { micro_batches: problem.micro_batches, rank_of: problem.rank_of.clone(), ranks };
        // Ranks that wait for each other for ever are no order.
        simulate(&schedule, &problem.costs).ok().map(|timing| timing.makespan_ps)
    };
    (0..n_combinations).filter_map(replay).min().expect("some order can be executed")
}

/// The search proves the least makespan, for problems with many seeds.
fn search_finds_the_least(rank_of: &[usize], micro_batches: u64, split: bool, ascending: bool, seeds: u64) {
    for seed in 0..seeds {
        let problem = problem(&mut Numbers(seed), rank_of, micro_batches, split);
        let at = format!("seed {seed}: {problem:?}");
        let found = search(&problem, &MUCH).unwrap_or_else(|error| panic!("{at}: {error}"));
        assert!(found.is_optimal(), "{at}: {} not proven, bound {}", found.makespan_ps, found.lower_bound_ps);
        assert_eq!(found.makespan_ps, least(&problem, ascending), "{at}");
        assert_eq!(found.schedule.check(), Ok(()), "{at}");
        let timing = simulate(&found.schedule, &problem.costs).expect("it was checked");
        assert_eq!(timing.makespan_ps, found.makespan_ps, "{at}");
    }
}

#[test]
fn one_stage_per_rank() {
    // Forwards in any order; the other cases hold them to ascending order.
    search_finds_the_least(&[0, 1], 2, false, false, 40);
    search_finds_the_least(&[0, 1], 3, false, false, 6);
    search_finds_the_least(&[0, 1, 2], 2, false, false, 40);
    search_finds_the_least(&[0, 1], 4, false, true, 40);
    search_finds_the_least(&[0, 1, 2], 3, false, true, 40);
    search_finds_the_least(&[0, 1, 2, 3], 3, false, true, 20);
}

#[test]
fn several_stages_per_rank() {
    search_finds_the_least(&[0, 1, 0], 2, false, true, 30);
    search_finds_the_least(&[0, 0, 1], 2, false, true, 30);
    search_finds_the_least(&[0, 1, 0, 1], 1, false, true, 40);
    search_finds_the_least(&[0, 1, 1, 0], 2, false, true, 4);
}

#[test]
fn split_backwards() {
    search_finds_the_least(&[0, 1], 2, true, false, 30);
    search_finds_the_least(&[0, 1], 3, true, true, 12);
    search_finds_the_least(&[0, 1, 2], 2, true, true, 30);
    search_finds_the_least(&[0, 1, 1, 0], 1, true, true, 30);
}
