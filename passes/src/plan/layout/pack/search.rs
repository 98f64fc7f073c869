//! Exact search for a placement that ends at or below a given height.
//!
//! Each remaining block has a lowest place: on top of the placed blocks that it meets in time. The
//! search picks a block that no remaining one can come to lie under entirely, and either puts it at its
//! lowest place or *postpones* it: it then must rest on a block still to come, which raises its lowest
//! place. One of the two holds in every placement in which all blocks lie as low as they can, so nothing
//! is lost. A branch is cut when, in some time slot, the blocks still to come do not fit above their
//! lowest places: the highest of them, the two highest of them, and so on. Whenever the blocks still to
//! come fall into sets that do not meet in time, these are searched one by one.
//!
//! The setting (canonical placements, bounds by time slots, decomposition, several static orders) is
//! that of Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
//! Learning", ASPLOS 2023; postponing follows Le Pape et al., "Time-versus-capacity compromises in
//! project scheduling", 1994.

use std::ops::Range;

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

/// Which block is looked at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// The one with the lowest place.
    Lowest,
    /// The lowest in the slot with the least room to spare.
    Tightest,
    /// The lowest in the slot with the most bytes to come; slots where branches failed come earlier.
    Fullest,
}

/// What the search needs to know about the blocks of a group, for any height.
pub(super) struct Searcher<'a> {
    blocks: &'a [&'a Block],
    base: u64,
    neighbours: Vec<Vec<u32>>,
    /// The steps that each block adds to a node.
    costs: Vec<u64>,
    pub(super) slots: Slots,
}

impl<'a> Searcher<'a> {
    pub(super) fn new(blocks: &'a [&'a Block], conflicts: &Conflicts, base: u64) -> Searcher<'a> {
        let neighbours = (0..blocks.len()).map(|index| conflicts.neighbours(index)).collect();
        let slots = Slots::new(blocks);
        let cost = |range: &Range<usize>| 8 * range.len() as u64 + 8;
        let costs = slots.of_block.iter().map(|ranges| 32 + ranges.iter().map(cost).sum::<u64>()).collect();
        Searcher { blocks, base, neighbours, costs, slots }
    }

    /// The steps that one way down the tree takes, about.
    pub(super) fn descent(&self) -> u64 {
        let all: Vec<u32> = (0..self.blocks.len()).map(narrow).collect();
        self.cost(&all).saturating_mul(all.len() as u64) / 2
    }

    /// The steps that one node with these blocks takes, apart from those over neighbours.
    fn cost(&self, ids: &[u32]) -> u64 {
        ids.iter().map(|&id| self.costs[id as usize]).sum::<u64>() + 200
    }

    /// Looks for a placement that ends at or below `height`; of blocks with equal lowest places, the
    /// one that comes first in `order` is looked at first. `blame` counts the failures at each slot, and
    /// is carried over from one search to the next.
    pub(super) fn search(
        &self,
        order: &[usize],
        rule: Rule,
        height: u64,
        blame: &mut [u64],
        steps: &mut u64,
    ) -> Outcome {
        let mut rank = vec![0u32; order.len()];
        for (place, &index) in (0u32..).zip(order) {
            rank[index] = place;
        }
        let lowest: Vec<u64> = self.blocks.iter().map(|block| block.raised(self.base)).collect();
        let mut state = State {
            on: self,
            height,
            rank,
            rule,
            support: lowest.clone(),
            lowest,
            placed: vec![false; order.len()],
            offsets: vec![0; order.len()],
            remaining: self.slots.load.clone(),
            trail: Vec::new(),
            sums: vec![0; self.slots.load.len()],
            room: vec![0; self.slots.load.len()],
            roots: vec![0; self.slots.load.len()],
            blame,
            steps: *steps,
        };
        let all: Vec<u32> = order.iter().map(|&index| narrow(index)).collect();
        let end = state.solve(&all);
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
    Failed,
    OutOfSteps,
}

