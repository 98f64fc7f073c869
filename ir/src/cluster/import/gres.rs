//! Generic resources as Slurm writes them: `gpu:a100:4(S:0-1),gpu:t4:1,tmpsize:7T`.

/// GPUs of one type on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gres {
    /// The type, where one is given.
    pub(super) kind: Option<String>,
    /// How many.
    pub(super) count: u64,
}

/// The GPUs of a list; other resources are skipped. Fails with the part that cannot be read.
pub(super) fn gpus(list: &str) -> Result<Vec<Gres>, String> {
    let mut found = Vec::new();
    for part in parts(list) {
        let plain = part.split_once('(').map_or(part, |(plain, _)| plain).trim();
        let mut words = plain.split(':');
        if !words.next().is_some_and(|name| name.eq_ignore_ascii_case("gpu")) {
            continue;
        }
        let mut words: Vec<&str> = words.filter(|word| !word.eq_ignore_ascii_case("no_consume")).collect();
        let count = match words.last().map(|word| (number(word), word)) {
            None => 1,
            Some((Some(count), _)) => {
                words.pop();
                count
            }
            // `gpu:a100` is one of that type.
            Some((None, word)) if word.chars().any(|c| c.is_ascii_alphabetic()) => 1,
            Some((None, _)) => return Err(part.to_owned()),
        };
        let kind = words.join(":");
        found.push(Gres { kind: (!kind.is_empty()).then_some(kind), count });
    }
    Ok(found)
}

/// A count as Slurm writes it: `K`, `M` and `G` multiply by powers of 1024.
pub(super) fn number(text: &str) -> Option<u64> {
    let (digits, scale) = match text.char_indices().next_back()? {
        (at, 'k' | 'K') => (&text[..at], 1 << 10),
        (at, 'm' | 'M') => (&text[..at], 1 << 20),
        (at, 'g' | 'G') => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(scale))
}

/// The parts between commas that stand outside of parentheses.
fn parts(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0u32;
    list.split(move |c| {
        match c {
            '(' => depth = depth.saturating_add(1),
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(list: &str) -> String {
        let shown = |gres: &Gres| format!("{}x{}", gres.count, gres.kind.as_deref().unwrap_or("?"));
        gpus(list).unwrap().iter().map(shown).collect::<Vec<_>>().join(" ")
    }

    /// Forms seen in the output of Slurm 20.11 to 24.11.
    #[test]
    fn the_forms_that_slurm_prints() {
        assert_eq!(shown("gpu:a100:4"), "4xa100");
        assert_eq!(shown("gpu:h100:4(S:0-1)"), "4xh100");
        assert_eq!(shown("gpu:fake1:1(S:0),gpu:fake2:1(S:0,2)"), "1xfake1 1xfake2");
        assert_eq!(shown("tmpsize:7T,gpu:l40s:4(S:0-1)"), "4xl40s");
        assert_eq!(shown("gpu:4"), "4x?");
        assert_eq!(shown("gpu"), "1x?");
        assert_eq!(shown("gpu:a100"), "1xa100");
        assert_eq!(shown("gpu:a100:no_consume:2"), "2xa100");
        assert_eq!(shown("gpu:a100_1g.5gb:7(S:0)"), "7xa100_1g.5gb");
        assert_eq!(shown("gpu:a100:1(IDX:0),shard:a100:8,mps:400"), "1xa100");
        assert_eq!(shown("(null)"), "");
        assert_eq!(shown(""), "");
    }

    #[test]
    fn counts_that_are_none() {
        assert_eq!(gpus("gpu:a100:-1"), Err("gpu:a100:-1".to_owned()));
        assert_eq!(gpus("gpu::"), Err("gpu::".to_owned()));
        assert_eq!(number("99999999999999999999999K"), Some(u64::MAX));
        assert_eq!(number("2k"), Some(2048));
        assert_eq!(number("é"), None);
    }
}
