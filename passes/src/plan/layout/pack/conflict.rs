//! Which blocks are alive at the same time: a bit matrix filled by one sweep over time.

use super::bits;
use super::problem::Block;

/// A symmetric bit matrix over the blocks of one group.
///
/// The sweep costs one pass over a row for each life, so that blocks with hundreds of lives cost no
/// more than as many blocks with one life.
pub(super) struct Conflicts {
    words: usize,
    matrix: Vec<u64>,
}

impl Conflicts {
    pub(super) fn new(blocks: &[&Block]) -> Conflicts {
        let words = bits::words(blocks.len());
        // The rows are padded to whole tiles of 64 for `mirror`.
        let mut matrix = vec![0u64; words * 64 * words];
        let mut events: Vec<(u32, bool, usize)> = Vec::new();
        for (index, block) in blocks.iter().enumerate() {
            for live in &block.lives {
                events.push((live.start, true, index));
                events.push((live.end, false, index));
            }
        }
        events.sort_unstable();
        let mut alive = vec![0u64; words];
        for (_, starts, index) in events {
            if starts {
                bits::add(&mut matrix[index * words..][..words], &alive);
                bits::set(&mut alive, index);
            } else {
                bits::clear(&mut alive, index);
            }
        }
        mirror(&mut matrix, words);
        Conflicts { words, matrix }
    }

    /// The bits of the blocks that meet block `index` in time.
    pub(super) fn row(&self, index: usize) -> &[u64] {
        &self.matrix[index * self.words..][..self.words]
    }

    /// The blocks that meet block `index` in time.
    pub(super) fn neighbours(&self, index: usize) -> Vec<u32> {
        let narrow = |other| u32::try_from(other).expect("a group has fewer than 2^32 blocks");
        bits::ones(self.row(index)).map(narrow).collect()
    }

    /// How many blocks meet block `index` in time.
    pub(super) fn degree(&self, index: usize) -> u64 {
        self.row(index).iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// Makes a square matrix of `words` times `words` tiles of 64 by 64 bits symmetric: a bit is set
/// where it or its mirror image was.
fn mirror(bits: &mut [u64], words: usize) {
    let mut upper = [0u64; 64];
    let mut lower = [0u64; 64];
    for row in 0..words {
        for column in row..words {
            for line in 0..64 {
                upper[line] = bits[(row * 64 + line) * words + column];
                lower[line] = bits[(column * 64 + line) * words + row];
            }
            let turned = transposed(lower);
            for line in 0..64 {
                upper[line] |= turned[line];
            }
            let turned = transposed(upper);
            for line in 0..64 {
                bits[(row * 64 + line) * words + column] = upper[line];
                bits[(column * 64 + line) * words + row] = turned[line];
            }
        }
    }
}

/// The transpose of a tile, by exchanging ever smaller halves.
fn transposed(mut tile: [u64; 64]) -> [u64; 64] {
    let mut width = 32;
    let mut mask = u64::MAX >> 32;
    while width != 0 {
        let mut line = 0;
        while line < 64 {
            let exchange = (tile[line] >> width ^ tile[line + width]) & mask;
            tile[line] ^= exchange << width;
            tile[line + width] ^= exchange;
            line = (line + width + 1) & !width;
        }
        width >>= 1;
        mask ^= mask << width;
    }
    tile
}

#[cfg(test)]
mod tests {
    use super::{Conflicts, transposed};
    use crate::plan::layout::pack::{Item, bits, problem::Block};

    #[test]
    fn transposing_moves_every_bit_to_its_mirror_place() {
        // A tile whose bits are those of a multiplicative hash, so that no symmetry hides a mistake.
        let tile: [u64; 64] = std::array::from_fn(|line| (line as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let turned = transposed(tile);
        for (line, word) in tile.iter().enumerate() {
            for (column, other) in turned.iter().enumerate() {
                assert_eq!(word >> column & 1, other >> line & 1, "bit {line},{column}");
            }
        }
    }

    #[test]
    fn the_matrix_agrees_with_comparing_all_intervals() {
        let blocks: Vec<Block> = (0u32..150)
            .map(|index| {
                let lives = (0..index % 5).map(|life| {
                    let start = (index * 37 + life * 101) % 400;
                    start..start + (index * 13) % 9
                });
                Block::new(&Item::with_lives(1, 1, lives.collect()))
            })
            .collect();
        let conflicts = Conflicts::new(&blocks.iter().collect::<Vec<_>>());
        let mut pairs = 0;
        for (a, one) in blocks.iter().enumerate() {
            for (b, other) in blocks.iter().enumerate() {
                let meet =
                    a != b && one.lives.iter().any(|x| other.lives.iter().any(|y| x.start < y.end && y.start < x.end));
                assert_eq!(bits::has(conflicts.row(a), b), meet, "blocks {a} and {b}");
                pairs += u64::from(meet);
            }
        }
        assert!(pairs > 100, "the instance must have conflicts");
        assert_eq!((0..blocks.len()).map(|index| conflicts.degree(index)).sum::<u64>(), pairs);
    }
}
