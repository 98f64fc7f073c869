//! Blocks: the repeated structures of a forward graph, and its division into units between which a pipeline may be cut.
//!
//! A node is *main* when it depends on a parameter (or draws random numbers, or updates a buffer), otherwise *free*: masks,
//! position tables and shifted labels are free, and are cheap enough to be computed again wherever they are needed. Main nodes stand in
//! a line; after a node at which only one main value is still to be read, the graph can be cut. The pieces between cuts
//! are the atoms. Atoms of one structure (the same operators, attributes, types and wiring; other weights) share a
//! class, found by exact comparison of a canonical encoding. The longest repetition of a sequence of classes is a run
//! of blocks; what is left on both sides of it is searched again.

mod canon;
mod runs;

use runs::Run;
use std::collections::{BTreeSet, HashMap};
use trainc_ir::id::SideTable;
use trainc_ir::op::{Contraction, Op, Random};
use trainc_ir::{Graph, InputRole, NodeId, OutputRole, ValueId};

/// A contiguous piece of the forward graph that stays on one stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Name for people: `embedding`, `block 3`, `head`.
    pub name: String,
    /// Its main nodes, in order.
    pub nodes: Vec<NodeId>,
    /// The class, for a block.
    pub class: Option<usize>,
}

/// A class of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Name for people.
    pub name: String,
    /// The units that are instances of it, in order.
    pub instances: Vec<usize>,
}

/// The division of a forward graph.
#[derive(Clone, Debug)]
pub struct Blocks {
    /// Units in order; together they hold every main node once.
    pub units: Vec<Unit>,
    /// Classes in order of their first instance.
    pub classes: Vec<Class>,
    /// Whether the node is free.
    pub free: SideTable<NodeId, bool>,
    /// The unit of each main node.
    pub unit_of: SideTable<NodeId, Option<usize>>,
}

/// A value that stays to be read for more than this part of the line is a hub: cuts may leave it live.
const HUB_SHARE: usize = 4;

/// Where no block was found, atoms are joined until at most this many units are left.
const MAX_UNITS_WITHOUT_BLOCKS: usize = 128;

/// Of a run of more blocks than this, several neighbours are one unit: planning takes longer than linear time in units.
const MAX_BLOCKS: usize = 512;

/// Divides the first `n_nodes` nodes of a graph (the forward of a step graph).
pub fn blocks(graph: &Graph, n_nodes: usize) -> Blocks {
    let free = free_nodes(graph, n_nodes);
    let main: Vec<NodeId> = graph.nodes.ids().take(n_nodes).filter(|&node| !free[node]).collect();
    let line = Line::new(graph, &main);
    let repeated = |atoms: &[Vec<NodeId>]| {
        let classes = canon::classes(graph, &free, atoms);
        let counts: Vec<bool> = atoms.iter().map(|atom| atom.iter().any(|&n| is_product(graph, n))).collect();
        let found = runs::runs(&classes, &counts);
        (classes, found)
    };
    let mut atoms = line.atoms(usize::MAX);
    let (mut classes, mut found) = repeated(&atoms);
    if found.is_empty() {
        // Values that a whole stack reads (an encoder's output, a shared position bias) stay to be read everywhere in it.
        let finer = line.atoms(main.len() / HUB_SHARE);
        let (finer_classes, runs) = repeated(&finer);
        if !runs.is_empty() {
            (atoms, classes, found) = (finer, finer_classes, runs);
        }
    }
    let mut result = Blocks { units: Vec::new(), classes: Vec::new(), free, unit_of: SideTable::new(None) };
    let mut keys: HashMap<&[usize], usize> = HashMap::new();
    let mut at = 0;
    let found: Vec<Run> = found.into_iter().flat_map(|run| run.joined(MAX_BLOCKS)).collect();
    for run in &found {
        push_gap(&mut result, &atoms[at..run.start], found.is_empty());
        for instance in 0..run.count {
            let start = run.start + instance * run.period;
            let key = &classes[start..start + run.period];
            let next = keys.len();
            let class = *keys.entry(key).or_insert(next);
            if class == next {
                result.classes.push(Class { name: format!("block class {class}"), instances: Vec::new() });
            }
            result.classes[class].instances.push(result.units.len());
            let nodes = atoms[start..start + run.period].concat();
            result.units.push(Unit { name: String::new(), nodes, class: Some(class) });
        }
        at = run.start + run.count * run.period;
    }
    push_gap(&mut result, &atoms[at..], found.is_empty());
    name_units(graph, &mut result);
    for (index, unit) in result.units.iter().enumerate() {
        for &node in &unit.nodes {
            result.unit_of.set(node, Some(index));
        }
    }
    result
}

