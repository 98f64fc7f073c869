//! The instructions of one rank for one micro-batch, before they are ordered and given places.

use super::crossing::{Crossing, StageUnits, Transfer};
use super::facts::{Facts, Source};
use super::flow::Flow;
use super::fold::{Run, fold};
use super::profile::block_name;
use super::segments::{Built, Key, Pool, Sum, sum_name, sum_type};
use super::split::{Part, split};
use crate::schedule::{Schedule, WorkKind};
use std::collections::{BTreeMap, BTreeSet};
use trainc_ir::plan::{Access, BufferKind, SegmentId};
use trainc_ir::{Phase, Type, ValueId};

/// A buffer before it has a place.
#[derive(Clone, Debug)]
pub(crate) struct BufferDraft {
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) kind: BufferKind,
    pub(crate) slots: u64,
    /// What comes from elsewhere waits for the last use of what came so many micro-batches before.
    pub(crate) ahead: u64,
}

/// Where an instruction runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Lane {
    Compute,
    Load,
    /// The stream of a communicator, by the port's name.
    Port(PortKey),
}

/// Names a communicator among those of a plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PortKey {
    /// Values from one rank to another; of one pair of stages, where those of all pairs have no common order.
    Pair { from: usize, to: usize, backward: bool, stages: Option<(usize, usize)> },
    /// Collectives among ranks.
    Among(Vec<usize>),
}

/// What an instruction does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Call {
        segment: SegmentId,
        site: u64,
        /// The unit, for a call of a micro-batch.
        unit: Option<usize>,
    },
    Load(String),
    Send,
    Recv,
    AllReduce,
    Broadcast {
        root: u32,
    },
}

/// An instruction: its arguments are what it accesses, in order.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) lane: Lane,
    pub(crate) act: Act,
    pub(crate) args: Vec<(Key, Access)>,
}

/// What a stage does for one micro-batch in one go.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) kind: WorkKind,
    pub(crate) stage: usize,
    pub(crate) drafts: Vec<Draft>,
}

/// The instructions of a rank.
#[derive(Clone, Debug, Default)]
pub(crate) struct RankDraft {
    pub(crate) buffers: BTreeMap<Key, BufferDraft>,
    /// Once, before the first micro-batch.
    pub(crate) prologue: Vec<Draft>,
    /// For each micro-batch: stage by stage, forward before backward.
    pub(crate) tasks: Vec<Task>,
    /// Once, after the last micro-batch.
    pub(crate) epilogue: Vec<Draft>,
    /// In how many turns the calls of each unit take frames.
    pub(crate) turns: BTreeMap<usize, u64>,
    /// The order of the tasks.
    pub(crate) runs: Vec<Run>,
}

impl RankDraft {
    /// In how many turns the calls of a unit take frames; those that belong to no micro-batch always take one.
    pub(crate) fn turns_of(&self, unit: Option<usize>) -> u64 {
        unit.and_then(|unit| self.turns.get(&unit)).map_or(1, |&turns| turns.max(1))
    }

    /// All instructions: prologue, tasks, epilogue, in this order.
    pub(crate) fn drafts(&self) -> impl Iterator<Item = &Draft> {
        let tasks = self.tasks.iter().flat_map(|task| &task.drafts);
        self.prologue.iter().chain(tasks).chain(&self.epilogue)
    }
}

impl RankDraft {
    /// Gives all buffers of micro-batches the same number of slots, and all calls as many frames.
    pub(crate) fn take_turns(&mut self, turns: u64) {
        for buffer in self.buffers.values_mut() {
            buffer.slots = match buffer.kind {
                BufferKind::Data | BufferKind::Saved | BufferKind::Boundary => turns,
                BufferKind::Parameter | BufferKind::State | BufferKind::Gradient | BufferKind::Scalar => 1,
            };
        }
        self.turns.values_mut().for_each(|of_unit| *of_unit = turns);
    }
}

/// What is the same for all ranks.
pub(crate) struct Context<'c, 'f> {
    pub(crate) facts: &'c Facts<'f>,
    pub(crate) stages: &'c [StageUnits],
    pub(crate) transfers: &'c [Transfer],
    pub(crate) schedule: &'c Schedule,
    pub(crate) flow: &'c Flow,
}

