//! Runs: where a sequence of classes repeats itself.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// `count` repetitions of `period` atoms from `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) start: usize,
    pub(super) period: usize,
    pub(super) count: usize,
}

impl Run {
    /// The same atoms in at most `max` repetitions, where there are more, and what is left over.
    pub(super) fn joined(self, max: usize) -> Vec<Self> {
        let Self { start, period, count } = self;
        let times = count.div_ceil(max);
        let joined = Self { start, period: period * times, count: count / times };
        let end = start + joined.period * joined.count;
        let rest = Self { start: end, period: period * (count % times), count: 1 };
        if rest.period == 0 { vec![joined] } else { vec![joined, rest] }
    }
}

/// Longest period that is looked for, in atoms. A period of 64 holds, for example, 16 layers of four atoms each.
const MAX_PERIOD: usize = 64;

/// Disjoint runs in ascending order. The longest comes first (then the shortest period, then the leftmost), and what is
/// left on both sides of it is searched again. A block holds at least one atom of `counts` (atoms of one class all do or
/// none does), so that chains of trivial nodes are no blocks.
pub(super) fn runs(classes: &[usize], counts: &[bool]) -> Vec<Run> {
    let mut pending: BinaryHeap<Candidate> = BinaryHeap::new();
    for period in 1..=MAX_PERIOD.min(classes.len() / 2) {
        stretches(classes, counts, period, &mut pending);
    }
    // Taken runs by their starts, with their ends.
    let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
    let mut found = Vec::new();
    while let Some(candidate) = pending.pop() {
        let Candidate { covered: _, period: Reverse(period), start: Reverse(start), end } = candidate;
        let count = (end - start) / period;
        let taken_end = start + count * period;
        let before = taken.range(..=start).next_back().filter(|(_, other)| **other > start);
        let blocking = before.or_else(|| taken.range(start..end).next()).map(|(&start, &end)| (start, end));
        match blocking {
            None => {
                taken.insert(start, taken_end);
                found.push(Run { start, period, count });
                // What is left of the stretch is too short to repeat.
            }
            Some((other_start, other_end)) => {
                push(&mut pending, period, start, other_start.max(start));
                push(&mut pending, period, other_end.min(end), end);
            }
        }
    }
    found.sort_by_key(|run| run.start);
    found
}

/// A stretch in which every atom equals the one a period later, in the order in which stretches are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    covered: usize,
    period: Reverse<usize>,
    start: Reverse<usize>,
    end: usize,
}

fn push(pending: &mut BinaryHeap<Candidate>, period: usize, start: usize, end: usize) {
    if end - start >= 2 * period {
        let covered = (end - start) / period * period;
        pending.push(Candidate { covered, period: Reverse(period), start: Reverse(start), end });
    }
}

/// The longest stretches of this period.
fn stretches(classes: &[usize], counts: &[bool], period: usize, pending: &mut BinaryHeap<Candidate>) {
    let mut start = 0;
    for i in period..=classes.len() {
        if i < classes.len() && classes[i] == classes[i - period] {
            continue;
        }
        // The atoms `start..i` repeat themselves.
        if i - start >= 2 * period && counts[start..start + period].contains(&true) {
            push(pending, period, start, i);
        }
        start = i + 1 - period;
    }
}

#[cfg(test)]
mod tests {
    use super::{Run, runs};

    fn check(sequence: &str, expected: &[(usize, usize, usize)]) {
        let classes: Vec<usize> = sequence.bytes().map(usize::from).collect();
        let counts: Vec<bool> = sequence.bytes().map(|b| b.is_ascii_lowercase()).collect();
        let expected: Vec<Run> = expected.iter().map(|&(start, period, count)| Run { start, period, count }).collect();
        assert_eq!(runs(&classes, &counts), expected, "{sequence}");
    }

    #[test]
    fn finds_the_longest_repetition_with_the_shortest_period() {
        check("EambambambH", &[(1, 3, 3)]);
        check("EamamamamFHC", &[(1, 2, 4)]);
        check("aaaa", &[(0, 1, 4)]);
        check("abc", &[]);
        check("XX", &[]);
    }

    /// Compared with looking at every start and period in what is left, and taking the best.
    #[test]
    fn takes_what_a_plain_search_takes() {
        fn plain(classes: &[usize], start: usize, end: usize, found: &mut Vec<Run>) {
            let mut best: Option<Run> = None;
            for period in 1..=(end - start) / 2 {
                for at in start..=end - 2 * period {
                    let same = |i: &usize| classes[*i] == classes[*i - period];
                    let count = (at + period..end).take_while(same).count() / period + 1;
                    let larger = best.is_none_or(|b| count * period > b.count * b.period);
                    if count > 1 && larger && classes[at..at + period].iter().any(|class| class % 2 == 1) {
                        best = Some(Run { start: at, period, count });
                    }
                }
            }
            let Some(run) = best else { return };
            plain(classes, start, run.start, found);
            found.push(run);
            plain(classes, run.start + run.count * run.period, end, found);
        }
        let mut state = 1u64;
        let mut next = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % n
        };
        for _ in 0..300 {
            let (length, kinds) = (next(40), 1 + next(5));
            let classes: Vec<usize> = (0..length).map(|_| next(kinds) as usize).collect();
            let counts: Vec<bool> = classes.iter().map(|class| class % 2 == 1).collect();
            let mut expected = Vec::new();
            plain(&classes, 0, classes.len(), &mut expected);
            assert_eq!(runs(&classes, &counts), expected, "{classes:?}");
        }
    }

    #[test]
    fn sees_through_alternation_and_several_stacks() {
        check("Eabacabacabac", &[(1, 4, 3)]);
        check("Exyxyxybzwzwzw", &[(1, 2, 3), (8, 2, 3)]);
        // Seven layers of one kind and one of another, twice: the whole pattern is the block.
        check("mmmmmmmammmmmmma", &[(0, 8, 2)]);
    }
}
