//! From the bytes of a file to its text.

use super::ClusterFile;
use crate::cluster::codes;
use crate::diag::{Diagnostic, Diagnostics};
use std::borrow::Cow;

/// Bytes of any description: a node takes some 15 KB of `kubectl`'s output.
const MOST: usize = 1 << 30;
/// Bytes of a description in TOML, whose values are all kept: a group takes about 100.
pub(super) const MOST_TOML: usize = 1 << 24;

/// The text of a file in UTF-8 or, as some shells of Windows write it, in UTF-16; without a byte order mark.
pub(super) fn decode<'a>(file: &ClusterFile<'a>) -> Result<Cow<'a, str>, Diagnostics> {
    let bytes = file.bytes;
    fits(file.name, bytes.len(), MOST)?;
    let wide = |bytes: &[u8], join: fn([u8; 2]) -> u16| {
        let pairs = bytes.chunks_exact(2).map(|pair| join([pair[0], pair[1]]));
        let text: Result<String, _> = char::decode_utf16(pairs).collect();
        text.ok().filter(|_| bytes.len().is_multiple_of(2)).map(Cow::Owned)
    };
    let text = match bytes {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => std::str::from_utf8(rest).ok().map(Cow::Borrowed),
        _ => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
    };
    text.ok_or_else(|| {
        let message = format!("`{}` is no text in UTF-8", file.name);
        let help = "give a cluster description in TOML, or what a scheduler says of its nodes";
        vec![Diagnostic::error(codes::WRONG_FILE, message).with_help(help)]
    })
}

/// Refuses what is too large.
pub(super) fn fits(name: &str, bytes: usize, most: usize) -> Result<(), Diagnostics> {
    if bytes <= most {
        return Ok(());
    }
    let (found, most) = (bytes.div_ceil(1 << 20), most >> 20);
    let message = format!("`{name}` is too large: {found} MiB, expected at most {most} MiB");
    let help = "describe equal nodes as one group";
    Err(vec![Diagnostic::error(codes::TOO_LARGE, message).with_help(help)])
}
