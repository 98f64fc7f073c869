//! What a range of units costs as one stage: `cost(range, group, in flight) -> frontier of bytes and time`.

use super::{PartitionOptions, StageChoice};
use crate::plan::cost::{HardwareSpec, MissingType};
use crate::plan::profile::UnitProfile;
use crate::schedule::StageCost;
use std::collections::BTreeMap;
use std::ops::Range;
use trainc_ir::id::Id;
use trainc_ir::{Cluster, NodeGroupId};

/// How much is recomputed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecomputePolicy {
    /// Nothing.
    None,
    /// Every unit that can be.
    Full,
    /// On each stage as few units as it needs to fit, earliest first.
    Fit,
}

/// One way to run a range of units as a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagePoint {
    /// Estimated bytes of the arena.
    pub bytes: u64,
    /// Time of the forward of a micro-batch.
    pub forward_ps: u64,
    /// Time of the backward of a micro-batch, recomputation included.
    pub backward_ps: u64,
    /// How many units are recomputed: the earliest that can be.
    pub n_recomputed: usize,
}

/// Units that use the same parameters, of which a plan may hold several copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shared {
    /// Indices of the units, ascending.
    pub(super) units: Vec<usize>,
    /// Bytes of the gradient sums.
    pub(super) gradient: u64,
}

/// Running totals over the units, so that a range is a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Totals(Vec<u64>);

impl Totals {
    fn of(values: impl IntoIterator<Item = u64>) -> Self {
        let mut sums = vec![0u64];
        for value in values {
            sums.push(sums.last().copied().unwrap_or(0).saturating_add(value));
        }
        Self(sums)
    }

    fn over(&self, range: Range<usize>) -> u64 {
        self.0[range.end] - self.0[range.start]
    }
}

/// Times of the units on one group's GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Times {
    forward: Totals,
    backward: Totals,
    /// Over the units that can be recomputed only.
    recompute: Totals,
    /// A part of the backward.
    weight_grad: Totals,
    update: Totals,
}

/// The costs of all ranges of units on all groups of a cluster.
#[derive(Clone, Debug)]
pub struct StageCosts<'a> {
    units: &'a [UnitProfile],
    cluster: &'a Cluster,
    options: &'a PartitionOptions,
    times: Vec<Result<Times, MissingType>>,
    /// Indices of the units that can be recomputed.
    recomputable: Vec<usize>,
    /// How many of them come before each unit.
    recomputable_before: Vec<usize>,
    inputs: Totals,
    saved: Totals,
    /// Over the units that can be recomputed only.
    recomputable_saved: Totals,
    /// Bytes of the parameters of a range, by its ends.
    parameters: Vec<Vec<u64>>,
    pub(super) shared: Vec<Shared>,
}

impl<'a> StageCosts<'a> {
    /// The costs of the units on the cluster.
    pub fn new(units: &'a [UnitProfile], cluster: &'a Cluster, options: &'a PartitionOptions) -> Self {
        let recomputable: Vec<usize> = (0..units.len()).filter(|&u| !units[u].recompute.is_empty()).collect();
        let before = |unit: usize| recomputable.partition_point(|&u| u < unit);
        Self {
            units,
            cluster,
            options,
            times: cluster.groups.values().map(|g| times(units, &recomputable, &HardwareSpec::of(&g.gpu))).collect(),
            recomputable_before: (0..=units.len()).map(before).collect(),
            inputs: Totals::of(units.iter().map(|u| u.input_bytes.saturating_add(u.data_bytes))),
            saved: Totals::of(units.iter().map(|u| u.saved_bytes)),
            recomputable_saved: Totals::of(recomputable.iter().map(|&u| units[u].saved_bytes)),
            recomputable,
            parameters: parameters(units),
            shared: shared(units),
        }
    }

    /// Number of units.
    pub fn n_units(&self) -> usize {
        self.units.len()
    }

