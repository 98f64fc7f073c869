//! Builds segments: straight-line runs of kernels over formal parameters, shared by everything that is structured alike.

use super::facts::{Facts, Source};
use std::collections::{BTreeMap, HashMap, HashSet};
use trainc_ir::id::Table;
use trainc_ir::op::{Creation, Literal, Op, Optimizer};
use trainc_ir::plan::{Access, Formal, Kernel, KernelCall, KernelId, Operand, Segment, SegmentId};
use trainc_ir::{DType, Graph, NodeId, ParameterId, Phase, Type, ValueId};

/// What a program passes for a formal parameter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    /// A forward value as its producer or the transfer left it.
    Forward(ValueId),
    /// A forward value as the recompute of its unit left it.
    Recomputed(ValueId),
    /// A gradient of an activation.
    Gradient(ValueId),
    /// A weight, table, optimizer state, gradient sum, scalar or datum, by the name of its graph input.
    Named(String),
}

/// A gradient sum or loss sum that a segment adds to.
#[derive(Clone, Debug)]
pub(crate) struct Sum {
    pub(crate) key: Key,
    pub(crate) ty: Type,
    /// What is added, as the step graph types it.
    pub(crate) value: ValueId,
}

/// A segment, what to pass for its formals, and the base of its random sites.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub(crate) segment: SegmentId,
    pub(crate) args: Vec<Key>,
    pub(crate) site: u64,
}

/// All kernels and segments of a plan, each once.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    pub(crate) kernels: Table<KernelId, Kernel>,
    pub(crate) segments: Table<SegmentId, Segment>,
    kernel_ids: HashMap<Kernel, KernelId>,
    segment_ids: HashMap<Segment, SegmentId>,
}

impl Pool {
    fn kernel(&mut self, kernel: Kernel) -> KernelId {
        if let Some(&id) = self.kernel_ids.get(&kernel) {
            return id;
        }
        let id = self.kernels.push(kernel.clone());
        self.kernel_ids.insert(kernel, id);
        id
    }

    /// Segments are equal when all but their names is; the first name stays.
    fn segment(&mut self, mut segment: Segment) -> SegmentId {
        let name = std::mem::take(&mut segment.name);
        if let Some(&id) = self.segment_ids.get(&segment) {
            return id;
        }
        let id = self.segments.push(Segment { name, ..segment.clone() });
        self.segment_ids.insert(segment, id);
        id
    }

    /// A segment that fills buffers with zeros.
    pub(crate) fn zeros(&mut self, name: &str, sums: &[(Key, Type)]) -> Built {
        let mut draft = Draft::default();
        for (key, ty) in sums {
            let target = draft.formal(key.clone(), ty, Access::Write);
            let op: Op = Creation::Constant { value: Literal::splat_i64(ty.clone(), 0) }.into();
            let kernel = self.kernel(Kernel { op, inputs: Vec::new(), outputs: vec![ty.clone()] });
            draft.body.push(KernelCall { kernel, inputs: Vec::new(), outputs: vec![target] });
        }
        draft.finish(self, name, Phase::Update, 0)
    }

    /// The segment that runs nodes of the step graph. `key` says what stands for a value from outside, `write` what
    /// results go to (all others are locals).
    pub(crate) fn step(
        &mut self,
        facts: &Facts<'_>,
        (name, phase): (&str, Phase),
        nodes: &[NodeId],
        key: &dyn Fn(ValueId) -> Key,
        write: &BTreeMap<ValueId, Key>,
        sums: &[Sum],
    ) -> Built {
        let step = &facts.training.step;
        let site = nodes.iter().filter_map(|&n| step.nodes[n].op.site()).min().unwrap_or(0);
        let mut run = StepRun { pool: self, facts, key, write, site, draft: Draft::default() };
        let own: HashSet<NodeId> = nodes.iter().copied().collect();
        let maker = |sum: &&Sum| step.producer(facts.root[sum.value]).filter(|node| own.contains(node));
        let (mine, others): (Vec<&Sum>, Vec<&Sum>) = sums.iter().partition(|sum| maker(sum).is_some());
        let mut sums_of: HashMap<NodeId, Vec<&Sum>> = HashMap::new();
        for sum in mine {
            sums_of.entry(maker(&sum).expect("it was chosen for having one")).or_default().push(sum);
        }
        for &node in nodes {
            run.node(node);
            for sum in sums_of.remove(&node).unwrap_or_default() {
                run.add(sum);
            }
        }
        for sum in others {
            run.add(sum);
        }
        let draft = run.draft;
        draft.finish(self, name, phase, site)
    }

    /// The segment that runs nodes of the update graph. `inputs` says what stands for inputs and for values that come
    /// from elsewhere, `write` what results replace.
    pub(crate) fn update(
        &mut self,
        graph: &Graph,
        name: &str,
        nodes: &[NodeId],
        inputs: &dyn Fn(ValueId) -> Key,
        write: &BTreeMap<ValueId, Key>,
    ) -> Built {
        let mut draft = Draft::default();
        for &id in nodes {
            let node = &graph.nodes[id];
            let operands = node.inputs.iter().map(|&v| match draft.local_of.get(&v) {
                Some(&operand) => operand,
                None => draft.formal(inputs(v), graph.ty(v), Access::Read),
            });
            let operands: Vec<Operand> = operands.collect();
            let results: Vec<Operand> = node
                .outputs
                .iter()
                .map(|&v| match write.get(&v) {
                    Some(key) => draft.formal(key.clone(), graph.ty(v), Access::Write),
                    None => draft.local(v, graph.ty(v)),
                })
                .collect();
            let kernel = self.kernel(kernel_of(graph, id, &node.op));
            draft.body.push(KernelCall { kernel, inputs: operands, outputs: results });
        }
        draft.finish(self, name, Phase::Update, 0)
    }
}

