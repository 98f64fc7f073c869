//! Canonical encodings: two atoms are of one class if and only if their encodings are equal.

use std::collections::{BTreeSet, HashMap};
use trainc_ir::id::SideTable;
use trainc_ir::op::Op;
use trainc_ir::{Graph, InputRole, NodeId, Type, ValueId};

/// One word of an encoding.
#[derive(PartialEq, Eq, Hash)]
enum Token {
    /// A node begins.
    Op(Op),
    /// A result of an earlier node of the atom.
    Local(u32, u32),
    /// A main value from outside, numbered by first use.
    Outside(u32, Type),
    /// A parameter or a buffer that is updated, numbered by first use.
    Parameter(u32, Type),
    /// A free value, numbered by its structure over the whole graph.
    Free(u32),
    /// A result that later atoms read.
    LiveOut(u32, u32),
}

/// The class of each atom; classes are numbered by first occurrence.
pub(super) fn classes(graph: &Graph, free: &SideTable<NodeId, bool>, atoms: &[Vec<NodeId>]) -> Vec<usize> {
    let mut own = super::updated_buffers(graph);
    own.extend(graph.inputs.iter().filter(|input| input.role == InputRole::Parameter).map(|input| input.value));
    let structure = free_structure(graph, free, &own);
    let mut atom_of: SideTable<NodeId, usize> = SideTable::new(usize::MAX);
    for (index, atom) in atoms.iter().enumerate() {
        for &node in atom {
            atom_of.set(node, index);
        }
    }
    let mut read_later: SideTable<ValueId, bool> = SideTable::new(false);
    for (index, atom) in atoms.iter().enumerate() {
        for &input in atom.iter().flat_map(|&node| &graph.nodes[node].inputs) {
            let from = graph.producer(input).map_or(index, |node| atom_of[node]);
            if from != index {
                read_later.set(input, true);
            }
        }
    }
    let mut known: HashMap<Vec<Token>, usize> = HashMap::new();
    let encode = |atom: &Vec<NodeId>| encode(graph, (&own, &structure), &read_later, atom);
    atoms
        .iter()
        .map(|atom| {
            let next = known.len();
            *known.entry(encode(atom)).or_insert(next)
        })
        .collect()
}

fn encode(
    graph: &Graph,
    (own, structure): (&BTreeSet<ValueId>, &SideTable<ValueId, Option<u32>>),
    read_later: &SideTable<ValueId, bool>,
    atom: &[NodeId],
) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut local: HashMap<ValueId, (u32, u32)> = HashMap::new();
    let mut outside: HashMap<ValueId, u32> = HashMap::new();
    let mut parameters: HashMap<ValueId, u32> = HashMap::new();
    let base = atom.iter().filter_map(|&n| graph.nodes[n].op.site()).min().unwrap_or(0);
    for (index, &id) in atom.iter().enumerate() {
        let node = &graph.nodes[id];
        let op = node.op.site().map_or_else(|| node.op.clone(), |site| node.op.with_site(site - base));
        tokens.push(Token::Op(op));
        for &input in &node.inputs {
            tokens.push(if let Some(&(node, result)) = local.get(&input) {
                Token::Local(node, result)
            } else if own.contains(&input) {
                let next = parameters.len() as u32;
                Token::Parameter(*parameters.entry(input).or_insert(next), graph.ty(input).clone())
            } else if let Some(number) = structure[input] {
                Token::Free(number)
            } else {
                let next = outside.len() as u32;
                Token::Outside(*outside.entry(input).or_insert(next), graph.ty(input).clone())
            });
        }
        for (result, &output) in node.outputs.iter().enumerate() {
            local.insert(output, (index as u32, result as u32));
            if read_later[output] {
                tokens.push(Token::LiveOut(index as u32, result as u32));
            }
        }
    }
    tokens
}

/// Numbers free values so that two have one number if and only if the same computation makes them.
fn free_structure(
    graph: &Graph,
    free: &SideTable<NodeId, bool>,
    own: &BTreeSet<ValueId>,
) -> SideTable<ValueId, Option<u32>> {
    let mut numbers = SideTable::new(None);
    let mut next = 0;
    for input in graph.inputs.iter().filter(|input| !own.contains(&input.value)) {
        numbers.set(input.value, Some(next));
        next += 1;
    }
    let mut known: HashMap<(&Op, Vec<Option<u32>>), u32> = HashMap::new();
    for (_, node) in graph.nodes.iter().filter(|&(id, _)| free[id]) {
        let operands = node.inputs.iter().map(|&v| numbers[v]).collect();
        let first = *known.entry((&node.op, operands)).or_insert(next);
        if first == next {
            next += node.outputs.len() as u32;
        }
        for (i, &output) in node.outputs.iter().enumerate() {
            numbers.set(output, Some(first + i as u32));
        }
    }
    numbers
}
