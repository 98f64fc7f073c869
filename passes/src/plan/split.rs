//! The two halves of a unit's backward: what other work waits for, and what the weights' gradients alone need.

use super::facts::{Facts, Source, UnitContribution};
use std::collections::BTreeSet;
use trainc_ir::{NodeId, Phase, ValueId};

/// A part of a unit's backward.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// Nodes in order.
    pub(crate) nodes: Vec<NodeId>,
    /// Contributions that are added up behind it.
    pub(crate) contributions: Vec<UnitContribution>,
}

impl Part {
    /// The whole backward of a unit.
    pub(crate) fn whole(facts: &Facts<'_>, unit: usize) -> Self {
        Self { nodes: facts.backward[unit].clone(), contributions: facts.contributions[unit].clone() }
    }

    /// Whether nothing is done.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.contributions.is_empty()
    }

    /// What it reads that the unit's backward makes elsewhere.
    pub(crate) fn reads_of(&self, facts: &Facts<'_>, unit: usize) -> BTreeSet<ValueId> {
        let extra: Vec<ValueId> = self.contributions.iter().map(|c| c.value).collect();
        let reads = facts.reads(&self.nodes, &extra).into_iter();
        reads.filter(|&v| facts.source[v] == Some(Source::Backward(unit))).collect()
    }
}

/// A unit's backward in two parts, the second of which nothing but the update waits for: nodes of the phase weight
/// gradient whose results stay in it, and the contributions that come from them.
pub(crate) fn split(facts: &Facts<'_>, unit: usize) -> [Part; 2] {
    let step = &facts.training.step;
    let mut input = Part::default();
    let mut weight = Part::default();
    let mut made_late: BTreeSet<ValueId> = BTreeSet::new();
    let mut needed: BTreeSet<ValueId> = BTreeSet::new();
    for &id in facts.backward[unit].iter().rev() {
        let node = &step.nodes[id];
        let stays = |v: &ValueId| !needed.contains(v) && facts.backward_readers[*v].is_empty();
        if facts.training.phases[id] == Phase::WeightGrad && node.outputs.iter().all(stays) {
            made_late.extend(&node.outputs);
            weight.nodes.push(id);
        } else {
            needed.extend(node.inputs.iter().map(|&v| facts.root[v]));
            input.nodes.push(id);
        }
    }
    input.nodes.reverse();
    weight.nodes.reverse();
    for &contribution in &facts.contributions[unit] {
        let late = made_late.contains(&facts.root[contribution.value]);
        let part = if late { &mut weight } else { &mut input };
        part.contributions.push(contribution);
    }
    [input, weight]
}
