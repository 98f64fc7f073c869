//! Where breadth-first wins and where it loses: the table in `docs/schedules.md`.

use super::{Costs, Timing, simulate};
use crate::schedule::{Boundary, Generator, Reduce, Resident, ScheduleKind, Shape, StageCost, Traffic};

const DOCS: &str = include_str!("../../../../../docs/schedules.md");
const RANKS: usize = 8;
/// Stages per rank of looped schedules.
const LOOPS: usize = 4;
/// Micro-batches of a rank's layers that fit.
const ROOM: u128 = 16;

/// A schedule on eight ranks, each with layers that take 4 forward and 8 backward, gathered in 24 and reduced in 24.
fn timing(kind: ScheduleKind, resident: Resident, loops: usize, micro_batches: u64) -> Timing {
    let shape = Shape { ranks: RANKS, loops, micro_batches };
    let scale = (LOOPS / loops) as u64;
    let stage = StageCost { forward_ps: scale, backward_ps: 2 * scale, ..StageCost::default() };
    let n = shape.n_stages();
    let traffic = Traffic {
        gather_ps: vec![6 * scale; n],
        reduce_ps: vec![6 * scale; n],
        resident,
        reduce: Reduce::EachTurn,
        buffers: 2,
    };
    let costs = Costs { stages: vec![stage; n], boundaries: vec![Boundary::default(); n - 1], traffic: Some(traffic) };
    let schedule = kind.generate(&shape).expect("the shape fits the kind");
    simulate(&schedule, &costs).expect("it is executable")
}

#[test]
fn the_documented_table_is_what_comes_out() {
    let mut table = String::from(
        "| micro-batches | `1f1b`: step | keeps | `interleaved`: step | keeps | `breadth-first`: step | keeps | fastest in \
         room for 16 |\n|---|---|---|---|---|---|---|---|\n",
    );
    let breadth_first = ScheduleKind::BreadthFirst { contiguous: None };
    for micro_batches in [8, 16, 32, 64, 128] {
        let kinds = [
            (ScheduleKind::OneFOneB, timing(ScheduleKind::OneFOneB, Resident::One, 1, micro_batches)),
            (
                ScheduleKind::Interleaved,
                timing(ScheduleKind::Interleaved, Resident::ForwardAndBackward, LOOPS, micro_batches),
            ),
            (breadth_first, timing(breadth_first, Resident::One, LOOPS, micro_batches)),
        ];
        let fits = |timing: &Timing| timing.peak_micro_batches() <= crate::schedule::Ratio::new(ROOM, 1);
        let fastest =
            kinds.iter().rev().filter(|(_, timing)| fits(timing)).min_by_key(|(_, timing)| timing.makespan_ps);
        let (fastest, _) = fastest.expect("1F1B keeps 8");
        table += &format!("| {micro_batches} |");
        for (_, timing) in &kinds {
            table += &format!(" {} | {} |", timing.makespan_ps, timing.peak_micro_batches());
        }
        table += &format!(" `{fastest}` |\n");
    }
    assert!(DOCS.contains(&table), "docs/schedules.md should have:\n{table}");
}
