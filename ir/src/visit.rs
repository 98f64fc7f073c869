//! petgraph's visit traits over a graph, so that its algorithms run on it without a copy.

use crate::graph::{Graph, Node, NodeId, ValueId};
use crate::id::{Id, SideTable};
use petgraph::visit::{
    Data, EdgeCount, EdgeRef, GraphBase, GraphProp, IntoEdgeReferences, IntoEdges, IntoEdgesDirected, IntoNeighbors,
    IntoNeighborsDirected, IntoNodeIdentifiers, IntoNodeReferences, NodeCompactIndexable, NodeCount, NodeIndexable,
    VisitMap, Visitable,
};
use petgraph::{Directed, Direction};

/// A graph with the users of its values: nodes, and edges from producers to the operands of their users. A node that
/// reads a value twice has two edges from its producer.
#[derive(Debug)]
pub struct Dataflow<'a> {
    graph: &'a Graph,
    users: SideTable<ValueId, Vec<(NodeId, usize)>>,
}

impl<'a> Dataflow<'a> {
    /// A view of the graph.
    pub fn new(graph: &'a Graph) -> Self {
        let mut users = SideTable::new(Vec::new());
        for (id, node) in graph.nodes.iter() {
            for (operand, &value) in node.inputs.iter().enumerate() {
                users[value].push((id, operand));
            }
        }
        Self { graph, users }
    }

    /// The graph.
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// The (node, operand) pairs that read the value, in order.
    pub fn users(&self, value: ValueId) -> &[(NodeId, usize)] {
        &self.users[value]
    }

    fn outgoing(&self, node: NodeId) -> impl Iterator<Item = OperandEdge<'_>> {
        self.graph.nodes[node].outputs.iter().flat_map(move |value| {
            let edge = move |&(user, operand)| OperandEdge { source: node, target: user, operand, value };
            self.users[*value].iter().map(edge)
        })
    }

    fn incoming(&self, node: NodeId) -> impl Iterator<Item = OperandEdge<'_>> {
        self.graph.nodes[node].inputs.iter().enumerate().filter_map(move |(operand, value)| {
            self.graph.producer(*value).map(|source| OperandEdge { source, target: node, operand, value })
        })
    }
}

/// An edge: a node's operand that another node produces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperandEdge<'a> {
    source: NodeId,
    target: NodeId,
    operand: usize,
    value: &'a ValueId,
}

impl<'a> EdgeRef for OperandEdge<'a> {
    type NodeId = NodeId;
    type EdgeId = (NodeId, usize);
    type Weight = ValueId;

    fn source(&self) -> NodeId {
        self.source
    }
    fn target(&self) -> NodeId {
        self.target
    }
    fn weight(&self) -> &'a ValueId {
        self.value
    }
    fn id(&self) -> (NodeId, usize) {
        (self.target, self.operand)
    }
}

/// The nodes that a traversal has seen.
#[derive(Clone, Debug)]
pub struct Seen(SideTable<NodeId, bool>);

impl VisitMap<NodeId> for Seen {
    fn visit(&mut self, node: NodeId) -> bool {
        !std::mem::replace(&mut self.0[node], true)
    }
    fn is_visited(&self, node: &NodeId) -> bool {
        self.0[*node]
    }
    fn unvisit(&mut self, node: NodeId) -> bool {
        std::mem::replace(&mut self.0[node], false)
    }
}

impl GraphBase for Dataflow<'_> {
    type NodeId = NodeId;
    type EdgeId = (NodeId, usize);
}

impl Data for Dataflow<'_> {
    type NodeWeight = Node;
    type EdgeWeight = ValueId;
}

impl GraphProp for Dataflow<'_> {
    type EdgeType = Directed;
}

impl Visitable for Dataflow<'_> {
    type Map = Seen;
    fn visit_map(&self) -> Seen {
        Seen(SideTable::new(false))
    }
    fn reset_map(&self, map: &mut Seen) {
        *map = self.visit_map();
    }
}

impl NodeCount for Dataflow<'_> {
    fn node_count(&self) -> usize {
        self.graph.nodes.len()
    }
}

impl NodeIndexable for Dataflow<'_> {
    fn node_bound(&self) -> usize {
        self.graph.nodes.len()
    }
    fn to_index(&self, node: NodeId) -> usize {
        node.index()
    }
    fn from_index(&self, index: usize) -> NodeId {
        Id::from_index(index)
    }
}

impl NodeCompactIndexable for Dataflow<'_> {}

impl EdgeCount for Dataflow<'_> {
    fn edge_count(&self) -> usize {
        self.edge_references().count()
    }
}

/// An iterator that a view hands to petgraph.
type Iter<'a, T> = Box<dyn Iterator<Item = T> + 'a>;

impl<'a> IntoNodeIdentifiers for &'a Dataflow<'_> {
    type NodeIdentifiers = Iter<'a, NodeId>;
    fn node_identifiers(self) -> Self::NodeIdentifiers {
        Box::new(self.graph.nodes.ids())
    }
}

