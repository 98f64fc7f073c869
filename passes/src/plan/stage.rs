//! The instructions of one pipeline stage for one micro-batch, before they are ordered and given places.

use super::crossing::{Crossing, StageUnits, Transfer};
use super::facts::{Facts, Source};
use super::partition::in_flight;
use super::segments::{Key, Pool, Sum, sum_name, sum_type};
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
    /// Values from one stage to another.
    Pair { from: usize, to: usize, backward: bool },
    /// Collectives among stages.
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

/// The instructions of a stage.
#[derive(Debug, Default)]
pub(crate) struct StageDraft {
    pub(crate) buffers: BTreeMap<Key, BufferDraft>,
    /// Once, before the first micro-batch.
    pub(crate) prologue: Vec<Draft>,
    /// For each micro-batch.
    pub(crate) forward: Vec<Draft>,
    /// For each micro-batch.
    pub(crate) backward: Vec<Draft>,
    /// Once, after the last micro-batch.
    pub(crate) epilogue: Vec<Draft>,
}

/// What is the same for all stages.
pub(crate) struct Context<'c, 'f> {
    pub(crate) facts: &'c Facts<'f>,
    pub(crate) stages: &'c [StageUnits],
    pub(crate) transfers: &'c [Transfer],
    pub(crate) micro_batches: u64,
}

impl Context<'_, '_> {
    /// How many micro-batches a stage holds at a time under 1F1B: `min(m, p - s)`.
    pub(crate) fn in_flight(&self, stage: usize) -> u64 {
        in_flight(self.micro_batches, self.stages.len(), stage)
    }

    /// In how many turns micro-batches take slots and frames: as many as are in flight, and two at least, so that what is
    /// received or sent for one can overlap the computation of the next.
    pub(crate) fn turns(&self, stage: usize) -> u64 {
        self.micro_batches.min(self.in_flight(stage).max(2))
    }
}

pub(crate) fn stage(context: &Context<'_, '_>, index: usize, pool: &mut Pool) -> StageDraft {
    let crossing = Crossing::new(context.facts, &context.stages[index]);
    let mut builder = Builder { context, index, crossing, pool, draft: StageDraft::default() };
    builder.forward();
    builder.backward();
    super::epilogue::epilogue(context, index, builder.pool, &mut builder.draft);
    builder.draft
}

struct Builder<'b, 'c, 'f> {
    context: &'b Context<'c, 'f>,
    index: usize,
    crossing: Crossing,
    pool: &'b mut Pool,
    draft: StageDraft,
}

