//! Orders the instructions of a rank: the pipeline schedule, and the events that keep its streams in step.

use super::clock::Clocks;
use super::fold::Run;
use super::segments::Key;
use super::stage::{BufferDraft, Draft, RankDraft};
use crate::schedule::WorkKind;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use trainc_ir::plan::{Access, Index};

/// A group of instructions of the program: those of a loop body, or a run of single ones.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) trips: u64,
    /// Added to the micro-batches in each trip; 0 where there is one.
    pub(crate) stride: u64,
    pub(crate) body: Vec<Placed>,
}

/// An instruction in its place.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    /// The instruction, by its number among the rank's.
    pub(crate) draft: usize,
    /// The micro-batch.
    pub(crate) micro_batch: Index,
    /// Instructions that must be done first, with their micro-batches.
    pub(crate) waits: Vec<(usize, Index)>,
}

/// The instructions of a rank in order, with waits.
#[derive(Debug)]
pub(crate) struct Ordered<'d> {
    /// Prologue, tasks, epilogue, in this order.
    pub(crate) drafts: Vec<&'d Draft>,
    /// Whether an instruction belongs to a micro-batch.
    pub(crate) per_micro_batch: Vec<bool>,
    pub(crate) parts: Vec<Part>,
    /// The buffers of the rank by number.
    pub(crate) buffers: Vec<(&'d Key, &'d BufferDraft)>,
    /// The slots of each buffer, among those of all.
    slots: Vec<Range<usize>>,
    /// The buffers that an instruction accesses, in order.
    args: Vec<Vec<(usize, Access)>>,
}

/// One execution of an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instance {
    pub(crate) draft: usize,
    pub(crate) micro_batch: u64,
    /// The part that it belongs to, the position in its body, and the trip.
    pub(crate) part: usize,
    pub(crate) at: usize,
    pub(crate) trip: u64,
}

/// The program of a rank.
pub(crate) fn order(draft: &RankDraft) -> Ordered<'_> {
    let drafts: Vec<&Draft> = draft.drafts().collect();
    let first = draft.prologue.len();
    let end = drafts.len() - draft.epilogue.len();
    let mut tasks: HashMap<(WorkKind, usize), Range<usize>> = HashMap::new();
    let mut start = first;
    for task in &draft.tasks {
        tasks.insert((task.kind, task.stage), start..start + task.drafts.len());
        start += task.drafts.len();
    }
    let place = |range: Range<usize>, micro_batch: Index| {
        range.map(move |draft| Placed { draft, micro_batch, waits: Vec::new() })
    };
    let once = |range| Part { trips: 1, stride: 0, body: place(range, Index::at(0)).collect() };
    let part = |run: &Run| {
        let body = run.body.iter().flat_map(|work| {
            let micro_batch = Index { base: work.micro_batch as i64, stride: run.stride as i64 };
            place(tasks.get(&(work.kind, work.stage)).cloned().unwrap_or_default(), micro_batch)
        });
        Part { trips: run.trips, stride: run.stride, body: body.collect() }
    };
    let mut parts = vec![once(0..first)];
    parts.extend(draft.runs.iter().map(part));
    parts.push(once(end..drafts.len()));
    parts.retain(|part| !part.body.is_empty());
    let per_micro_batch = (0..drafts.len()).map(|i| (first..end).contains(&i)).collect();
    let buffers: Vec<(&Key, &BufferDraft)> = draft.buffers.iter().collect();
    let number: BTreeMap<&Key, usize> = buffers.iter().enumerate().map(|(i, &(key, _))| (key, i)).collect();
    let args = drafts.iter().map(|d| d.args.iter().map(|(key, access)| (number[key], *access)).collect()).collect();
    let mut n_slots = 0;
    let slots = buffers.iter().map(|(_, buffer)| {
        let first = n_slots;
        n_slots += buffer.slots.max(1) as usize;
        first..n_slots
    });
    let slots = slots.collect();
    let mut ordered = Ordered { drafts, per_micro_batch, parts, buffers, slots, args };
    ordered.add_waits(draft);
    ordered
}

