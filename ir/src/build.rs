//! Builds graphs: every node is typed by its operator's rule as it is added.

use crate::graph::{Def, Graph, Input, InputRole, Node, NodeId, Origin, Output, OutputRole, Value, ValueId};
use crate::id::SideTable;
use crate::op::{Creation, Literal, Op};
use crate::ty::Type;

/// Builds a [`Graph`] node by node, in topological order.
#[derive(Clone, Debug, Default)]
pub struct GraphBuilder {
    graph: Graph,
    origin: Option<Origin>,
}

impl GraphBuilder {
    /// An empty graph of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { graph: Graph { name: name.into(), ..Graph::default() }, origin: None }
    }

    /// Goes on with a graph that exists.
    pub fn extend(graph: Graph) -> Self {
        Self { graph, origin: None }
    }

    /// The graph so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> &Type {
        self.graph.ty(value)
    }

    /// The origin that nodes added from now on get.
    pub fn set_origin(&mut self, origin: Option<Origin>) {
        self.origin = origin;
    }

    /// Adds an input.
    pub fn input(&mut self, name: impl Into<String>, role: InputRole, ty: Type) -> ValueId {
        let def = Def::Input(self.graph.inputs.len());
        let value = self.graph.values.push(Value { ty, def });
        self.graph.inputs.push(Input { name: name.into(), role, value });
        value
    }

    /// Adds an output.
    pub fn output(&mut self, name: impl Into<String>, role: OutputRole, value: ValueId) {
        self.graph.outputs.push(Output { name: name.into(), role, value });
    }

    /// Adds a node and returns its results.
    ///
    /// # Errors
    /// The operator's type rule is broken; the message says how.
    pub fn add(&mut self, op: impl Into<Op>, inputs: &[ValueId]) -> Result<Vec<ValueId>, String> {
        let op = op.into();
        let types = op.infer(&self.graph.types(inputs))?;
        let node = self.graph.nodes.next_id();
        let define = |(index, ty)| self.graph.values.push(Value { ty, def: Def::Result { node, index } });
        let outputs: Vec<_> = types.into_iter().enumerate().map(define).collect();
        self.graph.nodes.push(Node { op, inputs: inputs.to_vec(), outputs: outputs.clone() });
        if self.origin.is_some() {
            self.graph.origins.set(node, self.origin.clone());
        }
        Ok(outputs)
    }

    /// Adds a node with one result.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn one(&mut self, op: impl Into<Op>, inputs: &[ValueId]) -> Result<ValueId, String> {
        self.add(op, inputs).map(|outputs| outputs[0])
    }

    /// Adds a constant.
    pub fn constant(&mut self, value: Literal) -> ValueId {
        self.one(Creation::Constant { value }, &[]).expect("a constant has no operands to mistype")
    }

    /// The finished graph.
    pub fn finish(self) -> Graph {
        self.graph
    }
}

/// Copies a graph into a builder node by node; what is copied can be replaced on the way.
#[derive(Debug)]
pub struct Copier<'a> {
    source: &'a Graph,
    map: SideTable<ValueId, Option<ValueId>>,
}

impl<'a> Copier<'a> {
    /// Copies from `source`.
    pub fn new(source: &'a Graph) -> Self {
        Self { source, map: SideTable::new(None) }
    }

    /// Copies all inputs.
    pub fn inputs(&mut self, into: &mut GraphBuilder) {
        for input in &self.source.inputs {
            let value = into.input(input.name.clone(), input.role, self.source.ty(input.value).clone());
            self.map.set(input.value, Some(value));
        }
    }

    /// What the value became, or `None` while it has not been copied.
    pub fn get(&self, value: ValueId) -> Option<ValueId> {
        self.map[value]
    }

    /// What the values became.
    ///
    /// # Panics
    /// When one has not been copied yet.
    pub fn all(&self, values: &[ValueId]) -> Vec<ValueId> {
        values.iter().map(|&v| self.map[v].expect("operands are copied before their users")).collect()
    }

    /// Says what a value became.
    pub fn set(&mut self, value: ValueId, becomes: ValueId) {
        self.map.set(value, Some(becomes));
    }

    /// Copies one node, its origin included.
    pub fn node(&mut self, node: NodeId, into: &mut GraphBuilder) {
        let source = &self.source.nodes[node];
        into.set_origin(self.source.origins[node].clone());
        let inputs = self.all(&source.inputs);
        let outputs = into.add(source.op.clone(), &inputs).expect("a copy has the types of the original");
        into.set_origin(None);
        for (&from, &to) in source.outputs.iter().zip(&outputs) {
            self.set(from, to);
        }
    }

    /// Copies all outputs.
    pub fn outputs(&self, into: &mut GraphBuilder) {
        for output in &self.source.outputs {
            into.output(output.name.clone(), output.role, self.all(&[output.value])[0]);
        }
    }
}