impl<'a> IntoNodeReferences for &'a Dataflow<'_> {
    type NodeRef = (NodeId, &'a Node);
    type NodeReferences = Iter<'a, (NodeId, &'a Node)>;
    fn node_references(self) -> Self::NodeReferences {
        Box::new(self.graph.nodes.iter())
    }
}

impl<'a> IntoNeighbors for &'a Dataflow<'_> {
    type Neighbors = Iter<'a, NodeId>;
    fn neighbors(self, node: NodeId) -> Self::Neighbors {
        self.neighbors_directed(node, Direction::Outgoing)
    }
}

impl<'a> IntoNeighborsDirected for &'a Dataflow<'_> {
    type NeighborsDirected = Iter<'a, NodeId>;
    fn neighbors_directed(self, node: NodeId, direction: Direction) -> Self::NeighborsDirected {
        match direction {
            Direction::Outgoing => Box::new(self.outgoing(node).map(|edge| edge.target)),
            Direction::Incoming => Box::new(self.incoming(node).map(|edge| edge.source)),
        }
    }
}

impl<'a> IntoEdgeReferences for &'a Dataflow<'_> {
    type EdgeRef = OperandEdge<'a>;
    type EdgeReferences = Iter<'a, OperandEdge<'a>>;
    fn edge_references(self) -> Self::EdgeReferences {
        Box::new(self.graph.nodes.ids().flat_map(|node| self.incoming(node)))
    }
}

impl<'a> IntoEdges for &'a Dataflow<'_> {
    type Edges = Iter<'a, OperandEdge<'a>>;
    fn edges(self, node: NodeId) -> Self::Edges {
        self.edges_directed(node, Direction::Outgoing)
    }
}

impl<'a> IntoEdgesDirected for &'a Dataflow<'_> {
    type EdgesDirected = Iter<'a, OperandEdge<'a>>;
    /// Edges keep the direction of the graph, as petgraph demands.
    fn edges_directed(self, node: NodeId, direction: Direction) -> Self::EdgesDirected {
        match direction {
            Direction::Outgoing => Box::new(self.outgoing(node)),
            Direction::Incoming => Box::new(self.incoming(node)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::InputRole;
    use crate::op::Elementwise;
    use crate::{DType, GraphBuilder, Type};
    use petgraph::algo::{connected_components, dominators, has_path_connecting, tarjan_scc, toposort};

    /// A diamond, drawn by hand: n0 feeds n1 and n2, n3 joins them and reads n1 twice over n4; n5 stands alone.
    fn diamond() -> Graph {
        let mut b = GraphBuilder::new("diamond");
        let x = b.input("x", InputRole::Data, Type::new(DType::F32, [4]));
        let y = b.input("y", InputRole::Data, Type::new(DType::F32, [4]));
        let one = |b: &mut GraphBuilder, op, inputs: &[ValueId]| b.one(op, inputs).unwrap();
        let top = one(&mut b, Elementwise::Exp, &[x]);
        let left = one(&mut b, Elementwise::Neg, &[top]);
        let right = one(&mut b, Elementwise::Tanh, &[top]);
        let join = one(&mut b, Elementwise::Add, &[left, right]);
        one(&mut b, Elementwise::Mul, &[join, join]);
        one(&mut b, Elementwise::Neg, &[y]);
        b.finish()
    }

    fn n(index: usize) -> NodeId {
        Id::from_index(index)
    }

    #[test]
    fn a_topological_order_puts_producers_first() {
        let graph = diamond();
        let flow = Dataflow::new(&graph);
        let order = toposort(&flow, None).unwrap();
        assert_eq!(order.len(), 6);
        let at = |node| order.iter().position(|&n| n == node).unwrap();
        for edge in flow.edge_references() {
            assert!(at(edge.source()) < at(edge.target()), "{edge:?}");
        }
    }

    #[test]
    fn no_node_is_in_a_cycle() {
        let graph = diamond();
        let components = tarjan_scc(&Dataflow::new(&graph));
        assert_eq!(components.len(), 6);
    }

    #[test]
    fn the_join_of_a_diamond_is_dominated_by_its_top() {
        let graph = diamond();
        let dominators = dominators::simple_fast(&Dataflow::new(&graph), n(0));
        assert_eq!(dominators.immediate_dominator(n(3)), Some(n(0)));
        assert_eq!(dominators.immediate_dominator(n(4)), Some(n(3)));
        assert_eq!(dominators.immediate_dominator(n(5)), None);
    }

    #[test]
    fn edges_and_components_are_counted() {
        let graph = diamond();
        let flow = Dataflow::new(&graph);
        assert_eq!(flow.edge_count(), 6);
        assert_eq!(connected_components(&flow), 2);
        assert!(has_path_connecting(&flow, n(0), n(4), None));
        assert!(!has_path_connecting(&flow, n(1), n(2), None));
        let both: Vec<_> = flow.edges_directed(n(4), Direction::Incoming).map(|edge| edge.id()).collect();
        assert_eq!(both, [(n(4), 0), (n(4), 1)]);
        assert_eq!(flow.users(graph.nodes[n(3)].outputs[0]), [(n(4), 0), (n(4), 1)]);
    }
}
