//! The growing backward part of a step graph, and the place that a gradient rule works at.

use trainc_ir::op::{Elementwise, Literal, Movement, ReduceKind, Reduction};
use trainc_ir::{DType, Graph, GraphBuilder, Node, NodeId, Op, Phase, Type, ValueId, id::SideTable};

/// Why an operator has no gradient, for the diagnostic.
pub(super) type Blocked = String;
/// The gradients of a node's operands; `None` where an operand gets none (it is not wanted, or zero everywhere).
pub(super) type Gradients = Result<Vec<Option<ValueId>>, Blocked>;

/// One forward node whose gradient is being built.
#[derive(Debug)]
pub(super) struct Site {
    /// Its operator, operands and results.
    pub(super) node: Node,
    /// Gradient of each result that the loss depends on.
    pub(super) grads: Vec<Option<ValueId>>,
    /// Which operands need a gradient.
    pub(super) wanted: Vec<bool>,
    /// Which operands depend on parameters and constants only.
    pub(super) weight_side: Vec<bool>,
}

impl Site {
    /// The gradient of the first result.
    pub(super) fn grad(&self) -> Result<ValueId, Blocked> {
        self.grads[0].ok_or_else(|| "only its first result has a gradient".to_owned())
    }

    /// The gradient of the first result, where no other result has one.
    pub(super) fn only_grad(&self) -> Result<ValueId, Blocked> {
        match self.grads[1..].iter().any(Option::is_some) {
            true => Err("the loss depends on a result of it that has no gradient rule".to_owned()),
            false => self.grad(),
        }
    }

    /// No gradient for any operand.
    pub(super) fn nothing(&self) -> Gradients {
        Ok(vec![None; self.node.inputs.len()])
    }

    /// Refuses where an operand from `first` on needs a gradient.
    pub(super) fn no_grad_from(&self, first: usize, what: &str) -> Result<(), Blocked> {
        match self.wanted.iter().skip(first).any(|&wanted| wanted) {
            true => Err(format!("{what} gets no gradient, but a trained parameter needs one through it")),
            false => Ok(()),
        }
    }

    /// Builds the gradient of each wanted operand, and sums it over what the operand was broadcast along.
    pub(super) fn each(
        &self,
        b: &mut Backward,
        mut rule: impl FnMut(&mut Backward, usize) -> Result<Option<ValueId>, Blocked>,
    ) -> Gradients {
        let mut out = vec![None; self.node.inputs.len()];
        for (i, slot) in out.iter_mut().enumerate() {
            if self.wanted[i] {
                b.enter(self, &[i]);
                let shape = b.ty(self.node.inputs[i]).shape.clone();
                *slot = rule(b, i)?.map(|g| b.reduce_to(g, &shape));
            }
        }
        Ok(out)
    }
}

/// The step graph while its backward part grows.
#[derive(Debug)]
pub(super) struct Backward {
    builder: GraphBuilder,
    /// When each node runs.
    pub(super) phases: SideTable<NodeId, Phase>,
    /// The forward node that each backward node belongs to.
    pub(super) anchors: SideTable<NodeId, Option<NodeId>>,
    anchor: Option<NodeId>,
    phase: Phase,
}

impl Backward {
    /// Goes on from a forward graph.
    pub(super) fn new(forward: Graph) -> Self {
        Self {
            builder: GraphBuilder::extend(forward),
            phases: SideTable::new(Phase::Forward),
            anchors: SideTable::new(None),
            anchor: None,
            phase: Phase::InputGrad,
        }
    }

    /// The graph so far.
    pub(super) fn graph(&self) -> &Graph {
        self.builder.graph()
    }

    /// The builder, for outputs.
    pub(super) fn builder(&mut self) -> &mut GraphBuilder {
        &mut self.builder
    }

    /// The parts: the graph, phases, anchors.
    pub(super) fn finish(self) -> (Graph, SideTable<NodeId, Phase>, SideTable<NodeId, Option<NodeId>>) {
        (self.builder.finish(), self.phases, self.anchors)
    }

    /// Nodes added from now on belong to this forward node.
    pub(super) fn anchor(&mut self, node: NodeId) {
        self.anchor = Some(node);
        self.builder.set_origin(self.builder.graph().origins[node].clone());
    }

    /// Nodes added from now on compute gradients of values that depend on parameters only, or not.
    pub(super) fn weight_side(&mut self, weight_side: bool) {
        self.phase = if weight_side { Phase::WeightGrad } else { Phase::InputGrad };
    }

