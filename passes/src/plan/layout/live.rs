//! Lifetimes and places of a rank's buffers.
//!
//! The time axis is the order of kernels on the compute stream: kernel `k` takes `[2k+1, 2k+2)`, and `[2k, 2k+1)` is the
//! gap before it. An execution on another stream takes every gap from the end of the last compute call that is done
//! before it starts, to the start of the first compute call that waits for it (to the end of the step where none does).
//! Two buffers whose lifetimes do not meet on this axis are therefore never accessed at once: every access of one
//! happens before the first write of the other.

use super::pack::{Item, PackOptions, pack};
use crate::plan::clock::Clocks;
use crate::plan::program::{Instance, Ordered, numbers};
use crate::plan::segments::{Key, Pool};
use crate::plan::stage::{Act, BufferDraft, RankDraft};
use std::collections::BTreeMap;
use std::ops::Range;
use trainc_ir::plan::{Access, BufferKind, Operand, Segment, SegmentId};

/// Places of everything in a rank's arena.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Offsets of each buffer's slots.
    pub(crate) buffers: BTreeMap<Key, Vec<u64>>,
    /// Offsets of the locals of each segment, for each unit that calls it.
    pub(crate) frames: BTreeMap<Frame, Vec<u64>>,
    /// End of the highest byte in use.
    pub(crate) arena_bytes: u64,
    /// The largest sum of bytes in use at one time.
    pub(crate) lower_bound: u64,
    /// The largest sum of bytes of buffers (not locals, not persistent ones) in use at one time.
    pub(crate) activation_bytes: u64,
}

/// Effort of the packer per rank, about 20 ms.
pub(crate) const PACKING_STEPS: u64 = 20_000_000;

/// Whether a buffer keeps its bytes for the whole step.
fn is_persistent(buffer: &BufferDraft) -> bool {
    match buffer.kind {
        BufferKind::Parameter | BufferKind::State | BufferKind::Gradient | BufferKind::Scalar => true,
        BufferKind::Data | BufferKind::Saved | BufferKind::Boundary => false,
    }
}

/// Tensors start where wide loads are aligned; small ones are not spread further than their size.
fn align_of(bytes: u64) -> u64 {
    bytes.next_power_of_two().clamp(16, 256)
}

/// A segment as one unit calls it for every `n`-th micro-batch. What is live around these calls differs, so each has a
/// frame of its own.
pub(crate) type Frame = (SegmentId, Option<usize>, u64);

/// What shares the arena by time.
enum Tenant<'k> {
    Slot(&'k Key, u64),
    Local(Frame, usize),
}

/// Lays out the arena of a rank with so much effort.
pub(crate) fn layout(rank: &RankDraft, ordered: &Ordered<'_>, pool: &Pool, steps: u64) -> Layout {
    let mut layout = Layout::default();
    let mut persistent: Vec<(&Key, &BufferDraft)> = rank.buffers.iter().filter(|(_, b)| is_persistent(b)).collect();
    persistent.sort_by_key(|(_, b)| std::cmp::Reverse(align_of(b.ty.bytes())));
    let mut end = 0u64;
    let mut persistent_bytes = 0;
    for (key, buffer) in persistent {
        let bytes = buffer.ty.bytes();
        let offset = end.next_multiple_of(align_of(bytes));
        end = offset + bytes;
        persistent_bytes += bytes;
        layout.buffers.insert(key.clone(), vec![offset]);
    }
    layout.arena_bytes = end;
    let base = end.next_multiple_of(256);

    let lives = Lives::new(rank, ordered, pool);
    let mut tenants = Vec::new();
    let mut items = Vec::new();
    for ((key, buffer, slot), lives) in ordered.owners().zip(&lives.slots).filter(|(_, lives)| !lives.is_empty()) {
        let bytes = buffer.ty.bytes();
        tenants.push(Tenant::Slot(key, slot));
        items.push(Item::with_lives(bytes, align_of(bytes), lives.clone()));
    }
    let n_slots = items.len();
    for (&frame, locals) in &lives.locals {
        for (local, lives) in locals.iter().enumerate() {
            let bytes = pool.segments[frame.0].locals[local].bytes();
            tenants.push(Tenant::Local(frame, local));
            items.push(Item::with_lives(bytes, align_of(bytes), lives.clone()));
        }
    }
    layout.lower_bound = persistent_bytes + peak(&items);
    layout.activation_bytes = peak(&items[..n_slots]);
    // Half a percent above the bound is good enough; the packer need not prove that nothing is lower.
    let target = (layout.lower_bound + layout.lower_bound / 200).saturating_sub(base);
    let packing = pack(&items, &PackOptions { target, steps });
    for (key, buffer) in rank.buffers.iter().filter(|(_, b)| !is_persistent(b)) {
        layout.buffers.insert(key.clone(), vec![base; buffer.slots as usize]);
    }
    for ((tenant, item), offset) in tenants.iter().zip(&items).zip(&packing.offsets) {
        let offset = base + offset;
        layout.arena_bytes = layout.arena_bytes.max(offset + item.bytes);
        match tenant {
            Tenant::Slot(key, slot) => {
                layout.buffers.get_mut(*key).expect("declared above")[*slot as usize] = offset;
            }
            Tenant::Local(frame, local) => {
                let n_locals = pool.segments[frame.0].locals.len();
                layout.frames.entry(*frame).or_insert_with(|| vec![base; n_locals])[*local] = offset;
            }
        }
    }
    layout
}

