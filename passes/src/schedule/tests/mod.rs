//! Generated schedules are executable; broken ones are refused.

mod torch;

use super::{Generator, Schedule, ScheduleError, ScheduleKind, Shape, Work};

/// All kinds that have a schedule for so many stages per rank.
fn kinds(loops: usize) -> Vec<ScheduleKind> {
    let mut kinds = vec![ScheduleKind::Interleaved, ScheduleKind::ZbH1];
    kinds.extend([None, Some(1), Some(2), Some(3), Some(5)].map(|n| ScheduleKind::BreadthFirst { contiguous: n }));
    if loops == 1 {
        kinds.extend([ScheduleKind::GPipe, ScheduleKind::OneFOneB]);
    }
    if loops == 2 {
        kinds.push(ScheduleKind::ZbV);
    }
    kinds
}

#[test]
fn all_shapes_give_executable_schedules() {
    for ranks in 1..=6 {
        for loops in 1..=4 {
            for micro_batches in 1..=14 {
                let shape = Shape { ranks, loops, micro_batches };
                for kind in kinds(loops) {
                    let schedule = kind.generate(&shape).unwrap_or_else(|error| panic!("{kind} {shape:?}: {error}"));
                    assert_eq!(schedule.check(), Ok(()), "{kind} {shape:?}");
                }
            }
        }
    }
}

#[test]
fn names_are_read_as_they_are_written() {
    for loops in 1..=2 {
        for kind in kinds(loops) {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
    }
    for name in ["", "GPipe", "breadth-first:", "breadth-first:0", "breadth-first:x"] {
        assert_eq!(name.parse::<ScheduleKind>(), Err(ScheduleError::UnknownKind { name: name.to_owned() }));
    }
}

fn two_ranks(first: &[Work], second: &[Work]) -> Schedule {
    Schedule { micro_batches: 2, rank_of: vec![0, 1], ranks: vec![first.to_vec(), second.to_vec()] }
}

#[test]
fn broken_schedules_are_refused() {
    let (f, b) = (Work::forward, Work::backward);
    let good = [f(1, 0), b(1, 0), f(1, 1), b(1, 1)];
    let first = [f(0, 0), f(0, 1), b(0, 0), b(0, 1)];
    assert_eq!(two_ranks(&first, &good).check(), Ok(()));
    let split = [f(1, 0), Work::input_grad(1, 0), f(1, 1), Work::weight_grad(1, 0), b(1, 1)];
    assert_eq!(two_ranks(&first, &split).check(), Ok(()));
    let error = |second: &[Work]| two_ranks(&first, second).check().unwrap_err().to_string();
    assert_eq!(error(&good[..3]), "1B1 is not done");
    assert_eq!(error(&split[..3]), "1W0 is not done");
    assert_eq!(error(&[good[0], good[1], good[2], good[3], b(1, 0)]), "1B0 is done twice");
    assert_eq!(error(&[f(0, 0)]), "rank 1 does 0F0, but stage 0 is on rank 0");
    assert_eq!(error(&[f(1, 2)]), "rank 1 does 1F2 in a schedule of 2 stages and 2 micro-batches, counted from 0");
    assert_eq!(
        error(&[f(1, 0), f(1, 1), b(1, 1), b(1, 0)]),
        "1B0 comes after micro-batch 1: a stage must add up gradients in ascending order of micro-batches"
    );
    let waits = two_ranks(&[f(0, 0), b(0, 0), f(0, 1), b(0, 1)], &[f(1, 0), f(1, 1), b(1, 0), b(1, 1)]);
    let error = waits.check().unwrap_err().to_string();
    assert_eq!(error, "rank 0 waits for ever: its 0B0 needs 1I0, which never comes");
}

#[test]
fn shapes_without_a_schedule_say_why() {
    let error = |kind: ScheduleKind, ranks, loops, micro_batches| {
        kind.generate(&Shape { ranks, loops, micro_batches }).unwrap_err().to_string()
    };
    assert_eq!(error(ScheduleKind::GPipe, 4, 2, 8), "expected 1 stage per rank for gpipe, found 2");
    assert_eq!(error(ScheduleKind::ZbV, 4, 3, 8), "expected 2 stages per rank for zb-v, found 3");
    assert_eq!(error(ScheduleKind::Interleaved, 0, 2, 8), "a schedule with 0 ranks: at least 1 is needed");
    assert_eq!(
        error(ScheduleKind::ZbH1, 4, 1, u64::MAX),
        "4 stages and 18446744073709551615 micro-batches are too many: at most 16777216 pairs of both can be scheduled"
    );
}
