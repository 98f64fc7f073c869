//! Where the search starts: the fixed schedules of a placement, and the one that needs the least memory.

use super::Unequal;
use crate::schedule::{Generator, Schedule, ScheduleKind, Shape, Work};

/// The fixed schedules with this placement of stages, whether they fit the memory or not.
pub(super) fn schedules(problem: &Unequal) -> Vec<(ScheduleKind, Schedule)> {
    let ranks = problem.room_bytes.len();
    let shape = Shape { ranks, loops: problem.rank_of.len() / ranks, micro_batches: problem.micro_batches };
    let mut kinds = ScheduleKind::ALL.to_vec();
    let mut contiguous = 2 * ranks as u64;
    while contiguous < problem.micro_batches {
        kinds.push(ScheduleKind::BreadthFirst { contiguous: Some(contiguous) });
        contiguous *= 2;
    }
    let splits = |kind: &ScheduleKind| matches!(kind, ScheduleKind::ZbH1 | ScheduleKind::ZbV);
    let kinds = kinds.into_iter().filter(|kind| problem.split || !splits(kind));
    let schedules = kinds.filter_map(|kind| Some((kind, kind.generate(&shape).ok()?)));
    schedules.filter(|(_, schedule)| schedule.rank_of == problem.rank_of).collect()
}

/// One micro-batch after the other, through all stages and back.
pub(super) fn one_by_one(problem: &Unequal) -> Schedule {
    let mut ranks: Vec<Vec<Work>> = vec![Vec::new(); problem.room_bytes.len()];
    for micro_batch in 0..problem.micro_batches {
        for (stage, &rank) in problem.rank_of.iter().enumerate() {
            ranks[rank].push(Work::forward(stage, micro_batch));
        }
        for (stage, &rank) in problem.rank_of.iter().enumerate().rev() {
            ranks[rank].push(Work::backward(stage, micro_batch));
        }
    }
    Schedule { micro_batches: problem.micro_batches, rank_of: problem.rank_of.clone(), ranks }
}

/// What a rank keeps under every order, at least: all of its stages have run forward before the first runs backward.
pub(super) fn least_bytes(problem: &Unequal, rank: usize) -> u64 {
    let stages = problem.rank_of.iter().zip(&problem.costs.stages).filter(|(of, _)| **of == rank);
    stages.fold(0, |sum, (_, cost)| sum.saturating_add(cost.kept_bytes))
}
