//! Changes that need no structure.

use super::Rng;

/// One change of an input.
pub(super) fn change(input: &[u8], other: &[u8], tokens: &[&str], rng: &mut Rng) -> Vec<u8> {
    let mut out = input.to_vec();
    let at = rng.below(out.len() + 1);
    let span = |rng: &mut Rng, len: usize| {
        let start = rng.below(len + 1);
        let longest = (len - start).min(1 << rng.below(10));
        start..start + rng.below(longest + 1)
    };
    match rng.below(11) {
        0 if at < out.len() => out[at] ^= 1 << rng.below(8),
        1 if at < out.len() => out[at] = rng.bits() as u8,
        2 => out.truncate(at),
        3 => drop(out.drain(span(rng, input.len()))),
        4 => {
            let piece = input[span(rng, input.len())].to_vec();
            drop(out.splice(at..at, piece));
        }
        5 => {
            let piece = other[span(rng, other.len())].to_vec();
            drop(out.splice(at..at, piece));
        }
        6 => {
            out.truncate(at);
            out.extend_from_slice(&other[rng.below(other.len() + 1)..]);
        }
        7 => {
            let bytes = rng.edge().to_le_bytes();
            let width = [1, 2, 4, 8][rng.below(4)];
            for (slot, byte) in out.iter_mut().skip(at).zip(&bytes[..width]) {
                *slot = *byte;
            }
        }
        8 if !tokens.is_empty() => {
            let token = rng.pick(tokens).bytes();
            drop(out.splice(at..at, token));
        }
        9 if !tokens.is_empty() => replace_word(&mut out, at, |byte| byte.is_ascii_alphanumeric() || byte == b'_', {
            rng.pick(tokens).as_bytes()
        }),
        _ => {
            let number = if rng.below(4) == 0 { format!("-{}", rng.edge()) } else { rng.edge().to_string() };
            replace_word(&mut out, at, |byte| byte.is_ascii_digit(), number.as_bytes());
        }
    }
    out
}

/// Replaces the first word from `at` on, or adds one there.
fn replace_word(out: &mut Vec<u8>, at: usize, part: impl Fn(u8) -> bool, by: &[u8]) {
    let start = out[at..].iter().position(|&byte| part(byte)).map_or(at, |found| at + found);
    let end = out[start..].iter().position(|&byte| !part(byte)).map_or(out.len(), |length| start + length);
    drop(out.splice(start..end, by.iter().copied()));
}
