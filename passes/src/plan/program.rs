//! Orders the instructions of a stage: the pipeline schedule, and the events that keep its streams in step.

use super::clock::Clocks;
use super::segments::Key;
use super::stage::{Draft, StageDraft};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use trainc_ir::plan::{Access, Index};

/// A group of instructions of the program: those of a loop body, or a run of single ones.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) trips: u64,
    pub(crate) looped: bool,
    pub(crate) body: Vec<Placed>,
}

/// An instruction in its place.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    /// The instruction, by its number among the stage's.
    pub(crate) draft: usize,
    /// The micro-batch.
    pub(crate) micro_batch: Index,
    /// Instructions that must be done first, with their micro-batches.
    pub(crate) waits: Vec<(usize, Index)>,
}

/// The instructions of a stage in order, with waits.
#[derive(Debug)]
pub(crate) struct Ordered<'d> {
    /// Prologue, forward, backward, epilogue, in this order.
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

/// The parts of a program under 1F1B: `warm_up` forwards, pairs of forward and backward, the backwards left over.
pub(crate) fn one_f_one_b(draft: &StageDraft, micro_batches: u64, warm_up: u64) -> Ordered<'_> {
    let groups = [&draft.prologue, &draft.forward, &draft.backward, &draft.epilogue];
    let starts: Vec<usize> = groups.iter().scan(0, |sum, g| Some(std::mem::replace(sum, *sum + g.len()))).collect();
    let drafts: Vec<&Draft> = groups.iter().copied().flatten().collect();
    let forward = starts[1]..starts[2];
    let backward = starts[2]..starts[3];
    let per_micro_batch = (0..drafts.len()).map(|i| forward.contains(&i) || backward.contains(&i)).collect();
    let place = |range: std::ops::Range<usize>, micro_batch: Index| {
        range.map(move |draft| Placed { draft, micro_batch, waits: Vec::new() })
    };
    let once = |range| Part { trips: 1, looped: false, body: place(range, Index::at(0)).collect() };
    let looped = |trips, body| Part { trips, looped: true, body };
    let steady =
        place(forward.clone(), Index::counter(warm_up as i64)).chain(place(backward.clone(), Index::counter(0)));
    let steady_trips = micro_batches - warm_up;
    let parts = vec![
        once(0..starts[1]),
        looped(warm_up, place(forward, Index::counter(0)).collect()),
        looped(steady_trips, steady.collect()),
        looped(warm_up, place(backward, Index::counter(steady_trips as i64)).collect()),
        once(starts[3]..drafts.len()),
    ];
    let parts = parts.into_iter().filter(|p| p.trips > 0 && !p.body.is_empty()).collect();
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
        stage: &StageDraft,
        instance: Instance,
    ) -> impl Iterator<Item = (Place<'k>, Access)> {
        let of = |key: &Key| stage.buffers[key].slots.max(1);
        let places: Vec<_> = self.drafts[instance.draft]
            .args
            .iter()
            .map(|(key, access)| ((key, instance.micro_batch % of(key)), *access))
            .collect();
        places.into_iter()
    }

    fn add_waits(&mut self, stage: &StageDraft) {
        let instances = self.instances();
        let needed = self.needed(stage, &instances);
        let number = numbers(&instances);
        let mut parts = Vec::new();
        let mut first = 0;
        for part in &self.parts {
            let n_body = part.body.len();
            let end = first + n_body * part.trips as usize;
            let mut uniform = part.clone();
            let mut fits = true;
            for (at, placed) in uniform.body.iter_mut().enumerate() {
                let trips = (0..part.trips).map(|trip| (trip, first + trip as usize * n_body + at));
                let mut wanted: BTreeSet<(usize, Index)> = BTreeSet::new();
                for (trip, n) in trips.clone() {
                    wanted.extend(needed[n].iter().map(|&dep| {
                        let Instance { draft, micro_batch, .. } = instances[dep];
                        let looped = part.looped && self.per_micro_batch[draft];
                        let base = micro_batch as i64 - if looped { trip as i64 } else { 0 };
                        (draft, Index { base, stride: i64::from(looped) })
                    }));
                }
                // A wait that only some trips need must name something earlier, or nothing at all, in the others.
                for (trip, n) in trips {
                    fits &= wanted.iter().all(|&(draft, index)| {
                        let micro_batch = index.value(trip);
                        micro_batch < 0 || number.get(&(draft, micro_batch as u64)).is_some_and(|&dep| dep < n)
                    });
                }
                placed.waits = wanted.into_iter().collect();
            }
            if fits {
                parts.push(uniform);
            } else {
                parts.push(unrolled(part, &instances[first..end], &needed[first..end], &instances));
            }
            first = end;
        }
        self.parts = parts;
    }

    /// For each execution those of other streams that it must wait for, none that another wait implies.
    fn needed(&self, stage: &StageDraft, instances: &[Instance]) -> Vec<Vec<usize>> {
        let mut clocks = Clocks::new(self);
        let mut slots: BTreeMap<Place<'_>, SlotState> = BTreeMap::new();
        let mut last_of_lane: BTreeMap<usize, usize> = BTreeMap::new();
        let mut all = Vec::with_capacity(instances.len());
        let epilogue = self.drafts.len() - stage.epilogue.len();
        let mut joined = false;
        for (n, &instance) in instances.iter().enumerate() {
            let mut deps = BTreeSet::new();
            for (place, access) in self.accesses(stage, instance) {
                let state = slots.entry(place).or_default();
                deps.extend(state.writer);
                if access == Access::Read {
                    state.readers.push(n);
                } else {
                    deps.extend(state.readers.drain(..));
                    state.writer = Some(n);
                }
            }
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

fn unrolled(part: &Part, mine: &[Instance], needed: &[Vec<usize>], all: &[Instance]) -> Part {
    let placed = mine.iter().zip(needed).map(|(instance, deps)| Placed {
        draft: instance.draft,
        micro_batch: Index::at(instance.micro_batch as i64),
        waits: deps.iter().map(|&d| (all[d].draft, Index::at(all[d].micro_batch as i64))).collect(),
    });
    debug_assert!(part.looped || part.trips == 1);
    Part { trips: 1, looped: false, body: placed.collect() }
}
