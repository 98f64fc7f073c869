//! Changes inputs: bytes and text in general, protobuf messages and JSON by their structure.

mod bytes;
mod json;
mod protobuf;
mod rng;

pub(crate) use protobuf::varint;
pub use rng::Rng;

use crate::target::{Kind, Target};

/// Longer inputs are cut.
const MAX_LEN: usize = 1 << 20;

/// Makes mutants of the seeds of a target.
#[derive(Clone, Copy, Debug)]
pub struct Mutator<'a> {
    /// The target.
    pub target: &'a Target,
    /// Its seeds.
    pub seeds: &'a [Vec<u8>],
}

impl Mutator<'_> {
    /// A mutant of some seed.
    pub fn mutant(&self, rng: &mut Rng) -> Vec<u8> {
        let mut input = rng.pick(self.seeds).clone();
        let n_changes = 1 << rng.below(4);
        for _ in 0..n_changes {
            let other = rng.pick(self.seeds);
            let structural = !rng.below(4).is_multiple_of(4);
            let changed = match self.target.kind {
                Kind::Protobuf if structural => protobuf::change(&input, other, self.target.tokens, rng),
                Kind::Json if structural => json::change(&input, other, self.target.tokens, rng),
                Kind::Plan if structural && input.first() == Some(&b'{') => {
                    json::change(&input, other, self.target.tokens, rng)
                }
                Kind::Plan if structural => protobuf::change(&input, other, self.target.tokens, rng),
                Kind::Protobuf | Kind::Json | Kind::Plan | Kind::Text => None,
            };
            input = changed.unwrap_or_else(|| bytes::change(&input, other, self.target.tokens, rng));
            input.truncate(MAX_LEN);
        }
        input
    }
}
