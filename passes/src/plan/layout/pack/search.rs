//! Exact search for a placement that ends at or below a given height.
//!
//! Each remaining block has a lowest place: on top of the placed blocks that it meets in time. The
//! search picks the block with the lowest place of all, and either puts it there or *postpones* it: it
//! then must rest on a block still to come, which raises its lowest place. One of the two holds in every
//! placement in which each block rests on the bottom or on another one, so nothing is lost. A branch is
//! cut when, in some time slot, the blocks still to come do not fit above the lowest place of any of
//! them. Whenever the blocks still to come fall into sets that do not meet in time, these are searched
//! one by one.
//!
//! For every lowest place the search knows the placed blocks it follows from, and so for every cut
//! branch. When putting a block leads to failures that do not follow from that block, postponing it
//! would lead to the same ones and is left out.
//!
//! The setting (canonical placements, bounds by time slots, decomposition, several static orders) is
//! that of Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
//! Learning", ASPLOS 2023; postponing follows Le Pape et al., "Time-versus-capacity compromises in
//! project scheduling", 1994.

use super::bits;
use super::conflict::Conflicts;
use super::problem::Block;
use super::slots::Slots;

/// What came of a search.
pub(super) enum Outcome {
    /// Offsets of all blocks, none of which ends above the height asked for.
    Found(Vec<u64>),
    /// There is no such placement.
    Impossible,
    /// The steps ran out.
    Unknown,
}

/// What the search needs to know about the blocks of a group, for any height.
pub(super) struct Searcher<'a> {
    blocks: &'a [&'a Block],
    base: u64,
    conflicts: &'a Conflicts,
    neighbours: Vec<Vec<u32>>,
    pub(super) slots: Slots,
}

impl<'a> Searcher<'a> {
    pub(super) fn new(blocks: &'a [&'a Block], conflicts: &'a Conflicts, base: u64) -> Searcher<'a> {
        let neighbours = (0..blocks.len()).map(|index| conflicts.neighbours(index)).collect();
        Searcher { blocks, base, conflicts, neighbours, slots: Slots::new(blocks) }
    }

    /// The steps that one way down the tree takes, about.
    pub(super) fn descent(&self) -> u64 {
        let n_blocks = self.blocks.len() as u64;
        self.cost(self.blocks.len()).saturating_mul(n_blocks) / 2
    }

    /// The steps that a node with so many blocks takes, apart from those over neighbours.
    fn cost(&self, n_blocks: usize) -> u64 {
        n_blocks as u64 * (20 + 4 * self.slots.words as u64) + self.slots.load.len() as u64 + 200
    }

    /// Looks for a placement that ends at or below `height`; of blocks with equal lowest places, the
    /// one that comes first in `order` is put first. Adds to `blame`, for each block, the failures that
    /// it had a part in.
    pub(super) fn search(&self, order: &[usize], height: u64, blame: &mut [u64], steps: &mut u64) -> Outcome {
        let mut rank = vec![0u32; order.len()];
        for (place, &index) in (0u32..).zip(order) {
            rank[index] = place;
        }
        let lowest: Vec<u64> = self.blocks.iter().map(|block| block.raised(self.base)).collect();
        let words = bits::words(order.len());
        let mut state = State {
            on: self,
            height,
            rank,
            support: lowest.clone(),
            lowest,
            placed: vec![0; words],
            offsets: vec![0; order.len()],
            remaining: self.slots.load.clone(),
            painted: vec![0; self.slots.words],
            words,
            reasons: vec![0; words * order.len()],
            why: vec![0; words],
            trail: Vec::new(),
            trail_reasons: Vec::new(),
            blame,
            steps: *steps,
        };
        let all: Vec<u32> = order.iter().map(|&index| narrow(index)).collect();
        let end = state.solve(all);
        *steps = state.steps;
        match end {
            End::Solved => Outcome::Found(state.offsets),
            End::Failed => Outcome::Impossible,
            End::OutOfSteps => Outcome::Unknown,
        }
    }
}

