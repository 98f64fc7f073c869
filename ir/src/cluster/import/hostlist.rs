//! Host lists as Slurm writes them: `gpu[01-16,20],login1`.

use std::fmt;

/// Hosts that one list may name.
pub(super) const MOST_HOSTS: usize = 100_000;

/// Why a host list cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BadHosts {
    /// A bracket without its other half, or brackets within brackets.
    Brackets,
    /// Something in brackets that is neither a number nor a range of numbers.
    Range(String),
    /// More hosts than there can be.
    TooMany,
}

impl fmt::Display for BadHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Brackets => f.write_str("its brackets do not match"),
            Self::Range(range) => write!(f, "`{range}` is neither a number nor a range of numbers"),
            Self::TooMany => write!(f, "it names more than {MOST_HOSTS} hosts"),
        }
    }
}

/// The hosts that a list names, in its order.
pub(super) fn expand(list: &str) -> Result<Vec<String>, BadHosts> {
    let mut hosts = Vec::new();
    for part in split(list)? {
        let mut prefixes = vec![String::new()];
        let mut rest = part;
        while let Some((before, after)) = rest.split_once('[') {
            let (ranges, after) = after.split_once(']').ok_or(BadHosts::Brackets)?;
            let numbers = numbers(ranges, prefixes.len())?;
            let join =
                |prefix: &String| numbers.iter().map(move |n| format!("{prefix}{before}{n}")).collect::<Vec<_>>();
            prefixes = prefixes.iter().flat_map(join).collect();
            rest = after;
        }
        if rest.contains(']') {
            return Err(BadHosts::Brackets);
        }
        hosts.extend(prefixes.into_iter().map(|prefix| prefix + rest));
        if hosts.len() > MOST_HOSTS {
            return Err(BadHosts::TooMany);
        }
    }
    Ok(hosts)
}

/// The parts between the commas outside of brackets that hold something.
pub(super) fn split(list: &str) -> Result<Vec<&str>, BadHosts> {
    let (mut parts, mut start, mut inside) = (Vec::new(), 0, false);
    for (at, c) in list.char_indices() {
        match (c, inside) {
            ('[', false) => inside = true,
            (']', true) => inside = false,
            ('[', true) | (']', false) => return Err(BadHosts::Brackets),
            (',', false) => {
                parts.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        return Err(BadHosts::Brackets);
    }
    parts.push(list[start..].trim());
    parts.retain(|part| !part.is_empty());
    Ok(parts)
}

/// The numbers of `01-16,20`, each as wide as it is written; `times` as many hosts will come of each.
fn numbers(ranges: &str, times: usize) -> Result<Vec<String>, BadHosts> {
    let mut numbers = Vec::new();
    for range in ranges.split(',') {
        let bad = || BadHosts::Range(range.to_owned());
        let number = |text: &str| {
            let digits = !text.is_empty() && text.len() <= 18 && text.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| text.parse::<u64>().ok()).flatten().ok_or_else(bad)
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (low, high) = (number(first)?, number(last)?);
        if low > high {
            return Err(bad());
        }
        let n = (high - low).saturating_add(1);
        if n.saturating_mul(times as u64).saturating_add(numbers.len() as u64) > MOST_HOSTS as u64 {
            return Err(BadHosts::TooMany);
        }
        let width = if first.starts_with('0') { first.len() } else { 0 };
        numbers.extend((low..=high).map(|n| format!("{n:0width$}")));
    }
    Ok(numbers)
}

/// A short form of the names for people: the first few, and how many more there are.
pub(super) fn some(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `scontrol show hostnames` (Slurm 22.05) expands them.
    #[test]
    fn lists_are_expanded_as_slurm_does() {
        let all = |list| expand(list).map(|hosts| hosts.join(" "));
        assert_eq!(all("a[1-2],h1,v1").unwrap(), "a1 a2 h1 v1");
        assert_eq!(all("gpu[08-11]").unwrap(), "gpu08 gpu09 gpu10 gpu11");
        assert_eq!(all("n[1,3-4]x").unwrap(), "n1x n3x n4x");
        assert_eq!(all("r[0-1]n[0-1]").unwrap(), "r0n0 r0n1 r1n0 r1n1");
        assert_eq!(all("").unwrap(), "");
    }

    #[test]
    fn broken_lists_are_refused() {
        assert_eq!(expand("a[1-2"), Err(BadHosts::Brackets));
        assert_eq!(expand("a1]"), Err(BadHosts::Brackets));
        assert_eq!(expand("a[[1]]"), Err(BadHosts::Brackets));
        assert_eq!(expand("a[2-1]"), Err(BadHosts::Range("2-1".to_owned())));
        assert_eq!(expand("a[x]"), Err(BadHosts::Range("x".to_owned())));
        assert_eq!(expand("a[]"), Err(BadHosts::Range(String::new())));
        assert_eq!(expand("a[0-999999999999999999]"), Err(BadHosts::TooMany));
        assert_eq!(expand("a[0-999]b[0-999]"), Err(BadHosts::TooMany));
    }
}
