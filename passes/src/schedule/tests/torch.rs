//! PyTorch's orders and ours, in one simulator with equal times. The orders are written by
//! `testdata/scripts/torch_schedules.py`.

use crate::schedule::{Costs, Generator, Ratio, Schedule, ScheduleKind, Shape, Timing, simulate};

/// The shapes of a file, with PyTorch's schedules.
fn goldens(text: &str) -> Vec<(Shape, Schedule)> {
    let sections = text.split("shape,").skip(1).map(|section| {
        let (shape, rows) = section.split_once('\n').expect("rows follow the shape");
        let numbers: Vec<u64> = shape.split(',').map(|number| number.parse().expect("a number")).collect();
        let shape = Shape { ranks: numbers[0] as usize, loops: numbers[1] as usize, micro_batches: numbers[2] };
        let schedule = Schedule::from_torch_csv(rows).unwrap_or_else(|error| panic!("{shape:?}: {error}"));
        assert_eq!(schedule.micro_batches, shape.micro_batches, "{shape:?}");
        (shape, schedule)
    });
    let sections: Vec<_> = sections.collect();
    assert!(sections.len() >= 4);
    sections
}

/// Ours and PyTorch's.
fn both(kind: &str, text: &str) -> Vec<(Shape, [Schedule; 2], [Timing; 2])> {
    let kind: ScheduleKind = kind.parse().expect("it is a name");
    let both = goldens(text).into_iter().map(|(shape, theirs)| {
        let ours = kind.generate(&shape).unwrap_or_else(|error| panic!("{kind} {shape:?}: {error}"));
        let time = |schedule| simulate(schedule, &Costs::uniform(shape.n_stages())).expect("it is executable");
        let times = [time(&ours), time(&theirs)];
        (shape, [ours, theirs], times)
    });
    both.collect()
}

macro_rules! golden {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../testdata/passes/schedule/", $name, ".csv")))
    };
}

#[test]
fn most_orders_are_pytorchs_to_the_letter() {
    for (kind, text) in [golden!("gpipe"), golden!("1f1b"), golden!("interleaved"), golden!("zb-h1"), golden!("zb-v")] {
        for (shape, [ours, theirs], _) in both(kind, text) {
            assert_eq!(ours.to_torch_csv(), theirs.to_torch_csv(), "{kind} {shape:?}");
            assert_eq!(ours, theirs, "{kind} {shape:?}");
        }
    }
}

#[test]
fn breadth_first_differs_in_the_order_of_backwards_alone() {
    let (kind, text) = golden!("breadth-first");
    for (shape, [ours, theirs], [our_time, their_time]) in both(kind, text) {
        let sorted = |schedule: &Schedule| {
            let mut ranks = schedule.ranks.clone();
            for stages in &mut ranks {
                // PyTorch runs the backwards of a stage from the last micro-batch to the first.
                stages.chunk_by_mut(|one, next| (one.kind, one.stage) == (next.kind, next.stage)).for_each(<[_]>::sort);
            }
            ranks
        };
        assert_eq!(sorted(&ours), sorted(&theirs), "{shape:?}");
        assert_eq!(our_time.makespan_ps, their_time.makespan_ps, "{shape:?}");
        assert_eq!(our_time.peak_micro_batches(), their_time.peak_micro_batches(), "{shape:?}");
    }
}

#[test]
fn equal_times_give_equal_makespans_and_peaks() {
    let all = [
        golden!("gpipe"),
        golden!("1f1b"),
        golden!("interleaved"),
        golden!("breadth-first"),
        golden!("zb-h1"),
        golden!("zb-v"),
    ];
    for (kind, text) in all {
        for (shape, _, [ours, theirs]) in both(kind, text) {
            assert_eq!(ours.makespan_ps, theirs.makespan_ps, "{kind} {shape:?}");
            let peaks = |timing: &Timing| timing.ranks.iter().map(|rank| rank.peak_micro_batches).collect::<Vec<_>>();
            assert_eq!(peaks(&ours), peaks(&theirs), "{kind} {shape:?}");
        }
    }
}

#[test]
fn zb_v_is_as_fast_as_dual_pipe_v_and_keeps_half_a_micro_batch_less() {
    let (_, text) = golden!("dual-pipe-v");
    for (shape, theirs) in goldens(text) {
        let time =
            |schedule: &Schedule| simulate(schedule, &Costs::uniform(shape.n_stages())).expect("it is executable");
        let (theirs, ours) = (time(&theirs), time(&ScheduleKind::ZbV.generate(&shape).expect("it has two stages")));
        assert_eq!(ours.makespan_ps, theirs.makespan_ps, "{shape:?}");
        assert_eq!(theirs.peak_micro_batches(), Ratio::new(2 * shape.ranks as u128 + 1, 2), "{shape:?}");
        assert_eq!(ours.peak_micro_batches(), Ratio::new(shape.ranks as u128, 1), "{shape:?}");
    }
}

#[test]
fn tables_are_read_with_care() {
    let read = |text: &str| Schedule::from_torch_csv(text);
    let split = read("0F0,,0I0,0W0\r\n1F0,1B0\r\n").expect("empty cells are left out");
    assert_eq!((split.to_torch_csv().as_str(), split.rank_of.as_slice()), ("0F0,0I0,0W0\n1F0,1B0\n", &[0, 1][..]));
    assert_eq!(split.check(), Ok(()));
    let error = |text: &str| read(text).unwrap_err().to_string();
    let expected = "expected a stage, one of F, B, I and W, and a micro-batch";
    for cell in ["0SEND_F0", "0F", "F0", "0F+1", "0F99999999999", "99999999F0", "é", "0é0"] {
        assert_eq!(error(cell), format!("line 1 has `{cell}`: {expected}"));
    }
    assert_eq!(error("0F0\n(1F0;1B0)BOTH"), format!("line 2 has `(1F0;1B0)BOTH`: {expected}"));
    assert_eq!(error("0F0\n0B0"), "rank 1 does 0B0, but stage 0 is on rank 0");
    assert_eq!(error("1F0"), "0F0 is not done");
}