/// A slot of a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) buffer: usize,
    /// Its number among the slots of all buffers, which are in the order of their keys.
    pub(crate) slot: usize,
}

impl<'d> Ordered<'d> {
    /// How many slots all buffers have.
    pub(crate) fn n_slots(&self) -> usize {
        self.slots.last().map_or(0, |last| last.end)
    }

    /// The slot that a buffer has for a micro-batch.
    fn place(&self, buffer: usize, micro_batch: u64) -> Place {
        let Range { start, end } = self.slots[buffer];
        Place { buffer, slot: start + (micro_batch % (end - start) as u64) as usize }
    }

    /// The buffer of every slot, with the slot's number in the buffer.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (&'d Key, &'d BufferDraft, u64)> {
        let all = self.buffers.iter().zip(&self.slots);
        all.flat_map(|(&(key, buffer), slots)| (0..slots.len() as u64).map(move |slot| (key, buffer, slot)))
    }

    /// Every execution in program order.
    pub(crate) fn instances(&self) -> Vec<Instance> {
        let mut all = Vec::new();
        for (part, data) in self.parts.iter().enumerate() {
            for trip in 0..data.trips {
                for (at, placed) in data.body.iter().enumerate() {
                    let micro_batch = placed.micro_batch.value(trip).max(0) as u64;
                    all.push(Instance { draft: placed.draft, micro_batch, part, at, trip });
                }
            }
        }
        all
    }

    /// The slots that an execution accesses.
    pub(crate) fn accesses(&self, instance: Instance) -> impl Iterator<Item = (Place, Access)> {
        let args = &self.args[instance.draft];
        args.iter().map(move |&(buffer, access)| (self.place(buffer, instance.micro_batch), access))
    }

    fn add_waits(&mut self, rank: &RankDraft) {
        let instances = self.instances();
        let needed = self.needed(rank, &instances);
        let found = Needed { instances: &instances, waits: &needed, numbers: numbers(&instances) };
        let mut parts = Vec::new();
        let mut first = 0;
        for part in &self.parts {
            self.waiting(part, first, &found, &mut parts);
            first += part.body.len() * part.trips as usize;
        }
        self.parts = parts;
    }

    /// Adds the part with waits that are the same in all trips. Where there are none such, it is divided.
    fn waiting(&self, part: &Part, first: usize, found: &Needed<'_>, parts: &mut Vec<Part>) {
        let n_body = part.body.len();
        let mut uniform = part.clone();
        let mut fits = true;
        for (at, placed) in uniform.body.iter_mut().enumerate() {
            let trips = (0..part.trips).map(|trip| (trip, first + trip as usize * n_body + at));
            let mut wanted: BTreeSet<(usize, Index)> = BTreeSet::new();
            for (trip, n) in trips.clone() {
                wanted.extend(found.waits[n].iter().map(|&dep| {
                    let Instance { draft, micro_batch, .. } = found.instances[dep];
                    let stride = if self.per_micro_batch[draft] { part.stride as i64 } else { 0 };
                    (draft, Index { base: micro_batch as i64 - stride * trip as i64, stride })
                }));
            }
            // A wait that only some trips need must name something earlier, or nothing at all, in the others.
            for (trip, n) in trips {
                fits &= wanted.iter().all(|&(draft, index)| {
                    let micro_batch = index.value(trip);
                    micro_batch < 0 || found.numbers.get(draft, micro_batch as u64).is_some_and(|dep| dep < n)
                });
            }
            placed.waits = wanted.into_iter().collect();
        }
        if fits || part.trips == 1 {
            parts.push(uniform);
            return;
        }
        let mut rest = first;
        let mut trip = 0;
        for trips in [part.trips / 2, part.trips - part.trips / 2] {
            let mut half = part.clone();
            half.trips = trips;
            half.body.iter_mut().for_each(|placed| placed.micro_batch.base = placed.micro_batch.value(trip));
            if trips == 1 {
                half.stride = 0;
                half.body.iter_mut().for_each(|placed| placed.micro_batch.stride = 0);
            }
            self.waiting(&half, rest, found, parts);
            rest += n_body * trips as usize;
            trip += trips;
        }
    }

    /// For each execution those of other streams that it must wait for, none that another wait implies.
    fn needed(&self, rank: &RankDraft, instances: &[Instance]) -> Vec<Vec<usize>> {
        let mut clocks = Clocks::new(self);
        let mut slots: Vec<SlotState> = Vec::new();
        slots.resize_with(self.n_slots(), SlotState::default);
        let mut last_of_lane: BTreeMap<usize, usize> = BTreeMap::new();
        let mut all = Vec::with_capacity(instances.len());
        let mut deps: Vec<usize> = Vec::new();
        let epilogue = self.drafts.len() - rank.epilogue.len();
        let mut joined = false;
        for (n, &instance) in instances.iter().enumerate() {
            deps.clear();
            for (place, access) in self.accesses(instance) {
                let state = &mut slots[place.slot];
                deps.extend(state.writer);
                if access == Access::Read {
                    state.readers.push(n);
                } else {
                    deps.append(&mut state.readers);
                    state.writer = Some(n);
                }
            }
            self.early(instance, &slots, &mut deps);
            deps.retain(|&dep| dep != n);
            let lane = clocks.lane(instance.draft);
            // The first update joins all streams: what they hold may be overwritten from there on.
            if instance.draft >= epilogue && lane == clocks.compute && !joined {
                joined = true;
                deps.extend(last_of_lane.values());
            }
            deps.sort_unstable();
            deps.dedup();
            all.push(clocks.step(n, lane, &deps));
            last_of_lane.insert(lane, n);
        }
        all
    }

    /// A value is not written earlier than asked for, although it has a slot of its own.
    fn early(&self, instance: Instance, slots: &[SlotState], deps: &mut Vec<usize>) {
        if !self.per_micro_batch[instance.draft] {
            return;
        }
        for &(number, _) in self.args[instance.draft].iter().filter(|(_, access)| *access == Access::Write) {
            let (_, buffer) = self.buffers[number];
            if let Some(before) = instance.micro_batch.checked_sub(buffer.ahead) {
                let state = &slots[self.place(number, before).slot];
                deps.extend(state.readers.iter().copied().chain(state.writer));
            }
        }
    }
}

/// What every execution waits for.
struct Needed<'n> {
    instances: &'n [Instance],
    waits: &'n [Vec<usize>],
    numbers: Numbers,
}

/// The number in program order of each instruction's execution for a micro-batch.
pub(crate) struct Numbers {
    /// Per instruction and micro-batch.
    of: Vec<Vec<Option<usize>>>,
}

impl Numbers {
    pub(crate) fn get(&self, draft: usize, micro_batch: u64) -> Option<usize> {
        self.of.get(draft)?.get(usize::try_from(micro_batch).ok()?).copied().flatten()
    }
}

/// The numbers of all executions.
pub(crate) fn numbers(instances: &[Instance]) -> Numbers {
    let mut of: Vec<Vec<Option<usize>>> = Vec::new();
    for (n, instance) in instances.iter().enumerate() {
        let (draft, micro_batch) = (instance.draft, instance.micro_batch as usize);
        of.resize_with(of.len().max(draft + 1), Vec::new);
        let len = of[draft].len().max(micro_batch + 1);
        of[draft].resize(len, None);
        of[draft][micro_batch] = Some(n);
    }
    Numbers { of }
}

#[derive(Default)]
struct SlotState {
    writer: Option<usize>,
    readers: Vec<usize>,
}