impl Context<'_, '_> {
    /// The rank whose stages hold the unit.
    pub(crate) fn rank_of_unit(&self, unit: usize) -> Option<usize> {
        let stage = self.stages.iter().position(|stage| stage.units.contains(&unit))?;
        Some(self.schedule.rank_of[stage])
    }

    /// The units of a rank's stages, ascending.
    pub(crate) fn units_of(&self, rank: usize) -> impl Iterator<Item = usize> {
        self.schedule.stages_of(rank).flat_map(|stage| self.stages[stage].units.clone())
    }
}

/// The instructions of a rank. Buffers get their slots here, so that what is drafted afterwards is for the whole step.
pub(crate) fn draft(context: &Context<'_, '_>, rank: usize, pool: &mut Pool) -> RankDraft {
    let stages: Vec<usize> = context.schedule.stages_of(rank).collect();
    let crossing = Crossing::new(context.facts, stages.iter().map(|&stage| &context.stages[stage]));
    let units = context.units_of(rank).collect();
    let mut builder = Builder { context, units, crossing, pool, draft: RankDraft::default() };
    let works = &context.schedule.ranks[rank];
    for &stage in &stages {
        let turns = context.flow.turns(stage);
        builder.draft.turns.extend(context.stages[stage].units.clone().map(|unit| (unit, turns)));
        builder.forward(stage);
    }
    for &stage in &stages {
        let does = |kind| works.iter().any(|work| work.stage == stage && work.kind == kind);
        if does(WorkKind::Backward) {
            builder.backward(stage);
        }
        if does(WorkKind::InputGrad) {
            builder.split_backward(stage);
        }
    }
    let Builder { pool, mut draft, .. } = builder;
    draft.tasks.sort_by_key(|task| (task.stage, task.kind));
    draft.runs = fold(works);
    context.flow.assign_slots(&mut draft);
    super::epilogue::epilogue(context, rank, pool, &mut draft);
    draft
}

struct Builder<'b, 'c, 'f> {
    context: &'b Context<'c, 'f>,
    /// The units of the rank.
    units: BTreeSet<usize>,
    crossing: Crossing,
    pool: &'b mut Pool,
    draft: RankDraft,
}

/// Which of a stage's transfers: those of the forward or of the backward, that come in or go out.
#[derive(Clone, Copy)]
enum Way {
    In,
    Out,
}