    /// The units.
    pub fn units(&self) -> &'a [UnitProfile] {
        self.units
    }

    /// The cluster.
    pub fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    /// The element type that the GPUs of the group lack.
    pub fn missing_type(&self, group: NodeGroupId) -> Option<&MissingType> {
        self.times[group.index()].as_ref().err()
    }

    /// Every allowed way to run the range on a GPU of the group with that many micro-batches in flight that no other
    /// way beats in both bytes and time, the fastest first. Empty where the GPUs lack an element type.
    pub fn frontier(&self, range: Range<usize>, group: NodeGroupId, in_flight: u64) -> Vec<StagePoint> {
        let mut frontier: Vec<StagePoint> = Vec::new();
        for (n_recomputed, bytes) in self.choices(range.clone(), in_flight) {
            if frontier.last().is_none_or(|last| bytes < last.bytes) {
                let Some((forward_ps, backward_ps)) = self.time(range.clone(), group, n_recomputed) else { break };
                frontier.push(StagePoint { bytes, forward_ps, backward_ps, n_recomputed });
            }
        }
        frontier
    }

    /// The fastest way that needs at most `budget` bytes, as the number of recomputed units and the bytes.
    pub(super) fn fastest(&self, range: Range<usize>, in_flight: u64, budget: u64) -> Option<(usize, u64)> {
        self.choices(range, in_flight).find(|(_, bytes)| *bytes <= budget)
    }

    /// The fewest bytes of any allowed way.
    pub(super) fn fewest_bytes(&self, range: Range<usize>, in_flight: u64) -> u64 {
        self.choices(range, in_flight).map(|(_, bytes)| bytes).min().unwrap_or(u64::MAX)
    }

    /// The allowed numbers of recomputed units, ascending, and the bytes of the arena with each:
    ///
    /// ```text
    /// parameters, gradient sums and optimizer state, once each
    /// + in flight * (inputs and data of every unit + saved activations of every unit that is not recomputed)
    /// + the largest of the units' locals: forward, backward, backward with its recomputed activations
    /// + boundary buffers: the activation and gradient sent, the gradient received
    /// ```
    fn choices(&self, range: Range<usize>, in_flight: u64) -> impl Iterator<Item = (usize, u64)> {
        let units = &self.units[range.clone()];
        let plain = units.iter().map(|u| u.transient_forward.max(u.transient_backward)).max().unwrap_or(0);
        let per_micro_batch = self.inputs.over(range.clone()).saturating_add(self.saved.over(range.clone()));
        let boundary = self.boundary_bytes(&range);
        let fixed = self.parameters[range.start][range.end - range.start - 1].saturating_add(boundary);
        let first = self.recomputable_before[range.start];
        let n = self.recomputable_before[range.end] - first;
        let (least, most) = match self.options.recompute {
            RecomputePolicy::None => (0, 0),
            RecomputePolicy::Full => (n, n),
            RecomputePolicy::Fit => (0, n),
        };
        let mut transient = plain;
        (0..=most).filter_map(move |n_recomputed| {
            if n_recomputed > 0 {
                let unit = &self.units[self.recomputable[first + n_recomputed - 1]];
                transient = transient.max(unit.transient_backward.saturating_add(unit.saved_bytes));
            }
            let kept = per_micro_batch - self.recomputable_saved.over(first..first + n_recomputed);
            let bytes = fixed.saturating_add(in_flight.saturating_mul(kept)).saturating_add(transient);
            (n_recomputed >= least).then_some((n_recomputed, bytes))
        })
    }

    pub(super) fn boundary_bytes(&self, range: &Range<usize>) -> u64 {
        let behind = if range.end < self.units.len() {
            let last = &self.units[range.end - 1];
            last.sent_forward.saturating_add(last.sent_backward)
        } else {
            0
        };
        let before = if range.start > 0 { self.units[range.start - 1].sent_backward } else { 0 };
        behind.saturating_add(before)
    }

    /// Times of the forward and of the backward with the recomputation of the first `n_recomputed` units that can be.
    pub(super) fn time(&self, range: Range<usize>, group: NodeGroupId, n_recomputed: usize) -> Option<(u64, u64)> {
        let times = self.times[group.index()].as_ref().ok()?;
        let first = self.recomputable_before[range.start];
        let recompute = times.recompute.over(first..first + n_recomputed);
        Some((times.forward.over(range.clone()), times.backward.over(range).saturating_add(recompute)))
    }

    pub(super) fn recompute_time(&self, range: Range<usize>, group: NodeGroupId, n_recomputed: usize) -> u64 {
        let first = self.recomputable_before[range.start];
        self.times[group.index()].as_ref().map_or(0, |times| times.recompute.over(first..first + n_recomputed))
    }

    pub(super) fn update_time(&self, range: Range<usize>, group: NodeGroupId) -> u64 {
        self.times[group.index()].as_ref().map_or(0, |times| times.update.over(range))
    }

    /// The times of a stage's work as the schedule divides it; its bytes are left at zero.
    pub(crate) fn work(&self, stage: &StageChoice) -> StageCost {
        let whole = stage.backward_ps - stage.recompute_ps;
        let times = self.times[stage.group.index()].as_ref();
        let weight = times.map_or(0, |times| times.weight_grad.over(stage.units.clone())).min(whole);
        StageCost {
            forward_ps: stage.forward_ps,
            backward_ps: whole,
            input_grad_ps: whole - weight,
            weight_grad_ps: weight,
            recompute_ps: stage.recompute_ps,
            ..StageCost::default()
        }
    }

    /// The least time that the units take on the group, whatever fits.
    pub(super) fn least_time(&self, range: Range<usize>, group: NodeGroupId) -> Option<u64> {
        let n = match self.options.recompute {
            RecomputePolicy::None | RecomputePolicy::Fit => 0,
            RecomputePolicy::Full => self.recomputable_before[range.end] - self.recomputable_before[range.start],
        };
        self.time(range, group, n).map(|(forward, backward)| forward.saturating_add(backward))
    }

    /// The units that are recomputed.
    pub(super) fn recomputed(&self, range: &Range<usize>, n_recomputed: usize) -> Vec<usize> {
        let first = self.recomputable_before[range.start];
        self.recomputable[first..first + n_recomputed].to_vec()
    }

    /// Bytes of a GPU that the stage needs on top of its arena: context, workspace, and communicators: for each
    /// neighbour one of two ranks in each direction, and one for each set of units that shares parameters across stages.
    pub(super) fn beyond_arena(&self, range: &Range<usize>, group: NodeGroupId, n_stages: usize) -> u64 {
        let neighbours = usize::from(range.start > 0) + usize::from(range.end < self.units.len());
        let mut communicators = vec![2; 2 * neighbours];
        for shared in &self.shared {
            let inside = shared.units.iter().filter(|u| range.contains(u)).count();
            if inside > 0 && inside < shared.units.len() {
                let holders = (shared.units.len() - inside + 1).min(n_stages);
                communicators.push(u32::try_from(holders).unwrap_or(u32::MAX));
            }
        }
        let group = &self.cluster.groups[group];
        group.reserve.beyond_arena(self.options.n_library_streams, &communicators)
    }
}