/// Why a branch ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Solved,
    /// For the reasons in `State::why`.
    Failed,
    OutOfSteps,
}

/// A partial placement.
struct State<'a, 'b> {
    on: &'a Searcher<'a>,
    height: u64,
    rank: Vec<u32>,
    /// The place of each remaining block on top of the placed ones.
    support: Vec<u64>,
    /// A bound on the final place of each remaining block: above `support` when it is postponed.
    lowest: Vec<u64>,
    /// The blocks placed, as bits.
    placed: Vec<u64>,
    offsets: Vec<u64>,
    /// The sum of sizes of the blocks that remain, for each slot.
    remaining: Vec<u64>,
    /// Scratch space of `fits`.
    painted: Vec<u64>,
    /// The words of a set of blocks.
    words: usize,
    /// For each block, the placed blocks from whose places the bound in `lowest` follows.
    reasons: Vec<u64>,
    /// The placed blocks from whose places the last failure follows.
    why: Vec<u64>,
    /// Earlier values of `support` and `lowest`, and of `reasons`.
    trail: Vec<(u32, u64, u64)>,
    trail_reasons: Vec<u64>,
    blame: &'b mut [u64],
    steps: u64,
}

impl State<'_, '_> {
    /// Places the blocks `ids`, which are all that remain in their slots.
    fn solve(&mut self, ids: Vec<u32>) -> End {
        let mut rest = ids;
        let mut parts = Vec::new();
        while !rest.is_empty() {
            let (part, others) = self.split(rest);
            parts.push(part);
            rest = others;
        }
        // Small parts are quick to fail.
        parts.sort_by_key(Vec::len);
        for part in parts {
            let end = self.branch(part);
            if end != End::Solved {
                return end;
            }
        }
        End::Solved
    }

    /// The blocks that are linked to the first one by meeting in time, and the others.
    fn split(&mut self, ids: Vec<u32>) -> (Vec<u32>, Vec<u32>) {
        let on = self.on;
        let mut covered = vec![0; on.slots.words];
        let mut others = ids;
        let mut part: Vec<u32> = Vec::new();
        loop {
            let before = part.len();
            let mut left = Vec::new();
            for id in others {
                let mask = on.slots.mask(id as usize);
                if part.is_empty() || bits::meet(mask, &covered) {
                    bits::add(&mut covered, mask);
                    part.push(id);
                } else {
                    left.push(id);
                }
            }
            others = left;
            if others.is_empty() || part.len() == before {
                return (part, others);
            }
        }
    }

    /// Places blocks that are linked by meeting in time.
    fn branch(&mut self, mut ids: Vec<u32>) -> End {
        let mark = self.trail.len();
        let end = loop {
            if self.steps == 0 {
                break End::OutOfSteps;
            }
            self.spend(self.on.cost(ids.len()));
            if !self.raise_postponed(&ids) {
                break End::Failed;
            }
            ids.sort_unstable_by_key(|&id| (self.lowest[id as usize], self.rank[id as usize]));
            if !self.fits(&ids) {
                break End::Failed;
            }
            let id = ids.iter().copied().find(|&id| self.is_eligible(id));
            let id = id.expect("the block that ends lowest rests on placed ones");
            let index = id as usize;
            let rest: Vec<u32> = ids.iter().copied().filter(|&other| other != id).collect();
            let inner = self.trail.len();
            self.put(index);
            let end = self.solve(rest);
            self.take(index, inner);
            if end != End::Failed {
                break end;
            }
            if !bits::has(&self.why, index) {
                break End::Failed;
            }
            self.postpone(index);
        };
        self.undo(mark);
        end
    }

    fn spend(&mut self, steps: u64) {
        self.steps = self.steps.saturating_sub(steps);
    }