impl Builder<'_, '_, '_> {
    fn begin(&mut self, kind: WorkKind, stage: usize) -> usize {
        self.draft.tasks.push(Task { kind, stage, drafts: Vec::new() });
        self.draft.tasks.len() - 1
    }

    fn forward(&mut self, stage: usize) {
        let facts = self.context.facts;
        let task = self.begin(WorkKind::Forward, stage);
        self.receive(task, false);
        let sent = self.sent(stage, false);
        for unit in self.context.stages[stage].units.clone() {
            let mut write = BTreeMap::new();
            for &value in facts.forward[unit].iter().flat_map(|&n| &facts.training.step.nodes[n].outputs) {
                let kept = self.crossing.kept.contains(&value);
                let passed_on = facts.forward_readers[value].iter().any(|other| self.units.contains(other));
                if let Some(buffer) = facts.updated.get(&value) {
                    write.insert(value, Key::Named(buffer.clone()));
                } else if kept || passed_on || sent.contains(&value) {
                    write.insert(value, Key::Forward(value));
                    self.declare(&Key::Forward(value));
                }
            }
            let sums = self.loss_sums(unit);
            let name = format!("{}.forward", self.unit_name(unit));
            let built = self.pool.step(
                facts,
                (&name, Phase::Forward),
                &facts.forward[unit],
                &|v| outside_key(facts, v),
                &write,
                &sums,
            );
            self.call(built, unit, task);
        }
        self.send(task, false);
    }

    fn loss_sums(&self, unit: usize) -> Vec<Sum> {
        let facts = self.context.facts;
        if unit != facts.loss_unit {
            return Vec::new();
        }
        let sum = |name: &str, value: ValueId| Sum {
            key: Key::Named(name.to_owned()),
            ty: sum_type(facts.training.step.ty(value)),
            value,
        };
        vec![sum("loss_sum", facts.loss[0]), sum("loss_count", facts.loss[1])]
    }

    fn backward(&mut self, stage: usize) {
        let task = self.begin(WorkKind::Backward, stage);
        self.receive(task, true);
        for unit in self.context.stages[stage].units.clone().rev() {
            self.recompute(unit, task);
            let whole = Part::whole(self.context.facts, unit);
            self.gradients(unit, &whole, ("backward", Phase::InputGrad), &BTreeSet::new(), task);
        }
        self.send(task, true);
    }

    /// The backward in two tasks. What the second reads of the first, and of the forward, is kept until then.
    fn split_backward(&mut self, stage: usize) {
        let facts = self.context.facts;
        let task = self.begin(WorkKind::InputGrad, stage);
        let later = self.begin(WorkKind::WeightGrad, stage);
        self.receive(task, true);
        for unit in self.context.stages[stage].units.clone().rev() {
            let [input, weight] = split(facts, unit);
            self.recompute(unit, if input.is_empty() { later } else { task });
            let kept = weight.reads_of(facts, unit);
            self.gradients(unit, &input, ("input_grad", Phase::InputGrad), &kept, task);
            self.gradients(unit, &weight, ("weight_grad", Phase::WeightGrad), &BTreeSet::new(), later);
        }
        self.send(task, true);
    }

    /// The recompute of a unit's forward, where it is recomputed.
    fn recompute(&mut self, unit: usize, task: usize) {
        let facts = self.context.facts;
        let Some(recompute) = self.crossing.recomputes.get(&unit).cloned() else { return };
        if recompute.nodes.is_empty() {
            return;
        }
        let write: BTreeMap<ValueId, Key> = recompute.restored.iter().map(|&v| (v, Key::Recomputed(v))).collect();
        for key in write.values() {
            self.declare(key);
        }
        let name = format!("{}.recompute", self.unit_name(unit));
        let built =
            self.pool.step(facts, (&name, Phase::Recompute), &recompute.nodes, &|v| outside_key(facts, v), &write, &[]);
        self.call(built, unit, task);
    }

    /// The call that computes a part of a unit's gradients; `kept` are results that stay for a later part.
    fn gradients(
        &mut self,
        unit: usize,
        part: &Part,
        (what, phase): (&str, Phase),
        kept: &BTreeSet<ValueId>,
        task: usize,
    ) {
        if part.is_empty() {
            return;
        }
        let facts = self.context.facts;
        let step = &facts.training.step;
        let sent = self.sent(self.draft.tasks[task].stage, true);
        let mut write = BTreeMap::new();
        for &value in part.nodes.iter().flat_map(|&n| &step.nodes[n].outputs) {
            let passed_on = facts.backward_readers[value].iter().any(|other| self.units.contains(other));
            if sent.contains(&value) || passed_on || kept.contains(&value) {
                write.insert(value, Key::Gradient(value));
                self.declare(&Key::Gradient(value));
            }
        }
        let sums = part.contributions.iter().map(|c| Sum {
            key: Key::Named(sum_name(facts, c.parameter, c.index)),
            ty: sum_type(step.ty(facts.training.parameters[c.parameter].input)),
            value: c.value,
        });
        let sums: Vec<Sum> = sums.collect();
        let restored = self.crossing.recomputes.get(&unit).map(|recompute| recompute.restored.clone());
        let restored = restored.unwrap_or_default();
        let key = |v: ValueId| if restored.contains(&v) { Key::Recomputed(v) } else { outside_key(facts, v) };
        let name = format!("{}.{what}", self.unit_name(unit));
        let built = self.pool.step(facts, (&name, phase), &part.nodes, &key, &write, &sums);
        self.call(built, unit, task);
    }

    fn unit_name(&self, unit: usize) -> String {
        let blocks = &self.context.facts.blocks;
        let Some(unit) = blocks.units.get(unit) else { return "model".to_owned() };
        unit.class.map_or_else(|| unit.name.clone(), |class| block_name(&blocks.classes[class].name))
    }

    fn transfers(&self, stage: usize, backward: bool, way: Way) -> Vec<Transfer> {
        let end = |t: &Transfer| match way {
            Way::In => t.to,
            Way::Out => t.from,
        };
        let mine = |t: &&Transfer| t.backward == backward && end(t) == stage;
        self.context.transfers.iter().filter(mine).copied().collect()
    }

    fn sent(&self, stage: usize, backward: bool) -> BTreeSet<ValueId> {
        self.transfers(stage, backward, Way::Out).into_iter().map(|t| t.value).collect()
    }

    fn receive(&mut self, task: usize, backward: bool) {
        for transfer in self.transfers(self.draft.tasks[task].stage, backward, Way::In) {
            let key = value_key(transfer);
            self.declare(&key);
            let lane = Lane::Port(self.context.flow.port(transfer));
            let args = vec![(key, Access::Write)];
            self.draft.tasks[task].drafts.push(Draft { lane, act: Act::Recv, args });
        }
    }

    fn send(&mut self, task: usize, backward: bool) {
        for transfer in self.transfers(self.draft.tasks[task].stage, backward, Way::Out) {
            let lane = Lane::Port(self.context.flow.port(transfer));
            let args = vec![(value_key(transfer), Access::Read)];
            self.draft.tasks[task].drafts.push(Draft { lane, act: Act::Send, args });
        }
    }

    fn call(&mut self, built: Built, unit: usize, task: usize) {
        let formals = self.pool.segments[built.segment].formals.clone();
        for (key, formal) in built.args.iter().zip(&formals) {
            self.declare_named(key, &formal.ty, task);
        }
        let args = built.args.into_iter().zip(formals).map(|(key, formal)| (key, formal.access)).collect();
        let act = Act::Call { segment: built.segment, site: built.site, unit: Some(unit) };
        self.draft.tasks[task].drafts.push(Draft { lane: Lane::Compute, act, args });
    }

    /// Declares the buffer of a computed value.
    fn declare(&mut self, key: &Key) {
        let (value, kind) = match key {
            Key::Forward(value) if self.crossing.kept.contains(value) => (*value, BufferKind::Saved),
            Key::Forward(value) | Key::Gradient(value) => (*value, BufferKind::Boundary),
            Key::Recomputed(value) => (*value, BufferKind::Saved),
            Key::Named(_) => return,
        };
        let name = match key {
            Key::Forward(_) | Key::Gradient(_) | Key::Named(_) => value.to_string(),
            Key::Recomputed(_) => format!("{value}.recomputed"),
        };
        let ty = self.context.facts.training.step.ty(value).clone();
        self.draft.buffers.entry(key.clone()).or_insert(BufferDraft { name, ty, kind, slots: 1, ahead: 1 });
    }

    /// Declares what a call reads or sums by name: held tensors, data, sums. Data is loaded by the forward of the first
    /// stage that reads it.
    fn declare_named(&mut self, key: &Key, ty: &Type, task: usize) {
        let Key::Named(name) = key else { return };
        if self.draft.buffers.contains_key(key) {
            return;
        }
        let facts = self.context.facts;
        let kind = match facts.names.step_inputs.get(name.as_str()).map(|input| facts.source[input.value]) {
            Some(Some(Source::Data)) => BufferKind::Data,
            Some(_) => BufferKind::Parameter,
            None if name == "loss_sum" || name == "loss_count" => BufferKind::Scalar,
            None => BufferKind::Gradient,
        };
        self.draft
            .buffers
            .insert(key.clone(), BufferDraft { name: name.clone(), ty: ty.clone(), kind, slots: 1, ahead: 1 });
        if kind == BufferKind::Data {
            let stage = self.draft.tasks[task].stage;
            let forward = |t: &&mut Task| t.stage == stage && t.kind == WorkKind::Forward;
            let forward = self.draft.tasks.iter_mut().find(forward).expect("forwards are drafted first");
            let at = forward.drafts.iter().take_while(|d| d.lane != Lane::Compute).count();
            let args = vec![(key.clone(), Access::Write)];
            forward.drafts.insert(at, Draft { lane: Lane::Load, act: Act::Load(name.clone()), args });
        }
    }
}

fn outside_key(facts: &Facts<'_>, value: ValueId) -> Key {
    match facts.source[value] {
        Some(Source::Backward(_)) => Key::Gradient(value),
        Some(Source::Forward(_) | Source::Free(_)) => Key::Forward(value),
        Some(Source::Held | Source::Data) | None => {
            let input = facts.training.step.input_of(value).expect("held values and data are inputs");
            Key::Named(input.name.clone())
        }
    }
}

fn value_key(transfer: Transfer) -> Key {
    if transfer.backward { Key::Gradient(transfer.value) } else { Key::Forward(transfer.value) }
}