/// A partial placement.
struct State<'a, 'b> {
    on: &'a Searcher<'a>,
    height: u64,
    rank: Vec<u32>,
    rule: Rule,
    /// The place of each remaining block on top of the placed ones.
    support: Vec<u64>,
    /// A bound on the final place of each remaining block: above `support` when it is postponed.
    lowest: Vec<u64>,
    placed: Vec<bool>,
    offsets: Vec<u64>,
    /// The sum of sizes of the blocks that remain, for each slot.
    remaining: Vec<u64>,
    /// Earlier values of `support` and `lowest`.
    trail: Vec<(u32, u64, u64)>,
    /// Scratch space of `fits`, and its result: the least room to spare in each slot.
    sums: Vec<u64>,
    room: Vec<u64>,
    /// Scratch space of `parts`.
    roots: Vec<u32>,
    blame: &'b mut [u64],
    steps: u64,
}

impl State<'_, '_> {
    /// Places the blocks `ids`, which are all that remain in their slots.
    fn solve(&mut self, ids: &[u32]) -> End {
        let mut parts = self.parts(ids);
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

    /// Places blocks that are linked by meeting in time.
    fn branch(&mut self, mut ids: Vec<u32>) -> End {
        let mark = self.trail.len();
        let end = loop {
            if self.steps == 0 {
                break End::OutOfSteps;
            }
            self.spend(self.on.cost(&ids));
            if !self.raise_postponed(&ids) {
                break End::Failed;
            }
            ids.sort_by_key(|&id| (self.lowest[id as usize], self.rank[id as usize]));
            if !self.fits(&ids) {
                break End::Failed;
            }
            let id = self.pick(&ids);
            let index = id as usize;
            let rest: Vec<u32> = ids.iter().copied().filter(|&other| other != id).collect();
            let mark = self.trail.len();
            self.spend(4 * self.on.neighbours[index].len() as u64);
            self.put(index);
            let end = self.solve(&rest);
            self.take(index, mark);
            if end != End::Failed {
                break end;
            }
            self.trail.push((id, self.support[index], self.lowest[index]));
            self.lowest[index] = self.on.blocks[index].raised(self.support[index] + 1);
        };
        self.undo(mark);
        end
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
                self.spend(4 * self.on.neighbours[index].len() as u64);
                let Some(end) = self.lowest_neighbour(index).map(|(end, _, _)| end) else {
                    return false;
                };
                let raised = self.on.blocks[index].raised(end);
                if raised.saturating_add(self.on.blocks[index].size) > self.height {
                    return false;
                }
                if raised > self.lowest[index] {
                    self.trail.push((id, self.support[index], self.lowest[index]));
                    self.lowest[index] = raised;
                    changed = true;
                }
            }
        }
        true
    }

    fn spend(&mut self, steps: u64) {
        self.steps = self.steps.saturating_sub(steps);
    }

    /// Whether a block may be put where it is, having not been postponed there.
    fn is_eligible(&self, id: u32) -> bool {
        self.support[id as usize] == self.lowest[id as usize]
    }

    /// The least end of the remaining blocks that meet a block, with the rank and number of that one.
    fn lowest_neighbour(&self, index: usize) -> Option<(u64, u32, u32)> {
        let neighbours = self.on.neighbours[index].iter().filter(|&&other| !self.placed[other as usize]);
        let end = |other: u32| self.lowest[other as usize].saturating_add(self.on.blocks[other as usize].size);
        neighbours.map(|&other| (end(other), self.rank[other as usize], other)).min()
    }

    /// The block to put or to postpone. `ids` are sorted by their lowest places.
    fn pick(&self, ids: &[u32]) -> u32 {
        if self.rule == Rule::Lowest {
            let eligible = ids.iter().copied().find(|&id| self.is_eligible(id));
            return eligible.expect("the block that ends lowest rests on placed ones");
        }
        let slots_of = |id: u32| self.on.slots.of_block[id as usize].iter();
        let slots = ids.iter().flat_map(|&id| slots_of(id)).flat_map(Clone::clone);
        let key = |slot: usize| match self.rule {
            Rule::Fullest => ((self.height - self.remaining[slot]) / (1 + self.blame[slot]), self.room[slot], slot),
            Rule::Tightest | Rule::Lowest => (self.room[slot], self.height - self.remaining[slot], slot),
        };
        let slot = slots.min_by_key(|&slot| key(slot)).expect("every block covers a slot");
        let covers = |&id: &u32| slots_of(id).any(|range| range.contains(&slot));
        let mut id = ids.iter().copied().find(covers).expect("the slot is covered by a block");
        // As long as another block can come to lie under this one, that one is to be looked at first.
        loop {
            match self.lowest_neighbour(id as usize) {
                Some((end, _, other)) if end <= self.lowest[id as usize] => id = other,
                Some(_) | None => return id,
            }
        }
    }

    /// Whether the blocks that remain fit, slot by slot, above their lowest places, by which `ids` are
    /// sorted.
    fn fits(&mut self, ids: &[u32]) -> bool {
        let on = self.on;
        for &id in ids {
            for range in &on.slots.of_block[id as usize] {
                self.sums[range.clone()].fill(0);
                self.room[range.clone()].fill(u64::MAX);
            }
        }
        for &id in ids.iter().rev() {
            let size = on.blocks[id as usize].size;
            let Some(above) = self.height.checked_sub(self.lowest[id as usize]) else {
                return false;
            };
            for range in &on.slots.of_block[id as usize] {
                for slot in range.clone() {
                    self.sums[slot] += size;
                    let Some(room) = above.checked_sub(self.sums[slot]) else {
                        self.blame[slot] += 1;
                        return false;
                    };
                    self.room[slot] = self.room[slot].min(room);
                }
            }
        }
        true
    }

    fn put(&mut self, index: usize) {
        let on = self.on;
        let size = on.blocks[index].size;
        let offset = self.support[index];
        self.placed[index] = true;
        self.offsets[index] = offset;
        for range in &on.slots.of_block[index] {
            for remaining in &mut self.remaining[range.clone()] {
                *remaining -= size;
            }
        }
        for &other in &on.neighbours[index] {
            let other_index = other as usize;
            let support = on.blocks[other_index].raised(offset + size);
            if !self.placed[other_index] && self.support[other_index] < support {
                self.trail.push((other, self.support[other_index], self.lowest[other_index]));
                self.support[other_index] = support;
                self.lowest[other_index] = self.lowest[other_index].max(support);
            }
        }
    }

    fn take(&mut self, index: usize, mark: usize) {
        let size = self.on.blocks[index].size;
        self.placed[index] = false;
        for range in &self.on.slots.of_block[index] {
            for remaining in &mut self.remaining[range.clone()] {
                *remaining += size;
            }
        }
        self.undo(mark);
    }

    fn undo(&mut self, mark: usize) {
        for (id, support, lowest) in self.trail.drain(mark..).rev() {
            self.support[id as usize] = support;
            self.lowest[id as usize] = lowest;
        }
    }

    /// The sets of blocks that are linked by sharing slots.
    fn parts(&mut self, ids: &[u32]) -> Vec<Vec<u32>> {
        let on = self.on;
        let slots_of = |id: u32| on.slots.of_block[id as usize].iter().flat_map(Clone::clone);
        for slot in ids.iter().flat_map(|&id| slots_of(id)) {
            self.roots[slot] = narrow(slot);
        }
        for &id in ids {
            let mut slots = slots_of(id);
            let mut first = slots.next().map_or(0, |slot| root(&mut self.roots, slot));
            for slot in slots {
                let other = root(&mut self.roots, slot);
                self.roots[first.max(other)] = narrow(first.min(other));
                first = first.min(other);
            }
        }
        let mut parts: Vec<(usize, Vec<u32>)> = Vec::new();
        for &id in ids {
            let root = slots_of(id).next().map_or(0, |slot| root(&mut self.roots, slot));
            match parts.iter_mut().find(|(other, _)| *other == root) {
                Some((_, part)) => part.push(id),
                None => parts.push((root, vec![id])),
            }
        }
        parts.into_iter().map(|(_, part)| part).collect()
    }
}

/// The representative of a slot, halving the path to it.
fn root(roots: &mut [u32], mut slot: usize) -> usize {
    while roots[slot] as usize != slot {
        roots[slot] = roots[roots[slot] as usize];
        slot = roots[slot] as usize;
    }
    slot
}

fn narrow(index: usize) -> u32 {
    u32::try_from(index).expect("a group has fewer than 2^32 blocks and slots")
}
