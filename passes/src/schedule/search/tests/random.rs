//! Whatever the problem, the search is as good as every fixed schedule that fits, and fits.

use super::{LITTLE, MUCH, Numbers, problem};
use crate::schedule::search::{FoundBy, SearchOptions, Unequal, search};
use crate::schedule::{Costs, Generator, ScheduleError, ScheduleKind, Shape, simulate};

/// Searches, and holds the result to what every result must be.
fn sound(problem: &Unequal, options: &SearchOptions) -> (u64, u64, Option<u64>) {
    let found = search(problem, options).unwrap_or_else(|error| panic!("{problem:?}: {error}"));
    assert_eq!(found.schedule.check(), Ok(()), "{problem:?}");
    let timing = simulate(&found.schedule, &problem.costs).expect("it was checked");
    assert_eq!(timing.makespan_ps, found.makespan_ps, "{problem:?}");
    for (rank, of_rank) in timing.ranks.iter().enumerate() {
        assert!(of_rank.peak_bytes <= problem.room_bytes[rank], "{problem:?}");
    }
    assert!(found.lower_bound_ps <= found.makespan_ps, "{problem:?}");
    let best = found.fixed.iter().filter_map(|(_, makespan)| *makespan).min();
    assert!(best.is_none_or(|best| found.makespan_ps <= best), "{problem:?}");
    (found.makespan_ps, found.lower_bound_ps, best)
}

#[test]
fn never_worse_than_a_fixed_schedule() {
    let mut numbers = Numbers(7);
    let (mut better, mut fixed) = (0, 0);
    for case in 0..150 {
        let (ranks, loops) = (numbers.next(1, 5) as usize, numbers.next(1, 3) as usize);
        let rank_of: Vec<usize> = match numbers.next(0, 2) {
            0 if loops == 2 => (0..ranks).chain((0..ranks).rev()).collect(),
            1 if case % 5 == 0 => (0..ranks * loops).map(|stage| stage / loops).collect(),
            _ => (0..ranks * loops).map(|stage| stage % ranks).collect(),
        };
        let micro_batches = numbers.next(1, 8);
        let problem = problem(&mut numbers, &rank_of, micro_batches, case % 2 == 0);
        let (found, _, best) = sound(&problem, &LITTLE);
        if let Some(best) = best {
            fixed += 1;
            better += usize::from(found < best);
        }
    }
    // It is not for nothing: on unequal stages a fixed schedule often is not the best.
    assert!(fixed > 60 && 3 * better > fixed, "{better} of {fixed}");
}

#[test]
fn a_lower_bound_holds_for_whatever_is_found_later() {
    let mut numbers = Numbers(11);
    for _ in 0..40 {
        let ranks = numbers.next(2, 4) as usize;
        let rank_of: Vec<usize> = (0..ranks).collect();
        let micro_batches = numbers.next(2, 5);
        let problem = problem(&mut numbers, &rank_of, micro_batches, true);
        let (little, bound, _) = sound(&problem, &SearchOptions { steps: 0 });
        let (much, more, _) = sound(&problem, &MUCH);
        assert!(bound <= more && more <= much && much <= little, "{bound} {more} {much} {little}: {problem:?}");
    }
}

/// Equal stages with this much memory for micro-batches of a rank.
fn uniform(ranks: usize, loops: usize, micro_batches: u64, room: u64, split: bool) -> Unequal {
    let shape = Shape { ranks, loops, micro_batches };
    Unequal {
        rank_of: (0..shape.n_stages()).map(|stage| stage % ranks).collect(),
        micro_batches,
        costs: Costs::uniform(shape.n_stages()),
        room_bytes: vec![room * loops as u64; ranks],
        split,
    }
}

#[test]
fn equal_stages_are_known_to_be_best_as_they_are() {
    let found = search(&uniform(4, 1, 8, 8, false), &MUCH).expect("there is room");
    assert!(found.is_optimal());
    assert_eq!((found.makespan_ps, found.by), (3 * 8 + 3 * 3, FoundBy::Fixed(ScheduleKind::GPipe)));
    // Without room for all GPipe is out, 1F1B still is the best.
    let found = search(&uniform(4, 1, 8, 4, false), &MUCH).expect("there is room");
    assert_eq!(found.fixed[0], (ScheduleKind::GPipe, None));
    assert_eq!((found.makespan_ps, found.gap().to_string()), (33, "0".to_owned()));
    assert_eq!(found.by, FoundBy::Fixed(ScheduleKind::OneFOneB));
    let found = search(&uniform(4, 1, 8, 4, true), &MUCH).expect("there is room");
    assert_eq!((found.makespan_ps, found.is_optimal()), (3 * 8 + 3, true));
    assert_eq!(found.by, FoundBy::Fixed(ScheduleKind::ZbH1));
    let found = search(&uniform(4, 2, 8, 8, false), &MUCH).expect("there is room");
    assert_eq!((found.makespan_ps, found.is_optimal()), (6 * 8 + 9, true));
}

#[test]
fn memory_decides_what_can_be_had() {
    let mut before = u64::MAX;
    for room in 1..=6 {
        let (found, _, _) = sound(&uniform(3, 1, 6, room, false), &MUCH);
        assert!(found <= before, "{room}");
        before = found;
    }
    assert_eq!(before, 3 * 6 + 3 * 2);
    let one = search(&uniform(3, 1, 6, 1, false), &MUCH).expect("one micro-batch fits");
    assert_eq!((one.makespan_ps, one.is_optimal()), (6 * 9, true), "one after the other");
    assert_eq!(one.by, FoundBy::OneByOne);
    let none = search(&uniform(3, 1, 6, 0, false), &MUCH).unwrap_err();
    assert_eq!(none, ScheduleError::NoRoom { rank: 0, needed: 1, room: 0 });
    assert_eq!(
        none.to_string(),
        "rank 0 keeps at least 1 bytes of activations under every schedule, and has room for 0"
    );
}

#[test]
fn large_problems_end_with_the_best_fixed_schedule_at_least() {
    let shape = Shape { ranks: 8, loops: 4, micro_batches: 64 };
    let problem = uniform(8, 4, 64, 64, false);
    let (found, _, best) = sound(&problem, &SearchOptions { steps: 100_000 });
    let schedule = ScheduleKind::BreadthFirst { contiguous: None }.generate(&shape).expect("it fits the shape");
    let fixed = simulate(&schedule, &problem.costs).expect("it is executable").makespan_ps;
    assert_eq!((found, best), (fixed, Some(fixed)));
}