    /// Whether a block may be put where it is, having not been postponed there.
    fn is_eligible(&self, id: u32) -> bool {
        self.support[id as usize] == self.lowest[id as usize]
    }

    /// Raises the lowest places of postponed blocks to the least end of the blocks that they can come
    /// to rest on. Returns whether each has one and stays below the height.
    fn raise_postponed(&mut self, ids: &[u32]) -> bool {
        let mut changed = true;
        while changed {
            changed = false;
            for &id in ids {
                let index = id as usize;
                if self.is_eligible(id) {
                    continue;
                }
                let end = self.lowest_end(index).unwrap_or(u64::MAX);
                let raised = self.on.blocks[index].raised(end);
                let highest = self.height - self.on.blocks[index].size;
                if raised > highest {
                    self.explain_raise(index, highest + 1);
                    return false;
                }
                if raised > self.lowest[index] {
                    self.save(index);
                    self.explain_raise(index, raised);
                    self.reasons[index * self.words..][..self.words].copy_from_slice(&self.why);
                    self.lowest[index] = raised;
                    changed = true;
                }
            }
        }
        true
    }

    /// Sets `why` to the reasons for which a postponed block comes to lie at `place` or higher: its
    /// bound so far, that no placed block supports it, and that no remaining one ends lower.
    fn explain_raise(&mut self, index: usize, place: u64) {
        let (on, words) = (self.on, self.words);
        self.why.copy_from_slice(&self.reasons[index * words..][..words]);
        let neighbours = self.placed.iter().zip(on.conflicts.row(index));
        for (why, (placed, neighbour)) in self.why.iter_mut().zip(neighbours) {
            *why |= placed & neighbour;
        }
        self.spend(on.neighbours[index].len() as u64);
        for &other in &on.neighbours[index] {
            let other = other as usize;
            if !bits::has(&self.placed, other) && on.blocks[index].raised(on.base + on.blocks[other].size) < place {
                bits::add(&mut self.why, &self.reasons[other * words..][..words]);
            }
        }
    }

    /// The least end of the remaining blocks that meet a block.
    fn lowest_end(&mut self, index: usize) -> Option<u64> {
        self.spend(3 * self.on.neighbours[index].len() as u64);
        let neighbours = self.on.neighbours[index].iter().map(|&other| other as usize);
        let remaining = neighbours.filter(|&other| !bits::has(&self.placed, other));
        remaining.map(|other| self.lowest[other] + self.on.blocks[other].size).min()
    }

