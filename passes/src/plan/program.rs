//! Orders the instructions of a rank: the pipeline schedule, and the events that keep its streams in step.

use super::clock::Clocks;
use super::fold::Run;
use super::segments::Key;
use super::stage::{Draft, RankDraft};
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
    let mut ordered = Ordered { drafts, per_micro_batch, parts };
    ordered.add_waits(draft);
    ordered
}

/// A slot of a buffer.
pub(crate) type Place<'k> = (&'k Key, u64);

impl Ordered<'_> {
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
    pub(crate) fn accesses<'k>(
        &'k self,
        rank: &RankDraft,
        instance: Instance,
    ) -> impl Iterator<Item = (Place<'k>, Access)> {
        let of = |key: &Key| rank.buffers[key].slots.max(1);
        let places: Vec<_> = self.drafts[instance.draft]
            .args
            .iter()
            .map(|(key, access)| ((key, instance.micro_batch % of(key)), *access))
            .collect();
        places.into_iter()
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
                    micro_batch < 0 || found.numbers.get(&(draft, micro_batch as u64)).is_some_and(|&dep| dep < n)
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
        let mut slots: BTreeMap<Place<'_>, SlotState> = BTreeMap::new();
        let mut last_of_lane: BTreeMap<usize, usize> = BTreeMap::new();
        let mut all = Vec::with_capacity(instances.len());
        let epilogue = self.drafts.len() - rank.epilogue.len();
        let mut joined = false;
        for (n, &instance) in instances.iter().enumerate() {
            let mut deps = BTreeSet::new();
            for (place, access) in self.accesses(rank, instance) {
                let state = slots.entry(place).or_default();
                deps.extend(state.writer);
                if access == Access::Read {
                    state.readers.push(n);
                } else {
                    deps.extend(state.readers.drain(..));
                    state.writer = Some(n);
                }
            }
            deps.extend(self.early(rank, instance, &slots));
            deps.remove(&n);
            let lane = clocks.lane(instance.draft);
            // The first update joins all streams: what they hold may be overwritten from there on.
            if instance.draft >= epilogue && lane == clocks.compute && !joined {
                joined = true;
                deps.extend(last_of_lane.values());
            }
            all.push(clocks.step(n, lane, &deps).waits);
            last_of_lane.insert(lane, n);
        }
        all
    }

    /// A value is not written earlier than asked for, although it has a slot of its own.
    fn early(&self, rank: &RankDraft, instance: Instance, slots: &BTreeMap<Place<'_>, SlotState>) -> Vec<usize> {
        let mut deps = Vec::new();
        let written = self.drafts[instance.draft].args.iter().filter(|(_, access)| *access == Access::Write);
        for (key, _) in written.filter(|_| self.per_micro_batch[instance.draft]) {
            let buffer = &rank.buffers[key];
            let before = instance.micro_batch.checked_sub(buffer.ahead);
            if let Some(state) = before.and_then(|before| slots.get(&(key, before % buffer.slots.max(1)))) {
                deps.extend(state.readers.iter().copied().chain(state.writer));
            }
        }
        deps
    }
}

/// What every execution waits for.
struct Needed<'n> {
    instances: &'n [Instance],
    waits: &'n [Vec<usize>],
    numbers: HashMap<(usize, u64), usize>,
}

/// The number in program order of each instruction's execution for a micro-batch.
pub(crate) fn numbers(instances: &[Instance]) -> HashMap<(usize, u64), usize> {
    instances.iter().enumerate().map(|(n, i)| ((i.draft, i.micro_batch), n)).collect()
}

#[derive(Default)]
struct SlotState {
    writer: Option<usize>,
    readers: Vec<usize>,
}