/// The largest sum of bytes in use at one time.
fn peak(items: &[Item]) -> u64 {
    let lives = || items.iter().flat_map(|item| &item.lives);
    let end = lives().map(|live| live.start.max(live.end)).max().unwrap_or(0);
    let mut changes = vec![0i128; end as usize + 1];
    for item in items {
        for live in &item.lives {
            changes[live.start as usize] += i128::from(item.bytes);
            changes[live.end as usize] -= i128::from(item.bytes);
        }
    }
    let sums = changes.iter().scan(0i128, |sum, change| {
        *sum += change;
        Some(*sum)
    });
    sums.max().unwrap_or(0).max(0) as u64
}

/// The largest sum of bytes of a segment's locals in use at one time.
pub(crate) fn locals_peak(segment: &Segment) -> u64 {
    let uses = Uses::new(segment);
    let items = segment.locals.iter().zip(&uses.locals);
    let items: Vec<Item> = items.map(|(ty, range)| Item::new(ty.bytes(), 1, kernels(0, range))).collect();
    peak(&items)
}

/// Lifetimes on the time axis.
struct Lives {
    /// Of each slot of all buffers.
    slots: Vec<Vec<Range<u32>>>,
    locals: BTreeMap<Frame, Vec<Vec<Range<u32>>>>,
}

/// First and last kernel that uses each formal and local of a segment.
struct Uses {
    formals: Vec<Range<u32>>,
    locals: Vec<Range<u32>>,
}

impl Uses {
    fn new(segment: &Segment) -> Self {
        let none = Range { start: u32::MAX, end: 0 };
        let mut uses =
            Self { formals: vec![none.clone(); segment.formals.len()], locals: vec![none; segment.locals.len()] };
        for (at, call) in segment.body.iter().enumerate() {
            for operand in call.inputs.iter().chain(&call.outputs) {
                let range = match operand {
                    Operand::Formal(i) => &mut uses.formals[*i as usize],
                    Operand::Local(i) => &mut uses.locals[*i as usize],
                };
                range.start = range.start.min(at as u32);
                range.end = range.end.max(at as u32 + 1);
            }
        }
        uses
    }
}

/// The time of kernels `[range)` of a call that starts at kernel `start`.
fn kernels(start: u32, range: &Range<u32>) -> Range<u32> {
    2 * (start + range.start) + 1..2 * (start + range.end)
}

