//! The nearest known spelling of a misspelled name.

/// The candidate nearest to `name`, ignoring case, `-`, `_` and spaces; `None` where none is near enough to be meant.
/// Ties go to the earlier candidate.
pub(super) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = folded(name);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let distance = edit_distance(&wanted, &folded(candidate));
        if best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    let (distance, candidate) = best?;
    let near_enough = distance <= 1 + wanted.len().max(folded(candidate).len()) / 3;
    (near_enough && distance < wanted.len()).then_some(candidate)
}

/// The name without case and separators: how GPU names are compared.
pub(super) fn folded(name: &str) -> Vec<char> {
    name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase).take(LONGEST).collect()
}

/// Only this many characters are compared: a longer name is no typing error.
const LONGEST: usize = 64;

/// Levenshtein distance with adjacent transpositions.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut older = vec![0; b.len() + 1];
    let mut old: Vec<usize> = (0..=b.len()).collect();
    for (i, &ca) in a.iter().enumerate() {
        let mut row = vec![i + 1; b.len() + 1];
        for (j, &cb) in b.iter().enumerate() {
            let mut cost = (old[j] + usize::from(ca != cb)).min(old[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && ca == b[j - 1] && a[i - 1] == cb {
                cost = cost.min(older[j - 1] + 1);
            }
            row[j + 1] = cost;
        }
        older = old;
        old = row;
    }
    old[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_known_by_hand() {
        let d = |a, b| edit_distance(&folded(a), &folded(b));
        assert_eq!(d("kitten", "sitting"), 3);
        assert_eq!(d("nodes", "ndoes"), 1);
        assert_eq!(d("A100-SXM_80 gb", "a100sxm80GB"), 0);
        assert_eq!(d("", "abc"), 3);
    }

    #[test]
    fn far_names_are_not_suggested() {
        assert_eq!(nearest("bandwith", ["latency", "bandwidth"]), Some("bandwidth"));
        assert_eq!(nearest("colour", ["nodes", "gpu"]), None);
        assert_eq!(nearest("x", ["y"]), None);
    }
}