    /// Nodes added from now on serve these operands of the node, those of them that are wanted.
    pub(super) fn enter(&mut self, site: &Site, operands: &[usize]) {
        self.weight_side(operands.iter().filter(|&&i| site.wanted[i]).all(|&i| site.weight_side[i]));
    }

    /// The type of a value.
    pub(super) fn ty(&self, value: ValueId) -> &Type {
        self.builder.ty(value)
    }

    /// Adds a node.
    pub(super) fn nodes(&mut self, op: impl Into<Op>, inputs: &[ValueId]) -> Vec<ValueId> {
        let node = self.builder.graph().nodes.next_id();
        let outputs = self.builder.add(op, inputs).expect("gradient rules follow the type rules");
        self.phases.set(node, self.phase);
        self.anchors.set(node, self.anchor);
        outputs
    }

    /// Adds a node and returns its first result.
    pub(super) fn node(&mut self, op: impl Into<Op>, inputs: &[ValueId]) -> ValueId {
        self.nodes(op, inputs)[0]
    }

    /// A scalar constant of the element type of `like`.
    pub(super) fn scalar(&mut self, like: ValueId, value: f64) -> ValueId {
        let ty = Type::scalar(self.ty(like).dtype);
        self.literal(Literal::splat_f64(ty, value))
    }

    /// A constant.
    pub(super) fn literal(&mut self, value: Literal) -> ValueId {
        self.node(trainc_ir::op::Creation::Constant { value }, &[])
    }

    /// Zeros of a type.
    pub(super) fn zeros(&mut self, ty: Type) -> ValueId {
        self.literal(Literal::splat_f64(ty, 0.0))
    }

    /// `a + b`.
    pub(super) fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.node(Elementwise::Add, &[a, b])
    }

    /// `a * b`.
    pub(super) fn mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.node(Elementwise::Mul, &[a, b])
    }

    /// `a / b`.
    pub(super) fn div(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.node(Elementwise::Div, &[a, b])
    }

    /// `-a`.
    pub(super) fn neg(&mut self, a: ValueId) -> ValueId {
        self.node(Elementwise::Neg, &[a])
    }

    /// `a * value`.
    pub(super) fn scale(&mut self, a: ValueId, value: f64) -> ValueId {
        let factor = self.scalar(a, value);
        self.mul(a, factor)
    }

    /// `condition ? a : b`.
    pub(super) fn select(&mut self, condition: ValueId, a: ValueId, b: ValueId) -> ValueId {
        self.node(Elementwise::Select, &[condition, a, b])
    }

    /// The value in another element type.
    pub(super) fn cast(&mut self, a: ValueId, to: DType) -> ValueId {
        if self.ty(a).dtype == to { a } else { self.node(Elementwise::Cast { to }, &[a]) }
    }

    /// The value under another shape.
    pub(super) fn reshape(&mut self, a: ValueId, shape: &[u64]) -> ValueId {
        if self.ty(a).shape == shape { a } else { self.node(Movement::Reshape { shape: shape.to_vec() }, &[a]) }
    }

    /// The value repeated to a shape.
    pub(super) fn broadcast(&mut self, a: ValueId, shape: &[u64]) -> ValueId {
        if self.ty(a).shape == shape { a } else { self.node(Movement::Broadcast { shape: shape.to_vec() }, &[a]) }
    }

    /// A reduction.
    pub(super) fn reduce(&mut self, kind: ReduceKind, a: ValueId, axes: &[u64], keep: bool) -> ValueId {
        self.node(Reduction::Reduce { kind, axes: axes.to_vec(), keep }, &[a])
    }

    /// Sums a value over the axes along which `shape` was broadcast to its shape.
    pub(super) fn reduce_to(&mut self, a: ValueId, shape: &[u64]) -> ValueId {
        let from = self.ty(a).shape.clone();
        if from == shape {
            return a;
        }
        let lead = from.len() - shape.len();
        let repeated = |&i: &usize| i < lead || (shape[i - lead] == 1 && from[i] != 1);
        let axes: Vec<u64> = (0..from.len()).filter(repeated).map(|i| i as u64).collect();
        let sum = if axes.is_empty() { a } else { self.reduce(ReduceKind::Sum, a, &axes, false) };
        self.reshape(sum, shape)
    }
}
