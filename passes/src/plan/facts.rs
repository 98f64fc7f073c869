//! What planning needs to know of a training graph: where bytes come from, which unit every node belongs to, and which
//! values cross units.

use crate::analysis::blocks::{Blocks, blocks};
use std::collections::{BTreeMap, HashMap, HashSet};
use trainc_ir::id::SideTable;
use trainc_ir::op::{Elementwise, Op};
use trainc_ir::{Graph, Input, InputRole, NodeId, Output, OutputRole, ParameterId, TrainingGraph, ValueId};

/// Where the bytes of a value come from. Values and their reshapes share one root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Source {
    /// A parameter or a constant table of the model.
    Held,
    /// Data or labels of the micro-batch.
    Data,
    /// Made again from data, tables and constants wherever it is needed.
    Free(NodeId),
    /// Made by a forward node of this unit.
    Forward(usize),
    /// Made by a backward node of this unit.
    Backward(usize),
}

/// Facts of a step graph.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) training: &'a TrainingGraph,
    pub(crate) blocks: Blocks,
    /// The value whose bytes these are: reshapes are looked through.
    pub(crate) root: SideTable<ValueId, ValueId>,
    /// The source of each root.
    pub(crate) source: SideTable<ValueId, Option<Source>>,
    /// Forward nodes of each unit that run a kernel, in order.
    pub(crate) forward: Vec<Vec<NodeId>>,
    /// Backward nodes of each unit that run a kernel, in order.
    pub(crate) backward: Vec<Vec<NodeId>>,
    /// Contributions to gradients that each unit makes.
    pub(crate) contributions: Vec<Vec<UnitContribution>>,
    /// What each unit's forward reads from outside it, by root.
    pub(crate) forward_reads: Vec<Vec<ValueId>>,
    /// What each unit's backward reads from outside it, by root; values of the unit's own forward count as outside.
    pub(crate) backward_reads: Vec<Vec<ValueId>>,
    /// The units whose forward reads the value.
    pub(crate) forward_readers: SideTable<ValueId, Vec<usize>>,
    /// The units whose backward reads the value.
    pub(crate) backward_readers: SideTable<ValueId, Vec<usize>>,
    /// Buffers by the value that is their next one.
    pub(crate) updated: BTreeMap<ValueId, String>,
    /// The unit that has the loss.
    pub(crate) loss_unit: usize,
    /// The loss sum and count.
    pub(crate) loss: [ValueId; 2],
    /// Inputs and outputs by name.
    pub(crate) names: Names<'a>,
    /// The parameter of each input of the step that is one.
    pub(crate) parameter_of: SideTable<ValueId, Option<ParameterId>>,
    /// For each parameter the unit that makes each of its contributions.
    pub(crate) made_in: SideTable<ParameterId, Vec<usize>>,
}

/// Inputs and outputs of a training graph by name.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    /// Inputs of the step.
    pub(crate) step_inputs: HashMap<&'a str, &'a Input>,
    /// Inputs of the update.
    pub(crate) update_inputs: HashMap<&'a str, &'a Input>,
    /// Outputs of the update.
    pub(crate) update_outputs: HashMap<&'a str, &'a Output>,
    /// What the update gives a value out as.
    pub(crate) update_results: SideTable<ValueId, Option<&'a str>>,
}

impl<'a> Names<'a> {
    fn new(training: &'a TrainingGraph) -> Self {
        let inputs = |graph: &'a Graph| graph.inputs.iter().map(|input| (input.name.as_str(), input)).collect();
        let outputs = training.update.outputs.iter().map(|output| (output.name.as_str(), output));
        let mut update_results = SideTable::new(None);
        for output in &training.update.outputs {
            update_results.set(output.value, Some(output.name.as_str()));
        }
        Self {
            step_inputs: inputs(&training.step),
            update_inputs: inputs(&training.update),
            update_outputs: outputs.collect(),
            update_results,
        }
    }
}

/// A contribution to a parameter's gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitContribution {
    pub(crate) parameter: ParameterId,
    /// Its number among the parameter's contributions.
    pub(crate) index: usize,
    /// The gradient as the step graph types it.
    pub(crate) value: ValueId,
}

impl<'a> Facts<'a> {
    /// Gathers the facts.
    ///
    /// # Panics
    /// When the training graph has no loss outputs (a verified one has).
    pub(crate) fn new(training: &'a TrainingGraph) -> Self {
        let step = &training.step;
        let blocks = blocks(step, training.forward_nodes);
        let root = roots(step);
        let mut source: SideTable<ValueId, Option<Source>> = SideTable::new(None);
        for input in &step.inputs {
            let held = match input.role {
                InputRole::Parameter | InputRole::Buffer | InputRole::State | InputRole::GradientSum => Source::Held,
                InputRole::Data | InputRole::Label | InputRole::Scalar => Source::Data,
            };
            source.set(input.value, Some(held));
        }
        let n_units = blocks.units.len().max(1);
        let updated = step.outputs.iter().filter(|output| output.role == OutputRole::Updated);
        let mut facts = Self {
            training,
            blocks,
            root,
            source,
            forward: vec![Vec::new(); n_units],
            backward: vec![Vec::new(); n_units],
            contributions: vec![Vec::new(); n_units],
            forward_reads: Vec::new(),
            backward_reads: Vec::new(),
            forward_readers: SideTable::default(),
            backward_readers: SideTable::default(),
            updated: updated.map(|output| (output.value, output.name.clone())).collect(),
            loss_unit: n_units - 1,
            loss: ["loss_sum", "loss_count"]
                .map(|name| step.output(name).expect("a verified training graph has both loss outputs").value),
            names: Names::new(training),
            parameter_of: SideTable::new(None),
            made_in: SideTable::default(),
        };
        for (id, parameter) in training.parameters.iter() {
            facts.parameter_of.set(parameter.input, Some(id));
        }
        facts.place_nodes();
        for unit in 0..n_units {
            let reads = facts.reads(&facts.forward[unit], &[]);
            for &value in &reads {
                facts.forward_readers[value].push(unit);
            }
            facts.forward_reads.push(reads);
        }
        facts.place_contributions();
        facts.gather_backward_reads(n_units);
        if let Some(Source::Forward(unit)) = facts.source[facts.root[facts.loss[0]]] {
            facts.loss_unit = unit;
        }
        facts
    }

