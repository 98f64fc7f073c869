//! Runs: where a sequence of classes repeats itself.

/// `count` repetitions of `period` atoms from `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) start: usize,
    pub(super) period: usize,
    pub(super) count: usize,
}

/// Longest period that is looked for, in atoms. A period of 64 holds, for example, 16 layers of four atoms each.
const MAX_PERIOD: usize = 64;

/// Disjoint runs in ascending order. The longest comes first (then the shortest period, then the leftmost), and what is
/// left on both sides of it is searched again. A block holds at least one atom of `counts`, so that chains of trivial
/// nodes are no blocks.
pub(super) fn runs(classes: &[usize], counts: &[bool]) -> Vec<Run> {
    let mut found = Vec::new();
    let mut pending = vec![(0, classes.len())];
    while let Some((start, end)) = pending.pop() {
        let Some(run) = best(classes, counts, start, end) else { continue };
        found.push(run);
        pending.push((start, run.start));
        pending.push((run.start + run.period * run.count, end));
    }
    found.sort_by_key(|run| run.start);
    found
}

fn best(classes: &[usize], counts: &[bool], start: usize, end: usize) -> Option<Run> {
    let mut best: Option<Run> = None;
    for period in 1..=MAX_PERIOD.min((end - start) / 2) {
        // `equal` is the length of the stretch from `i` on in which each atom equals the one a period later.
        let mut equal = 0;
        for i in (start..end - period).rev() {
            equal = if classes[i] == classes[i + period] { equal + 1 } else { 0 };
            let count = equal / period + 1;
            if count < 2 || !counts[i..i + period].contains(&true) {
                continue;
            }
            let longer = best.is_none_or(|b| {
                let (covered, old) = (count * period, b.count * b.period);
                covered > old || (covered == old && period == b.period)
            });
            if longer {
                best = Some(Run { start: i, period, count });
            }
        }
    }
    best
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

    #[test]
    fn sees_through_alternation_and_several_stacks() {
        check("Eabacabacabac", &[(1, 4, 3)]);
        check("Exyxyxybzwzwzw", &[(1, 2, 3), (8, 2, 3)]);
        // Seven layers of one kind and one of another, twice: the whole pattern is the block.
        check("mmmmmmmammmmmmma", &[(0, 8, 2)]);
    }
}
