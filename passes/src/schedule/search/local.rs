//! Exchanges neighbours in a rank's order as long as that helps.

use super::{Best, FoundBy, Unequal};
use crate::schedule::{Work, timing};

/// How far a work is moved at most.
const FARTHEST: usize = 6;

/// Improves the best order until no move does, or the steps are used up.
pub(super) fn improve(problem: &Unequal, best: &mut Best, steps: &mut u64, lower_bound_ps: u64) {
    let n_works: usize = best.schedule.ranks.iter().map(Vec::len).sum();
    let mut schedule = best.schedule.clone();
    let Some(mut value) = timing::value(&schedule, &problem.costs) else { return };
    loop {
        let mut improved = false;
        for rank in 0..schedule.ranks.len() {
            for from in 0..schedule.ranks[rank].len() {
                for distance in 1..=FARTHEST {
                    let works = &mut schedule.ranks[rank];
                    // A work goes forth as long as what it passes does not need it.
                    let Some(&passed) = works.get(from + distance) else { break };
                    if !may_pass(works[from], passed) {
                        break;
                    }
                    if *steps < n_works as u64 || best.makespan_ps == lower_bound_ps {
                        return;
                    }
                    *steps -= n_works as u64;
                    works[from..=from + distance].rotate_left(1);
                    let fits = timing::peak_bytes(works, &problem.costs) <= problem.room_bytes[rank];
                    let new = if fits { timing::value(&schedule, &problem.costs) } else { None };
                    match new {
                        Some(new) if new < value => {
                            value = new;
                            improved = true;
                            best.take(schedule.clone(), new.0, FoundBy::Local);
                            break;
                        }
                        _ => schedule.ranks[rank][from..=from + distance].rotate_right(1),
                    }
                }
            }
        }
        if !improved {
            return;
        }
    }
}

/// Whether a work may come after another that follows it. Whether ranks then wait for each other shows when it is replayed.
fn may_pass(work: Work, passed: Work) -> bool {
    if work.stage != passed.stage {
        return true;
    }
    let alike = work.kind == passed.kind || (work.kind.adds_gradients() && passed.kind.adds_gradients());
    !alike && work.micro_batch != passed.micro_batch
}