    fn place_nodes(&mut self) {
        let training = self.training;
        for (id, node) in training.step.nodes.iter() {
            let forward = training.is_forward(id);
            let operands = node.inputs.iter().map(|&v| self.source[self.root[v]]);
            let free = if forward {
                self.blocks.free[id]
            } else {
                let given = |s| matches!(s, Some(Source::Data | Source::Free(_)));
                operands.clone().all(given)
            };
            let place = if free {
                Source::Free(id)
            } else if forward {
                Source::Forward(self.blocks.unit_of[id].expect("every main node has a unit"))
            } else {
                let anchored = training.anchors[id].and_then(|anchor| self.blocks.unit_of[anchor]);
                let made_in = operands.filter_map(|s| match s? {
                    Source::Forward(unit) | Source::Backward(unit) => Some(unit),
                    Source::Held | Source::Data | Source::Free(_) => None,
                });
                // A sum of gradients is made where the last of them comes from: one value crosses to the anchor's stage.
                let made_last = made_in.min();
                let is_sum = matches!(node.op, Op::Elementwise(Elementwise::Add));
                let own = if is_sum { made_last.max(anchored) } else { anchored.or(made_last) };
                Source::Backward(own.unwrap_or(0))
            };
            if node.op.is_alias() {
                continue;
            }
            match place {
                Source::Forward(unit) => self.forward[unit].push(id),
                Source::Backward(unit) => self.backward[unit].push(id),
                Source::Free(_) | Source::Held | Source::Data => {}
            }
            for &output in &node.outputs {
                self.source.set(output, Some(place));
            }
        }
    }

    fn place_contributions(&mut self) {
        for (parameter, facts) in self.training.parameters.iter() {
            for (index, contribution) in facts.contributions.iter().enumerate() {
                let by_source = match self.source[self.root[contribution.value]] {
                    Some(Source::Forward(unit) | Source::Backward(unit)) => Some(unit),
                    Some(Source::Held | Source::Data | Source::Free(_)) | None => None,
                };
                // A gradient that depends on no activation is made where the parameter is read, so that its reader, who
                // holds the parameter, also holds the sum. The user itself may be a reshape in another unit.
                let readers = &self.forward_readers[facts.input];
                let of_user = self.blocks.unit_of[contribution.user].filter(|unit| readers.contains(unit));
                let unit = by_source.or(of_user).or_else(|| readers.first().copied()).unwrap_or(0);
                let value = contribution.value;
                self.contributions[unit].push(UnitContribution { parameter, index, value });
                self.made_in[parameter].push(unit);
            }
        }
    }

    fn gather_backward_reads(&mut self, n_units: usize) {
        for unit in 0..n_units {
            let extra: Vec<ValueId> = self.contributions[unit].iter().map(|c| c.value).collect();
            let reads = self.reads(&self.backward[unit], &extra);
            for &value in &reads {
                self.backward_readers[value].push(unit);
            }
            self.backward_reads.push(reads);
        }
    }

    /// The operands of a node, by root.
    fn operands(&self, node: NodeId) -> impl Iterator<Item = ValueId> + '_ {
        self.training.step.nodes[node].inputs.iter().map(|&v| self.root[v])
    }

    /// Every root that running these nodes reads from outside them and that is not free: values of other nodes, held
    /// tensors and data, those that free operands are made from included. In order of first use.
    pub(crate) fn reads(&self, nodes: &[NodeId], extra: &[ValueId]) -> Vec<ValueId> {
        let outputs = nodes.iter().flat_map(|&n| &self.training.step.nodes[n].outputs);
        let defined: HashSet<ValueId> = outputs.copied().collect();
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        let mut pending: Vec<ValueId> = nodes.iter().flat_map(|&n| self.operands(n)).collect();
        pending.extend(extra.iter().map(|&v| self.root[v]));
        pending.reverse();
        while let Some(value) = pending.pop() {
            if !seen.insert(value) || defined.contains(&value) {
                continue;
            }
            match self.source[value] {
                Some(Source::Free(node)) => pending.extend(self.operands(node).collect::<Vec<_>>().into_iter().rev()),
                Some(Source::Held | Source::Data | Source::Forward(_) | Source::Backward(_)) | None => {
                    found.push(value);
                }
            }
        }
        found
    }
}

fn roots(graph: &Graph) -> SideTable<ValueId, ValueId> {
    let first = graph.values.ids().next();
    let Some(first) = first else { return SideTable::new(trainc_ir::id::Id::from_index(0)) };
    let mut root = SideTable::new(first);
    for input in &graph.inputs {
        root.set(input.value, input.value);
    }
    for node in graph.nodes.values() {
        for &output in &node.outputs {
            let becomes = if node.op.is_alias() { root[node.inputs[0]] } else { output };
            root.set(output, becomes);
        }
    }
    root
}
