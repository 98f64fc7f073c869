//! Small cases worked out by hand.

use crate::schedule::{
    Boundary, Costs, GPipe, Generator, Reduce, Resident, Schedule, ScheduleError, Shape, StageCost, Traffic, Work,
    simulate,
};

fn gpipe(ranks: usize, micro_batches: u64) -> Schedule {
    GPipe.generate(&Shape { ranks, loops: 1, micro_batches }).expect("gpipe takes any shape")
}

fn stage(forward_ps: u64, backward_ps: u64) -> StageCost {
    StageCost { forward_ps, backward_ps, ..StageCost::default() }
}

#[test]
fn unequal_stages_and_links() {
    let boundaries = vec![Boundary { forward_ps: 2, backward_ps: 4 }];
    let mut costs = Costs { stages: vec![stage(3, 7), stage(5, 11)], boundaries, traffic: None };
    let timing = simulate(&gpipe(2, 1), &costs).expect("it is executable");
    assert_eq!(timing.makespan_ps, 3 + 2 + 5 + 11 + 4 + 7);
    assert_eq!((timing.ranks[0].busy_ps, timing.ranks[0].idle_ps), (10, 22));
    assert_eq!((timing.ranks[1].end_ps, timing.bubble().to_string()), (21, "1.4615".to_owned()));
    // Stage 0 computes again while it waits for its gradient; stage 1 has nothing to wait for.
    costs.stages[0].recompute_ps = 6;
    assert_eq!(simulate(&gpipe(2, 1), &costs).map(|timing| timing.makespan_ps), Ok(32));
    costs.stages[1].recompute_ps = 6;
    assert_eq!(simulate(&gpipe(2, 1), &costs).map(|timing| timing.makespan_ps), Ok(38));
}

#[test]
fn a_slow_link_carries_one_transfer_at_a_time() {
    let boundaries = vec![Boundary { forward_ps: 10, backward_ps: 0 }];
    let costs = Costs { stages: vec![stage(1, 1); 2], boundaries, traffic: None };
    // Transfers 1..11 and 11..21; the second forward ends at 22; backwards at 23 and 24; the first rank's last at 25.
    assert_eq!(simulate(&gpipe(2, 2), &costs).map(|timing| timing.makespan_ps), Ok(25));
}

/// One rank with two stages and one micro-batch.
fn looped() -> Schedule {
    let works = vec![Work::forward(0, 0), Work::forward(1, 0), Work::backward(1, 0), Work::backward(0, 0)];
    Schedule { micro_batches: 1, rank_of: vec![0, 0], ranks: vec![works] }
}

#[test]
fn weights_are_gathered_and_gradients_reduced_beside_the_work() {
    let traffic = |buffers, resident| Traffic {
        gather_ps: vec![5; 2],
        reduce_ps: vec![3; 2],
        resident,
        reduce: Reduce::EachTurn,
        buffers,
    };
    let makespan = |traffic| {
        let costs =
            Costs { stages: vec![stage(2, 4); 2], boundaries: vec![Boundary::default()], traffic: Some(traffic) };
        simulate(&looped(), &costs).expect("it is executable").makespan_ps
    };
    // Gathers 0..5, 5..10, 10..15; forwards 5..7, 10..12; backwards 12..16, 16..20; reductions 16..19, 20..23.
    assert_eq!(makespan(traffic(2, Resident::One)), 23);
    // Gathers 0..5, 7..12, 18..23; forwards 5..7, 12..14; backward 14..18; reduction 23..26 before the backward 26..30.
    assert_eq!(makespan(traffic(1, Resident::One)), 33);
    // Gathers 0..5, 5..10 and no more; backwards 12..16, 16..20.
    assert_eq!(makespan(traffic(1, Resident::All)), 10 + 2 + 4 + 3 + 4 + 3);
    // Four gathers, two ahead: 0..5, 5..10, 10..15, 15..20; forwards 5..7, 10..12; backwards 15..19, 20..24.
    assert_eq!(makespan(traffic(2, Resident::EachUse)), 27);
    // The last stage is gathered for each direction: 0..5, 5..10, and for the backwards 10..15, 15..20.
    assert_eq!(makespan(traffic(2, Resident::ForwardAndBackward)), 27);
}

#[test]
fn bytes_are_kept_until_the_gradients_are_done() {
    let (f, i, w) = (Work::forward, Work::input_grad, Work::weight_grad);
    let works = vec![f(0, 0), f(0, 1), i(0, 0), i(0, 1), w(0, 0), w(0, 1)];
    let schedule = Schedule { micro_batches: 2, rank_of: vec![0], ranks: vec![works] };
    let mut costs = Costs::uniform(1);
    costs.stages[0].kept_bytes = 10;
    costs.stages[0].kept_for_weights_bytes = 4;
    let timing = simulate(&schedule, &costs).expect("it is executable");
    assert_eq!((timing.peak_bytes(), timing.peak_micro_batches().to_string()), (20, "2".to_owned()));
    costs.stages[0].kept_for_weights_bytes = 13;
    assert_eq!(simulate(&schedule, &costs).map(|timing| timing.peak_bytes()), Ok(26));
}

#[test]
fn numbers_for_other_stages_are_refused() {
    let error = simulate(&gpipe(2, 1), &Costs::uniform(3)).unwrap_err();
    assert_eq!(error, ScheduleError::Costs { what: "stages", number: 3, expected: 2 });
    assert_eq!(error.to_string(), "costs of 3 stages: there are 2");
}