fn kernel_of(graph: &Graph, node: NodeId, op: &Op) -> Kernel {
    let node = &graph.nodes[node];
    let types = |values: &[ValueId]| values.iter().map(|&v| graph.ty(v).clone()).collect();
    Kernel { op: op.clone(), inputs: types(&node.inputs), outputs: types(&node.outputs) }
}

/// A segment under construction.
#[derive(Default)]
struct Draft {
    formals: Vec<Formal>,
    args: Vec<Key>,
    positions: HashMap<Key, u32>,
    locals: Vec<Type>,
    local_of: HashMap<ValueId, Operand>,
    body: Vec<KernelCall>,
}

impl Draft {
    /// The formal for `key`; a second use with another access makes it an update.
    fn formal(&mut self, key: Key, ty: &Type, access: Access) -> Operand {
        if let Some(&position) = self.positions.get(&key) {
            let formal = &mut self.formals[position as usize];
            // Reading what this segment wrote leaves it a write; writing what it read makes it an update.
            if formal.access == Access::Read && access != Access::Read {
                formal.access = Access::Update;
            }
            return Operand::Formal(position);
        }
        let position = self.formals.len() as u32;
        self.formals.push(Formal { ty: ty.clone(), access });
        self.args.push(key.clone());
        self.positions.insert(key, position);
        Operand::Formal(position)
    }

    fn local(&mut self, value: ValueId, ty: &Type) -> Operand {
        let operand = Operand::Local(self.locals.len() as u32);
        self.locals.push(ty.clone());
        self.local_of.insert(value, operand);
        operand
    }

    fn finish(self, pool: &mut Pool, name: &str, phase: Phase, site: u64) -> Built {
        let segment =
            Segment { name: name.to_owned(), phase, formals: self.formals, locals: self.locals, body: self.body };
        Built { segment: pool.segment(segment), args: self.args, site }
    }
}

struct StepRun<'r, 'f> {
    pool: &'r mut Pool,
    facts: &'r Facts<'f>,
    key: &'r dyn Fn(ValueId) -> Key,
    write: &'r BTreeMap<ValueId, Key>,
    site: u64,
    draft: Draft,
}

impl StepRun<'_, '_> {
    fn node(&mut self, id: NodeId) {
        let step = &self.facts.training.step;
        let node = &step.nodes[id];
        let inputs: Vec<Operand> = node.inputs.iter().map(|&v| self.read(v)).collect();
        let outputs: Vec<Operand> = node
            .outputs
            .iter()
            .map(|&v| match self.write.get(&v) {
                Some(key) => {
                    let operand = self.draft.formal(key.clone(), step.ty(v), Access::Write);
                    self.draft.local_of.insert(v, operand);
                    operand
                }
                None => self.draft.local(v, step.ty(v)),
            })
            .collect();
        let op = node.op.site().map_or_else(|| node.op.clone(), |site| node.op.with_site(site - self.site));
        let kernel = self.pool.kernel(kernel_of(step, id, &op));
        self.draft.body.push(KernelCall { kernel, inputs, outputs });
    }

    /// The operand that holds the value; free values are made on the way.
    fn read(&mut self, value: ValueId) -> Operand {
        let root = self.facts.root[value];
        if let Some(&operand) = self.draft.local_of.get(&root) {
            return operand;
        }
        if let Some(Source::Free(node)) = self.facts.source[root] {
            self.make(node);
            return *self.draft.local_of.get(&root).expect("the node just run defines it");
        }
        let ty = self.facts.training.step.ty(root);
        self.draft.formal((self.key)(root), ty, Access::Read)
    }

    /// Runs a free node after the free nodes that it needs, without recursion: chains of them can be long.
    fn make(&mut self, node: NodeId) {
        let mut pending = vec![(node, false)];
        while let Some((node, ready)) = pending.pop() {
            let step = &self.facts.training.step;
            if self.draft.local_of.contains_key(&step.nodes[node].outputs[0]) {
                continue;
            }
            if ready {
                self.node(node);
                continue;
            }
            pending.push((node, true));
            for &input in step.nodes[node].inputs.iter().rev() {
                if let Some(Source::Free(from)) = self.facts.source[self.facts.root[input]] {
                    pending.push((from, false));
                }
            }
        }
    }

    fn add(&mut self, sum: &Sum) {
        let added = self.read(sum.value);
        let total = self.draft.formal(sum.key.clone(), &sum.ty, Access::Update);
        let added_ty = self.facts.training.step.ty(sum.value).clone();
        let inputs = vec![sum.ty.clone(), added_ty];
        let op = Optimizer::Accumulate.into();
        let kernel = self.pool.kernel(Kernel { op, inputs, outputs: vec![sum.ty.clone()] });
        self.draft.body.push(KernelCall { kernel, inputs: vec![total, added], outputs: vec![total] });
    }
}

/// The name of a contribution's sum.
pub(crate) fn sum_name(facts: &Facts<'_>, parameter: ParameterId, index: usize) -> String {
    format!("grad.{}.{index}", facts.training.parameters[parameter].name)
}

/// The type in which a value is summed over micro-batches.
pub(crate) fn sum_type(ty: &Type) -> Type {
    match ty.dtype {
        DType::F16 | DType::BF16 | DType::F32 => ty.with_dtype(DType::F32),
        DType::F64 => ty.clone(),
        DType::Bool | DType::U8 | DType::I8 | DType::I32 | DType::I64 => ty.with_dtype(DType::I64),
    }
}
