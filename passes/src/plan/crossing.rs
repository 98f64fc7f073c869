//! Which values a rank keeps, receives and sends, given the units of its stages and which of them are recomputed.

use super::facts::{Facts, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use trainc_ir::{NodeId, ValueId};

/// What runs on a pipeline stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageUnits {
    /// The units.
    pub units: Range<usize>,
    /// For each of them whether its activations are recomputed in the backward.
    pub recompute: Vec<bool>,
}

/// The recompute of a unit: the nodes to run again and the values that they restore.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recompute {
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) restored: BTreeSet<ValueId>,
}

/// Forward values that a unit's backward reads.
fn backward_reads(facts: &Facts<'_>, unit: usize) -> Vec<ValueId> {
    let forward = |v: &ValueId| matches!(facts.source[*v], Some(Source::Forward(_)));
    facts.backward_reads[unit].iter().copied().filter(forward).collect()
}

/// What crosses between the units of one rank, and between it and the others.
#[derive(Debug)]
pub(crate) struct Crossing {
    /// Forward values kept from the forward of a micro-batch to its backward.
    pub(crate) kept: BTreeSet<ValueId>,
    /// Per recomputed unit of the rank.
    pub(crate) recomputes: BTreeMap<usize, Recompute>,
}

impl Crossing {
    /// What crosses on a rank that holds these stages.
    pub(crate) fn new<'s>(facts: &Facts<'_>, stages: impl IntoIterator<Item = &'s StageUnits>) -> Self {
        let units = stages.into_iter().flat_map(|stage| stage.units.clone().zip(stage.recompute.iter().copied()));
        let units: Vec<(usize, bool, Vec<ValueId>)> =
            units.map(|(unit, recompute)| (unit, recompute, backward_reads(facts, unit))).collect();
        let mut kept = BTreeSet::new();
        for &(unit, recompute, ref reads) in &units {
            let own = |v: ValueId| facts.source[v] == Some(Source::Forward(unit));
            kept.extend(reads.iter().copied().filter(|&v| !recompute || !own(v)));
        }
        // What a recompute reads from outside its unit must be kept; that may spare other recomputes some work.
        let recomputed = || units.iter().filter(|(_, recompute, _)| *recompute);
        for (unit, _, reads) in recomputed() {
            let found = recompute_of(facts, *unit, reads, &kept);
            kept.extend(outside(facts, *unit, &found.nodes));
        }
        let recomputes = recomputed().map(|(unit, _, reads)| (*unit, recompute_of(facts, *unit, reads, &kept)));
        let recomputes = recomputes.collect();
        Self { kept, recomputes }
    }
}

/// The forward values of other units that the nodes read.
fn outside(facts: &Facts<'_>, unit: usize, nodes: &[NodeId]) -> Vec<ValueId> {
    let mut reads = facts.reads(nodes, &[]);
    reads.retain(|&v| matches!(facts.source[v], Some(Source::Forward(from)) if from != unit));
    reads
}

/// The least part of the unit's forward that gives what its backward reads and nobody keeps.
fn recompute_of(facts: &Facts<'_>, unit: usize, reads: &[ValueId], kept: &BTreeSet<ValueId>) -> Recompute {
    let step = &facts.training.step;
    let own = |v: &ValueId| facts.source[*v] == Some(Source::Forward(unit)) && !kept.contains(v);
    let restored: BTreeSet<ValueId> = reads.iter().copied().filter(own).collect();
    let mut wanted = restored.clone();
    let mut nodes = Vec::new();
    for &node in facts.forward[unit].iter().rev() {
        if step.nodes[node].outputs.iter().any(|v| wanted.contains(v)) {
            nodes.push(node);
            wanted.extend(facts.reads(&[node], &[]).into_iter().filter(|v| own(v)));
        }
    }
    nodes.reverse();
    Recompute { nodes, restored }
}

/// A value that goes from one rank to another for every micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Transfer {
    /// The stage that makes it.
    pub(crate) from: usize,
    /// The stage that needs it first among those of the other rank.
    pub(crate) to: usize,
    /// A gradient going back.
    pub(crate) backward: bool,
    pub(crate) value: ValueId,
}

/// All transfers of a division into stages, in a fixed order. `rank_of` says on which rank each stage is; what several
/// stages of a rank need comes once.
pub(crate) fn transfers(facts: &Facts<'_>, stages: &[StageUnits], rank_of: &[usize]) -> Vec<Transfer> {
    let mut stage_of = BTreeMap::new();
    for (index, stage) in stages.iter().enumerate() {
        stage_of.extend(stage.units.clone().map(|unit| (unit, index)));
    }
    let mut first: BTreeMap<(usize, bool, ValueId, usize), usize> = BTreeMap::new();
    for (to, stage) in stages.iter().enumerate() {
        for unit in stage.units.clone() {
            for &value in facts.forward_reads[unit].iter().chain(&facts.backward_reads[unit]) {
                let (from, backward) = match facts.source[value] {
                    Some(Source::Forward(unit)) => (stage_of[&unit], false),
                    Some(Source::Backward(unit)) => (stage_of[&unit], true),
                    Some(Source::Held | Source::Data | Source::Free(_)) | None => continue,
                };
                if rank_of[from] != rank_of[to] {
                    // Forwards go through the stages in ascending order, backwards in descending order.
                    let known = first.entry((from, backward, value, rank_of[to])).or_insert(to);
                    *known = if backward { to.max(*known) } else { to.min(*known) };
                }
            }
        }
    }
    let found = first.into_iter().map(|((from, backward, value, _), to)| Transfer { from, to, backward, value });
    let found: BTreeSet<Transfer> = found.collect();
    found.into_iter().collect()
}