fn times(units: &[UnitProfile], recomputable: &[usize], spec: &HardwareSpec) -> Result<Times, MissingType> {
    let mut columns: [Vec<u64>; 5] = Default::default();
    for unit in units {
        let times = spec.unit(unit)?;
        let of_unit = [times.forward_ps, times.backward_ps, times.recompute_ps, times.weight_grad_ps, times.update_ps];
        for (column, time) in columns.iter_mut().zip(of_unit) {
            column.push(time);
        }
    }
    let [forward, backward, recompute, weight_grad, update] = columns;
    let recompute = recomputable.iter().map(|&u| recompute[u]);
    Ok(Times {
        forward: Totals::of(forward),
        backward: Totals::of(backward),
        recompute: Totals::of(recompute),
        weight_grad: Totals::of(weight_grad),
        update: Totals::of(update),
    })
}

/// Bytes of the parameters, gradient sums and states of all ranges, by start and length, each parameter once.
fn parameters(units: &[UnitProfile]) -> Vec<Vec<u64>> {
    let mut last_user: BTreeMap<u32, usize> = BTreeMap::new();
    // For each unit the bytes of its parameters, by the unit before it that last used them.
    let mut users: Vec<BTreeMap<Option<usize>, u64>> = Vec::with_capacity(units.len());
    for (index, unit) in units.iter().enumerate() {
        let mut bytes: BTreeMap<Option<usize>, u64> = BTreeMap::new();
        for p in &unit.parameters {
            let before = last_user.insert(p.parameter, index);
            if before != Some(index) {
                let sum = bytes.entry(before).or_default();
                *sum = sum.saturating_add(p.weight).saturating_add(p.gradient).saturating_add(p.state);
            }
        }
        users.push(bytes);
    }
    // A range counts what no unit of it has used before.
    let from = |start: usize| {
        let new = |bytes: &BTreeMap<Option<usize>, u64>| {
            bytes.range(..Some(start)).fold(0u64, |sum, (_, &bytes)| sum.saturating_add(bytes))
        };
        let sums = users[start..].iter().scan(0u64, |sum, bytes| {
            *sum = sum.saturating_add(new(bytes));
            Some(*sum)
        });
        sums.collect()
    };
    (0..units.len()).map(from).collect()
}

/// The sets of units that share parameters, each with the bytes that its holders exchange.
fn shared(units: &[UnitProfile]) -> Vec<Shared> {
    let mut users: BTreeMap<u32, (Vec<usize>, u64)> = BTreeMap::new();
    for (index, unit) in units.iter().enumerate() {
        for p in &unit.parameters {
            let (of, gradient) = users.entry(p.parameter).or_default();
            if of.last() != Some(&index) {
                of.push(index);
            }
            *gradient = (*gradient).max(p.gradient);
        }
    }
    let mut sets: BTreeMap<Vec<usize>, u64> = BTreeMap::new();
    for (of, gradient) in users.into_values().filter(|(of, _)| of.len() > 1) {
        let sum = sets.entry(of).or_default();
        *sum = sum.saturating_add(gradient);
    }
    sets.into_iter().map(|(units, gradient)| Shared { units, gradient }).collect()
}