fn is_product(graph: &Graph, node: NodeId) -> bool {
    matches!(
        graph.nodes[node].op,
        Op::Contraction(Contraction::MatMul { transpose_a: _, transpose_b: _ }) | Op::Attention(_) | Op::Convolution(_)
    )
}

/// The buffers that the graph gives next values of.
fn updated_buffers(graph: &Graph) -> BTreeSet<ValueId> {
    let updated = graph.outputs.iter().filter(|output| output.role == OutputRole::Updated);
    let names: BTreeSet<&str> = updated.map(|output| output.name.as_str()).collect();
    let inputs = graph.inputs.iter().filter(|input| names.contains(input.name.as_str()));
    inputs.map(|input| input.value).collect()
}

fn free_nodes(graph: &Graph, n_nodes: usize) -> SideTable<NodeId, bool> {
    let mut main_value: SideTable<ValueId, bool> = SideTable::new(false);
    let updated = updated_buffers(graph);
    for input in &graph.inputs {
        main_value.set(input.value, input.role == InputRole::Parameter);
    }
    let mut free = SideTable::new(false);
    for (id, node) in graph.nodes.iter().take(n_nodes) {
        let random = matches!(node.op, Op::Random(Random::Dropout { p: _, site: _ }));
        let main = random || node.inputs.iter().any(|v| main_value[*v] || updated.contains(v));
        free.set(id, !main);
        for &output in &node.outputs {
            main_value.set(output, main);
        }
    }
    free
}

/// The main nodes in order, and how long their results stay to be read.
struct Line<'a> {
    main: &'a [NodeId],
    /// Where each result that later nodes read is defined and last read, as positions in the line.
    spans: Vec<(usize, usize)>,
}

impl<'a> Line<'a> {
    fn new(graph: &Graph, main: &'a [NodeId]) -> Self {
        let mut last_use: SideTable<ValueId, usize> = SideTable::new(0);
        for (position, &node) in main.iter().enumerate() {
            for &input in &graph.nodes[node].inputs {
                last_use.set(input, position);
            }
        }
        let outputs = main.iter().enumerate().flat_map(|(at, &n)| graph.nodes[n].outputs.iter().map(move |&v| (at, v)));
        let spans = outputs.map(|(at, value)| (at, last_use[value])).filter(|(at, last)| last > at).collect();
        Self { main, spans }
    }

    /// Pieces between the places where at most one value is still to be read, hubs (which stay for more than `hub`
    /// positions) not counted.
    fn atoms(&self, hub: usize) -> Vec<Vec<NodeId>> {
        let mut change = vec![0i64; self.main.len() + 1];
        for &(defined, last) in self.spans.iter().filter(|(defined, last)| last - defined <= hub) {
            change[defined] += 1;
            change[last] -= 1;
        }
        let mut atoms = Vec::new();
        let mut atom = Vec::new();
        let mut live = 0;
        for (at, &node) in self.main.iter().enumerate() {
            live += change[at];
            atom.push(node);
            if live <= 1 || at + 1 == self.main.len() {
                atoms.push(std::mem::take(&mut atom));
            }
        }
        atoms
    }
}

fn push_gap(result: &mut Blocks, atoms: &[Vec<NodeId>], split: bool) {
    if atoms.is_empty() {
        return;
    }
    let pieces = if split { atoms.len().min(MAX_UNITS_WITHOUT_BLOCKS) } else { 1 };
    for piece in 0..pieces {
        let range = piece * atoms.len() / pieces..(piece + 1) * atoms.len() / pieces;
        result.units.push(Unit { name: String::new(), nodes: atoms[range].concat(), class: None });
    }
}

fn name_units(graph: &Graph, blocks: &mut Blocks) {
    let count = blocks.units.len();
    let first_block = blocks.units.iter().position(|u| u.class.is_some());
    let last_block = blocks.units.iter().rposition(|u| u.class.is_some());
    let mut n_blocks = 0;
    for (index, unit) in blocks.units.iter_mut().enumerate() {
        unit.name = match (unit.class, first_block, last_block) {
            (Some(_), _, _) => {
                n_blocks += 1;
                format!("block {}", n_blocks - 1)
            }
            (None, Some(first), _) if index < first => {
                let looks_up = unit.nodes.iter().any(|&n| matches!(graph.nodes[n].op, Op::Indexing(_)));
                if looks_up { "embedding".to_owned() } else { "stem".to_owned() }
            }
            (None, _, Some(last)) if index > last => "head".to_owned(),
            (None, Some(_), Some(_)) => format!("bridge {n_blocks}"),
            (None, _, _) if count == 1 => "model".to_owned(),
            (None, _, _) => format!("part {index}"),
        };
    }
}

#[cfg(test)]
mod tests;
