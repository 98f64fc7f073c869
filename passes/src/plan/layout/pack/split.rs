//! Splitting a packing into independent groups, without loss.

use super::group::pack_group;
use super::problem::Block;

/// Rounds of stripping and splitting; deeper nests are left to the placement.
const MAX_ROUNDS: u32 = 32;

/// A set of blocks to be placed at or above `base`.
struct Group {
    ids: Vec<usize>,
    base: u64,
    rounds: u32,
}

/// Offsets for all blocks. Heights at or below `target` are good enough, and all groups together
/// spend about `steps`.
pub(super) fn pack_blocks(blocks: &[Block], target: u64, steps: u64) -> Vec<u64> {
    let mut offsets: Vec<u64> = blocks.iter().map(|block| block.fixed.unwrap_or(0)).collect();
    let ids: Vec<usize> = (0..blocks.len()).filter(|&id| blocks[id].size > 0 && !blocks[id].lives.is_empty()).collect();
    // A group can be no better than the worst group before it.
    let mut target = target;
    let mut steps = steps;
    let mut work = vec![Group { ids, base: 0, rounds: 0 }];
    while let Some(group) = work.pop() {
        for ids in components(blocks, &group.ids) {
            let (bottom, rest) = always_alive(blocks, &ids);
            if bottom.is_empty() || group.rounds == MAX_ROUNDS {
                let chosen: Vec<&Block> = ids.iter().map(|&id| &blocks[id]).collect();
                let packed = pack_group(&chosen, group.base, target, &mut steps);
                target = target.max(packed.height);
                for (&id, offset) in ids.iter().zip(packed.offsets) {
                    offsets[id] = offset;
                }
                continue;
            }
            let mut base = group.base;
            for id in bottom {
                offsets[id] = base;
                base = base.saturating_add(blocks[id].size);
            }
            target = target.max(base);
            work.push(Group { ids: rest, base, rounds: group.rounds + 1 });
        }
    }
    offsets
}

/// The classes of blocks that are linked by meeting in time, in the order of their first lives.
fn components(blocks: &[Block], ids: &[usize]) -> Vec<Vec<usize>> {
    let mut lives: Vec<(u32, u32, usize)> = Vec::new();
    for (index, &id) in ids.iter().enumerate() {
        lives.extend(blocks[id].lives.iter().map(|live| (live.start, live.end, index)));
    }
    lives.sort_unstable();
    let mut parents: Vec<usize> = (0..ids.len()).collect();
    let mut previous: Option<(u32, usize)> = None;
    for &(start, end, index) in &lives {
        // The life that reaches furthest so far meets this one if any earlier life does.
        previous = match previous {
            Some((reach, other)) if start < reach => {
                let (one, other) = (root(&mut parents, index), root(&mut parents, other));
                parents[one.max(other)] = one.min(other);
                Some((reach.max(end), one.min(other)))
            }
            Some(_) | None => Some((end, index)),
        };
    }
    let mut places = vec![usize::MAX; ids.len()];
    let mut classes: Vec<Vec<usize>> = Vec::new();
    for (index, &id) in ids.iter().enumerate() {
        let root = root(&mut parents, index);
        if places[root] == usize::MAX {
            places[root] = classes.len();
            classes.push(Vec::new());
        }
        classes[places[root]].push(id);
    }
    classes
}

/// The representative of a class, halving the path to it.
fn root(parents: &mut [usize], mut index: usize) -> usize {
    while parents[index] != index {
        parents[index] = parents[parents[index]];
        index = parents[index];
    }
    index
}

/// The blocks that are alive whenever any block of the component is, and the other blocks. Any packing
/// can be turned into one with those at the bottom, as long as moving the others up by their sizes
/// keeps these aligned: so only blocks with the coarsest alignment are taken.
fn always_alive(blocks: &[Block], ids: &[usize]) -> (Vec<usize>, Vec<usize>) {
    if ids.iter().any(|&id| blocks[id].fixed.is_some()) {
        return (Vec::new(), ids.to_vec());
    }
    let lives: Vec<_> = ids.iter().flat_map(|&id| blocks[id].lives.iter().cloned()).collect();
    let occupied = super::problem::joined(&lives);
    let align = ids.iter().map(|&id| blocks[id].align).max();
    let is_bottom = |id: usize| blocks[id].lives == occupied && Some(blocks[id].align) == align;
    ids.iter().partition(|&&id| is_bottom(id))
}
