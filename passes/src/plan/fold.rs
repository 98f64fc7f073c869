//! Finds the loops in the order of a rank's work: runs of equal work whose micro-batches advance evenly.

use crate::schedule::Work;

/// Work that is done several times, each time some micro-batches further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The work of the first time.
    pub(crate) body: Vec<Work>,
    /// How many times.
    pub(crate) trips: u64,
    /// Added to every micro-batch each time.
    pub(crate) stride: u64,
}

/// The longest body of a loop.
const LONGEST: usize = 512;

/// How good it is to write down the rest of the work in some way: fewer pieces first, then longer bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Quality {
    fewer: std::cmp::Reverse<usize>,
    longer: usize,
}

/// The runs that say the work in the fewest pieces. What is not repeated is one run of one trip.
pub(crate) fn fold(works: &[Work]) -> Vec<Run> {
    let n = works.len();
    let mut best = vec![Quality { fewer: std::cmp::Reverse(0), longer: 0 }; n + 1];
    let mut choice = vec![(1usize, 1usize); n];
    // For each body length how many pieces from here on are followed by their like at that distance, and how much
    // further on in micro-batches.
    let mut alike = vec![(0usize, 0u64); LONGEST + 1];
    for at in (0..n).rev() {
        best[at] = with(best[at + 1], 1, 1);
        for body in 1..=LONGEST.min(n - 1 - at) {
            let (first, next) = (works[at], works[at + body]);
            let stride = next.micro_batch.checked_sub(first.micro_batch).filter(|&stride| stride > 0);
            let same = (first.kind, first.stage) == (next.kind, next.stage);
            let entry = &mut alike[body];
            *entry = match (stride, *entry) {
                (Some(stride), (n, before)) if same && n > 0 && before == stride => (n + 1, stride),
                (Some(stride), _) if same => (1, stride),
                _ => (0, 0),
            };
            let most = 1 + entry.0 / body;
            // One less may let the next run begin where it belongs.
            for trips in [most, most - 1].into_iter().filter(|&trips| trips > 1) {
                let found = with(best[at + body * trips], body, trips);
                if found > best[at] {
                    best[at] = found;
                    choice[at] = (body, trips);
                }
            }
        }
    }
    let mut runs: Vec<Run> = Vec::new();
    let mut at = 0;
    while at < n {
        let (body, trips) = choice[at];
        let end = at + body;
        let single = trips == 1;
        match runs.last_mut().filter(|last| single && last.trips == 1) {
            Some(last) => last.body.extend(&works[at..end]),
            None => {
                let stride = if single { 0 } else { works[end].micro_batch - works[at].micro_batch };
                runs.push(Run { body: works[at..end].to_vec(), trips: trips as u64, stride });
            }
        }
        at += body * trips;
    }
    runs
}

fn with(rest: Quality, body: usize, trips: usize) -> Quality {
    Quality { fewer: std::cmp::Reverse(rest.fewer.0 + body), longer: rest.longer + body * body * trips }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Generator, ScheduleKind, Shape};

    fn unfolded(runs: &[Run]) -> Vec<Work> {
        let mut works = Vec::new();
        for run in runs {
            for trip in 0..run.trips {
                let later = |work: &Work| Work { micro_batch: work.micro_batch + trip * run.stride, ..*work };
                works.extend(run.body.iter().map(later));
            }
        }
        works
    }

    #[test]
    fn runs_say_the_same_and_are_few() {
        // What is written down per rank in a steady state: a bound that does not grow with the micro-batches.
        for (kind, loops, most) in [
            ("gpipe", 1, 2),
            ("1f1b", 1, 4),
            ("interleaved", 2, 48),
            ("breadth-first", 2, 4),
            ("breadth-first:8", 2, 64),
            ("zb-h1", 1, 12),
            ("zb-v", 2, 48),
        ] {
            for micro_batches in [32, 64, 128] {
                let shape = Shape { ranks: 4, loops, micro_batches };
                let schedule = kind.parse::<ScheduleKind>().unwrap().generate(&shape).unwrap();
                for works in &schedule.ranks {
                    let runs = fold(works);
                    assert_eq!(unfolded(&runs), *works, "{kind}");
                    let written: usize = runs.iter().map(|run| run.body.len()).sum();
                    assert!(written <= most, "{kind}, {micro_batches}: {written} pieces");
                }
            }
        }
    }

    #[test]
    fn one_f_one_b_warms_up_alternates_and_cools_down() {
        let shape = Shape { ranks: 4, loops: 1, micro_batches: 9 };
        let schedule = ScheduleKind::OneFOneB.generate(&shape).unwrap();
        let forward = |micro_batch| Work::forward(1, micro_batch);
        let backward = |micro_batch| Work::backward(1, micro_batch);
        let expected = [
            Run { body: vec![forward(0)], trips: 2, stride: 1 },
            Run { body: vec![forward(2), backward(0)], trips: 7, stride: 1 },
            Run { body: vec![backward(7)], trips: 2, stride: 1 },
        ];
        assert_eq!(fold(&schedule.ranks[1]), expected);
    }
}