impl Lives {
    fn new(rank: &RankDraft, ordered: &Ordered<'_>, pool: &Pool) -> Self {
        let instances = ordered.instances();
        let mut uses: BTreeMap<SegmentId, Uses> = BTreeMap::new();
        let mut starts = Vec::with_capacity(instances.len());
        let mut now = 0u32;
        for instance in &instances {
            starts.push(now);
            if let Act::Call { segment, site: _, unit: _ } = ordered.drafts[instance.draft].act {
                let segment_data = &pool.segments[segment];
                uses.entry(segment).or_insert_with(|| Uses::new(segment_data));
                now += segment_data.body.len() as u32;
            }
        }
        let gaps = gaps(ordered, &instances, &starts, now);
        let mut lives = Self { slots: vec![Vec::new(); ordered.n_slots()], locals: BTreeMap::new() };
        let mut current: Vec<Option<Range<u32>>> = vec![None; ordered.n_slots()];
        for (n, instance) in instances.iter().enumerate() {
            let draft = ordered.drafts[instance.draft];
            let frame = match draft.act {
                Act::Call { segment, site: _, unit } => {
                    Some((segment, unit, instance.micro_batch % rank.turns_of(unit)))
                }
                Act::Load(_) | Act::Send | Act::Recv | Act::AllReduce | Act::Broadcast { root: _ } => None,
            };
            for (arg, (place, access)) in ordered.accesses(*instance).enumerate() {
                if is_persistent(ordered.buffers[place.buffer].1) {
                    continue;
                }
                let time = match frame {
                    Some((segment, _, _)) => kernels(starts[n], &uses[&segment].formals[arg]),
                    None => gaps[n].clone(),
                };
                if access == Access::Write {
                    lives.slots[place.slot].extend(current[place.slot].replace(time));
                } else {
                    let live = current[place.slot].get_or_insert_with(|| time.clone());
                    live.start = live.start.min(time.start);
                    live.end = live.end.max(time.end);
                }
            }
            if let Some(frame) = frame {
                let uses = &uses[&frame.0];
                let locals = lives.locals.entry(frame).or_insert_with(|| vec![Vec::new(); uses.locals.len()]);
                for (lives, range) in locals.iter_mut().zip(&uses.locals) {
                    lives.push(kernels(starts[n], range));
                }
            }
        }
        for (slot, live) in current.into_iter().enumerate() {
            lives.slots[slot].extend(live);
        }
        lives
    }
}

/// For each execution that is not on the compute stream, the gaps that it takes.
fn gaps(ordered: &Ordered<'_>, instances: &[Instance], starts: &[u32], end: u32) -> Vec<Range<u32>> {
    let number = numbers(instances);
    let mut clocks = Clocks::new(ordered);
    let compute = clocks.compute;
    let mut gaps = vec![0..0; instances.len()];
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); clocks.n_lanes];
    // How many members of each lane a compute call has already been found to wait for.
    let mut covered = vec![0usize; clocks.n_lanes];
    let mut deps: Vec<usize> = Vec::new();
    for (n, instance) in instances.iter().enumerate() {
        let waits = ordered.parts[instance.part].body[instance.at].waits.iter().filter_map(|(draft, index)| {
            let micro_batch = u64::try_from(index.value(instance.trip)).ok()?;
            Some(number.get(*draft, micro_batch).expect("a wait names an execution or none"))
        });
        deps.clear();
        deps.extend(waits);
        deps.sort_unstable();
        deps.dedup();
        let lane = clocks.lane(instance.draft);
        clocks.step(n, lane, &deps);
        let done = &clocks.done;
        if lane == compute {
            for (other, members) in members.iter().enumerate().filter(|(other, _)| *other != lane) {
                while members.get(covered[other]).is_some_and(|&m| m < done[other]) {
                    gaps[members[covered[other]]].end = 2 * starts[n] + 1;
                    covered[other] += 1;
                }
            }
        } else {
            let computed = done.get(compute).copied().unwrap_or(0);
            // `starts[computed]` is where the call after the last one that is done would start.
            let start = if computed == 0 { 0 } else { starts.get(computed).copied().unwrap_or(end) };
            gaps[n] = 2 * start..2 * end + 1;
        }
        members[lane].push(n);
    }
    gaps
}