    /// Whether the blocks that remain fit, slot by slot, above their lowest places, by which `ids` are
    /// sorted.
    fn fits(&mut self, ids: &[u32]) -> bool {
        let on = self.on;
        self.painted.fill(0);
        for &id in ids {
            let lowest = self.lowest[id as usize];
            for (word, &mask) in on.slots.mask(id as usize).iter().enumerate() {
                let mut fresh = mask & !self.painted[word];
                self.painted[word] |= mask;
                while fresh != 0 {
                    let slot = word * 64 + fresh.trailing_zeros() as usize;
                    fresh &= fresh - 1;
                    if lowest + self.remaining[slot] > self.height {
                        self.explain_slot(ids, slot);
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Sets `why` to the reasons for which the blocks in a slot lie too high: fewest blocks first.
    fn explain_slot(&mut self, ids: &[u32], slot: usize) {
        let (on, words) = (self.on, self.words);
        self.why.fill(0);
        let mut sum = 0;
        let covers = |id: u32| bits::has(on.slots.mask(id as usize), slot);
        let mut members = ids.len();
        while members > 0 {
            members -= 1;
            if covers(ids[members]) {
                sum += on.blocks[ids[members] as usize].size;
                if self.lowest[ids[members] as usize] + sum > self.height {
                    break;
                }
            }
        }
        // It is enough that each of them lies at or above this place.
        let place = self.height + 1 - sum;
        for &id in ids[members..].iter().filter(|&&id| covers(id)) {
            self.blame[id as usize] += 1;
            if on.base < place {
                bits::add(&mut self.why, &self.reasons[id as usize * words..][..words]);
            }
        }
    }

    fn put(&mut self, index: usize) {
        let (on, words) = (self.on, self.words);
        let size = on.blocks[index].size;
        let offset = self.support[index];
        bits::set(&mut self.placed, index);
        self.offsets[index] = offset;
        for slot in bits::ones(on.slots.mask(index)) {
            self.remaining[slot] -= size;
        }
        self.spend(4 * on.neighbours[index].len() as u64);
        for &other in &on.neighbours[index] {
            let other = other as usize;
            let support = on.blocks[other].raised(offset + size);
            if self.support[other] >= support || bits::has(&self.placed, other) {
                continue;
            }
            self.save(other);
            self.support[other] = support;
            if self.lowest[other] <= support {
                self.lowest[other] = support;
                // It cannot lie below for its size alone, or else for its bound so far.
                if on.base + on.blocks[other].size > offset {
                    self.reasons[other * words..][..words].fill(0);
                }
                bits::set(&mut self.reasons[other * words..][..words], index);
            }
        }
    }

    fn take(&mut self, index: usize, mark: usize) {
        let size = self.on.blocks[index].size;
        bits::clear(&mut self.placed, index);
        for slot in bits::ones(self.on.slots.mask(index)) {
            self.remaining[slot] += size;
        }
        self.undo(mark);
    }

    /// Rules out the place of a block for the reasons in `why`.
    fn postpone(&mut self, index: usize) {
        bits::clear(&mut self.why, index);
        self.save(index);
        bits::add(&mut self.reasons[index * self.words..][..self.words], &self.why);
        self.lowest[index] = self.on.blocks[index].raised(self.support[index] + 1);
    }

    fn save(&mut self, index: usize) {
        self.trail.push((narrow(index), self.support[index], self.lowest[index]));
        self.trail_reasons.extend_from_slice(&self.reasons[index * self.words..][..self.words]);
    }

    fn undo(&mut self, mark: usize) {
        let words = self.words;
        for (id, support, lowest) in self.trail.drain(mark..).rev() {
            let index = id as usize;
            self.support[index] = support;
            self.lowest[index] = lowest;
            let kept = self.trail_reasons.len() - words;
            self.reasons[index * words..][..words].copy_from_slice(&self.trail_reasons[kept..]);
            self.trail_reasons.truncate(kept);
        }
    }
}

fn narrow(index: usize) -> u32 {
    u32::try_from(index).expect("a group has fewer than 2^32 blocks and slots")
}

#[cfg(test)]
mod tests {
    use super::{Conflicts, Outcome, Searcher};
    use crate::plan::layout::pack::{Item, group::MAX_SEARCHED, problem::Block};

    #[test]
    fn the_deepest_search_does_not_exhaust_the_stack() {
        // All blocks meet, so that each is placed one level below the one before, and nothing is cut
        // at the height of their sum. Threads of tests have the usual stack of 2 MiB.
        let blocks: Vec<Block> = (0..MAX_SEARCHED as u32)
            .map(|index| Block::new(&Item::new(u64::from(index % 7 + 1), 1, index..5000)))
            .collect();
        let blocks: Vec<&Block> = blocks.iter().collect();
        let conflicts = Conflicts::new(&blocks);
        let searcher = Searcher::new(&blocks, &conflicts, 0);
        let order: Vec<usize> = (0..blocks.len()).collect();
        let height = blocks.iter().map(|block| block.size).sum();
        let outcome = searcher.search(&order, height, &mut vec![0; blocks.len()], &mut (1 << 40));
        assert!(matches!(outcome, Outcome::Found(_)));
        let outcome = searcher.search(&order, height - 1, &mut vec![0; blocks.len()], &mut (1 << 40));
        assert!(matches!(outcome, Outcome::Impossible));
    }
}