impl Builder<'_, '_, '_> {
    fn forward(&mut self) {
        let facts = self.context.facts;
        let sent: BTreeSet<ValueId> = self.transfers(false, true).map(|t| t.value).collect();
        for transfer in self.transfers(false, false).copied().collect::<Vec<_>>() {
            let key = Key::Forward(transfer.value);
            self.declare(&key);
            self.draft.forward.push(transfer_draft(transfer, key, Act::Recv, Access::Write));
        }
        for unit in self.context.stages[self.index].units.clone() {
            let mut write = BTreeMap::new();
            for &value in facts.forward[unit].iter().flat_map(|&n| &facts.training.step.nodes[n].outputs) {
                let kept = self.crossing.kept.contains(&value);
                let stage = &self.context.stages[self.index].units;
                let passed_on = facts.forward_readers[value].iter().any(|other| stage.contains(other));
                if kept || passed_on || sent.contains(&value) {
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
            self.call(built, unit, true);
        }
        for transfer in self.transfers(false, true).copied().collect::<Vec<_>>() {
            let key = Key::Forward(transfer.value);
            self.draft.forward.push(transfer_draft(transfer, key, Act::Send, Access::Read));
        }
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

    fn backward(&mut self) {
        let facts = self.context.facts;
        let step = &facts.training.step;
        for transfer in self.transfers(true, false).copied().collect::<Vec<_>>() {
            let key = Key::Gradient(transfer.value);
            self.declare(&key);
            self.draft.backward.push(transfer_draft(transfer, key, Act::Recv, Access::Write));
        }
        let sent: BTreeSet<ValueId> = self.transfers(true, true).map(|t| t.value).collect();
        let units = self.context.stages[self.index].units.clone();
        for unit in units.clone().rev() {
            let recompute = std::mem::take(&mut self.crossing.recomputes[unit - units.start]);
            let restored = &recompute.restored;
            let key = |v: ValueId| {
                if restored.contains(&v) { Key::Recomputed(v) } else { outside_key(facts, v) }
            };
            let name = self.unit_name(unit);
            if !recompute.nodes.is_empty() {
                let write: BTreeMap<ValueId, Key> = restored.iter().map(|&v| (v, Key::Recomputed(v))).collect();
                for key in write.values() {
                    self.declare(key);
                }
                let name = format!("{name}.recompute");
                let built = self.pool.step(
                    facts,
                    (&name, Phase::Recompute),
                    &recompute.nodes,
                    &|v| outside_key(facts, v),
                    &write,
                    &[],
                );
                self.call(built, unit, false);
            }
            let mut write = BTreeMap::new();
            for &value in facts.backward[unit].iter().flat_map(|&n| &step.nodes[n].outputs) {
                let in_stage = facts.backward_readers[value].iter().any(|other| units.contains(other));
                if sent.contains(&value) || in_stage {
                    write.insert(value, Key::Gradient(value));
                    self.declare(&Key::Gradient(value));
                }
            }
            let sums: Vec<Sum> = facts.contributions[unit]
                .iter()
                .map(|c| Sum {
                    key: Key::Named(sum_name(facts, c.parameter, c.index)),
                    ty: sum_type(step.ty(facts.training.parameters[c.parameter].input)),
                    value: c.value,
                })
                .collect();
            if facts.backward[unit].is_empty() && sums.is_empty() {
                continue;
            }
            let name = format!("{name}.backward");
            let built = self.pool.step(facts, (&name, Phase::InputGrad), &facts.backward[unit], &key, &write, &sums);
            self.call(built, unit, false);
        }
        for transfer in self.transfers(true, true).copied().collect::<Vec<_>>() {
            let key = Key::Gradient(transfer.value);
            self.draft.backward.push(transfer_draft(transfer, key, Act::Send, Access::Read));
        }
    }

    fn unit_name(&self, unit: usize) -> String {
        let blocks = &self.context.facts.blocks;
        let Some(unit) = blocks.units.get(unit) else { return "model".to_owned() };
        unit.class.map_or_else(|| unit.name.clone(), |class| blocks.classes[class].name.replace(' ', "_"))
    }

    fn transfers(&self, backward: bool, out: bool) -> impl Iterator<Item = &Transfer> {
        let index = self.index;
        let mine = move |t: &&Transfer| t.backward == backward && index == if out { t.from } else { t.to };
        self.context.transfers.iter().filter(mine)
    }

    fn call(&mut self, built: super::segments::Built, unit: usize, forward: bool) {
        let formals = self.pool.segments[built.segment].formals.clone();
        for (key, formal) in built.args.iter().zip(&formals) {
            self.declare_named(key, &formal.ty, !forward);
        }
        let args = built.args.into_iter().zip(formals).map(|(key, formal)| (key, formal.access)).collect();
        let act = Act::Call { segment: built.segment, site: built.site, unit: Some(unit) };
        let draft = Draft { lane: Lane::Compute, act, args };
        if forward { self.draft.forward.push(draft) } else { self.draft.backward.push(draft) }
    }

    /// Declares the buffer of a computed value.
    fn declare(&mut self, key: &Key) {
        let m = self.context.micro_batches;
        let turns = self.context.turns(self.index);
        let (value, kind, slots) = match key {
            Key::Forward(value) if self.crossing.kept.contains(value) => {
                let made_here = self.context.stages[self.index].units.clone();
                let received =
                    !matches!(self.context.facts.source[*value], Some(Source::Forward(u)) if made_here.contains(&u));
                // One more where it is received, so that the next can arrive.
                let in_flight = self.context.in_flight(self.index);
                (*value, BufferKind::Saved, turns.max(m.min(in_flight + u64::from(received))))
            }
            Key::Forward(value) | Key::Gradient(value) => (*value, BufferKind::Boundary, turns),
            Key::Recomputed(value) => (*value, BufferKind::Saved, turns),
            Key::Named(_) => return,
        };
        let name = match key {
            Key::Forward(_) | Key::Gradient(_) | Key::Named(_) => value.to_string(),
            Key::Recomputed(_) => format!("{value}.recomputed"),
        };
        let ty = self.context.facts.training.step.ty(value).clone();
        self.draft.buffers.entry(key.clone()).or_insert(BufferDraft { name, ty, kind, slots });
    }

    /// Declares what a call reads or sums by name: held tensors, data, sums.
    fn declare_named(&mut self, key: &Key, ty: &Type, in_backward: bool) {
        let Key::Named(name) = key else { return };
        let m = self.context.micro_batches;
        let facts = self.context.facts;
        let input = facts.names.step_inputs.get(name.as_str()).map(|input| facts.source[input.value]);
        let is_data = input == Some(Some(Source::Data));
        let kind = match input {
            Some(Some(Source::Data)) => BufferKind::Data,
            Some(_) => BufferKind::Parameter,
            None if name == "loss_sum" || name == "loss_count" => BufferKind::Scalar,
            None => BufferKind::Gradient,
        };
        let wanted = if in_backward { self.context.in_flight(self.index) + 1 } else { 2 };
        let slots = if is_data { m.min(wanted) } else { 1 };
        let known = self.draft.buffers.contains_key(key);
        let entry = self.draft.buffers.entry(key.clone());
        let buffer = entry.or_insert(BufferDraft { name: name.clone(), ty: ty.clone(), kind, slots });
        buffer.slots = buffer.slots.max(slots);
        if is_data && !known {
            let load =
                Draft { lane: Lane::Load, act: Act::Load(name.clone()), args: vec![(key.clone(), Access::Write)] };
            let at = self.draft.forward.iter().take_while(|d| d.lane != Lane::Compute).count();
            self.draft.forward.insert(at, load);
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

fn transfer_draft(transfer: Transfer, key: Key, act: Act, access: Access) -> Draft {
    let port = PortKey::Pair { from: transfer.from, to: transfer.to, backward: transfer.backward };
    Draft { lane: Lane::Port(port), act, args: vec![(key, access)] }
}
