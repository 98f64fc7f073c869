//! What partitioning minimizes: the time of a step, or, to explain a failure, memory.

use super::search::{Objective, Point};
use super::stage_cost::{Shared, StageCosts};
use super::{PartitionOptions, in_flight};
use crate::plan::cost;
use std::cell::RefCell;
use std::collections::BTreeMap;
use trainc_ir::NodeGroupId;
use trainc_ir::id::Id;

/// The scale of speeds: a GPU of the fastest group.
const FASTEST: u64 = 1 << 20;

/// The predicted time of a step with `m` micro-batches on stages of times `t` (forward, backward and recomputation),
/// once-per-step times `u` (update and exchange of shared gradients) and transfer times `c` between stages:
///
/// ```text
/// step = peak + sum
/// sum  = sum of t + sum of c            (the first micro-batch through all stages and back)
/// peak = max of (m - 1) t + u           (the slowest stage)
///        max of (m - 1) c               (the slowest transfer, of either direction)
///        max over e < m of (m - 1) / e * (t and c of the first e stages)
/// ```
///
/// The last line is a property of 1F1B: the first `e` stages hold `e` micro-batches more than the rest, so a
/// micro-batch's way through them and back must take at most `e` periods.
pub(super) struct StepTime<'a> {
    costs: &'a StageCosts<'a>,
    options: &'a PartitionOptions,
    n_stages: usize,
    /// By group: [`FASTEST`] times the least time of all units on any group, over the time on it.
    speeds: Vec<u64>,
    /// By first unit: the least summed time from there on.
    least_sum: Vec<u64>,
    /// By first unit: the least summed product of time and speed from there on.
    least_work: Vec<u128>,
    /// By first unit: the least time of the slowest unit from there on.
    least_peak: Vec<u64>,
    /// Points by group, start and in-flight micro-batches, for every end.
    rows: RefCell<BTreeMap<(usize, usize, u64, u64), Row>>,
}

type Row = Vec<Option<Point>>;

impl<'a> StepTime<'a> {
    pub(super) fn new(costs: &'a StageCosts<'a>, options: &'a PartitionOptions, limits: &[u32]) -> Self {
        let n_units = costs.n_units();
        let of = |unit, group: usize| costs.least_time(unit, NodeGroupId::from_index(group));
        let usable: Vec<usize> = (0..limits.len()).filter(|&g| limits[g] > 0).collect();
        let whole = |group: usize| (0..n_units).try_fold(0u64, |sum, u| Some(sum.saturating_add(of(u, group)?)));
        let totals: Vec<Option<u64>> = (0..limits.len()).map(|g| whole(g).filter(|_| limits[g] > 0)).collect();
        let least = totals.iter().flatten().copied().min().unwrap_or(0).max(1);
        let speed = |total: &Option<u64>| {
            total.map_or(0, |total| {
                let share = u128::from(FASTEST) * u128::from(least) / u128::from(total.max(1));
                u64::try_from(share).unwrap_or(FASTEST).min(FASTEST)
            })
        };
        let speeds: Vec<u64> = totals.iter().map(speed).collect();
        let (mut least_sum, mut least_work, mut least_peak) =
            (vec![0u64; n_units + 1], vec![0u128; n_units + 1], vec![0u64; n_units + 1]);
        for unit in (0..n_units).rev() {
            let times = || usable.iter().filter_map(|&g| of(unit, g).map(|time| (g, time)));
            let time = times().map(|(_, time)| time).min().unwrap_or(0);
            let work = times().map(|(g, time)| u128::from(time) * u128::from(speeds[g])).min().unwrap_or(0);
            least_sum[unit] = least_sum[unit + 1].saturating_add(time);
            least_work[unit] = least_work[unit + 1].saturating_add(work);
            least_peak[unit] = least_peak[unit + 1].max(time);
        }
        let rows = RefCell::new(BTreeMap::new());
        Self { costs, options, n_stages: 0, speeds, least_sum, least_work, least_peak, rows }
    }

    /// The same for another number of stages.
    pub(super) fn set_stages(&mut self, n_stages: usize) {
        if self.costs.shared.iter().any(|shared| shared.units.len() > 2) {
            self.rows.get_mut().clear();
        }
        self.n_stages = n_stages;
    }

    /// A lower bound of the step time with that many stages on at most so many GPUs of each group.
    pub(super) fn least(&self, n_stages: usize, limits: &[u32]) -> u64 {
        let mut gpus: Vec<(u64, u64)> = self.speeds.iter().zip(limits).map(|(&s, &n)| (s, u64::from(n))).collect();
        gpus.sort_unstable_by(|a, b| b.cmp(a));
        let (mut left, mut speed) = (n_stages as u64, 0u64);
        for (of, n) in gpus {
            let n = n.min(left);
            speed = speed.saturating_add(of.saturating_mul(n));
            left -= n;
        }
        self.bound(Point::default(), 0, n_stages, speed)
    }

    fn rounds(&self) -> u64 {
        self.options.micro_batches.saturating_sub(1)
    }

    fn row(&self, group: usize, start: usize, in_flight: u64, reduction: u64) -> Row {
        let id = NodeGroupId::from_index(group);
        let capacity = self.costs.cluster().groups[id].capacity_bytes();
        let point = |end: usize| {
            let range = start..end;
            let beyond = self.costs.beyond_arena(&range, id, self.n_stages);
            let budget = capacity.checked_sub(beyond)?.checked_sub(reduction)?;
            let (n_recomputed, _) = self.costs.fastest(range.clone(), in_flight, budget)?;
            let (forward, backward) = self.costs.time(range.clone(), id, n_recomputed)?;
            let sum = forward.saturating_add(backward);
            let update = self.costs.update_time(range, id);
            Some(Point { peak: self.rounds().saturating_mul(sum).saturating_add(update), sum })
        };
        (start + 1..=self.costs.n_units()).map(point).collect()
    }
}

impl Objective for StepTime<'_> {
    fn stage(&self, stage: usize, group: usize, (start, end): (usize, usize)) -> Option<Point> {
        let in_flight = in_flight(self.options.micro_batches, self.n_stages, stage);
        let reduction = self.options.reduction(stage);
        let mut rows = self.rows.borrow_mut();
        let key = (group, start, in_flight, reduction);
        let row = rows.entry(key).or_insert_with(|| self.row(group, start, in_flight, reduction));
        row[end - start - 1]
    }

    fn transfer(&self, from: usize, to: usize, same_node: bool, cut: usize) -> Option<Point> {
        let (forward, backward) = transfer_times(self.costs, (from, to), same_node, cut)?;
        let peak = self.rounds().saturating_mul(forward.max(backward));
        Some(Point { peak, sum: forward.saturating_add(backward) })
    }

    fn exchange(&self, shared: &Shared, with: usize, group: usize, same_node: bool) -> Option<u64> {
        exchange_time(self.costs, shared, (with, group), same_node)
    }

    fn after(&self, n_placed: usize, point: Point) -> Point {
        let (m, e) = (self.options.micro_batches, n_placed as u64);
        if m <= e {
            return point;
        }
        let round_trips = (u128::from(self.rounds()) * u128::from(point.sum)).div_ceil(u128::from(e));
        Point { peak: point.peak.max(u64::try_from(round_trips).unwrap_or(u64::MAX)), sum: point.sum }
    }

    fn bound(&self, point: Point, at: usize, n_left: usize, speed: u64) -> u64 {
        if n_left == 0 {
            return point.total();
        }
        let balanced = u64::try_from(self.least_work[at] / u128::from(speed.max(1))).unwrap_or(u64::MAX);
        let peak = point.peak.max(self.rounds().saturating_mul(balanced.max(self.least_peak[at])));
        peak.saturating_add(point.sum).saturating_add(self.least_sum[at])
    }

    fn speed(&self, group: usize) -> u64 {
        self.speeds[group]
    }
}

/// Times of a micro-batch's activation over a cut and of its gradient back.
pub(super) fn transfer_times(
    costs: &StageCosts<'_>,
    (from, to): (usize, usize),
    same_node: bool,
    cut: usize,
) -> Option<(u64, u64)> {
    let (from, to) = (NodeGroupId::from_index(from), NodeGroupId::from_index(to));
    let unit = &costs.units()[cut - 1];
    let forward = cost::transfer(costs.cluster().link(from, to, same_node)?, unit.sent_forward);
    let backward = cost::transfer(costs.cluster().link(to, from, same_node)?, unit.sent_backward);
    Some((forward, backward))
}

/// Time of summing the gradients of shared parameters between two holders.
pub(super) fn exchange_time(
    costs: &StageCosts<'_>,
    shared: &Shared,
    (with, group): (usize, usize),
    same_node: bool,
) -> Option<u64> {
    let (with, group) = (NodeGroupId::from_index(with), NodeGroupId::from_index(group));
    let there = cost::all_reduce(costs.cluster().link(with, group, same_node)?, 2, shared.gradient);
    let back = cost::all_reduce(costs.cluster().link(group, with, same_node)?, 2, shared.gradient);
    Some(there.max(back))
}

/// Which bytes are to be few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// Those that the stage of the largest shortage lacks.
    Shortage,
    /// Those that the largest stage needs of its GPU, as the driver reports them.
    Memory,
}

/// The fewest bytes, whatever the time.
pub(super) struct Bytes<'a> {
    pub(super) costs: &'a StageCosts<'a>,
    pub(super) options: &'a PartitionOptions,
    pub(super) n_stages: usize,
    pub(super) want: Want,
}

impl Bytes<'_> {
    /// Bytes that the stage needs of what a program sees.
    pub(super) fn needed(&self, stage: usize, group: usize, range: (usize, usize)) -> u64 {
        let in_flight = in_flight(self.options.micro_batches, self.n_stages, stage);
        let (range, id) = (range.0..range.1, NodeGroupId::from_index(group));
        let beyond = self.costs.beyond_arena(&range, id, self.n_stages);
        let arena = self.costs.fewest_bytes(range, in_flight);
        arena.saturating_add(beyond).saturating_add(self.options.reduction(stage))
    }
}

impl Objective for Bytes<'_> {
    fn stage(&self, stage: usize, group: usize, range: (usize, usize)) -> Option<Point> {
        let needed = self.needed(stage, group, range);
        let of = &self.costs.cluster().groups[NodeGroupId::from_index(group)];
        let peak = match self.want {
            Want::Shortage => needed.saturating_sub(of.capacity_bytes()),
            Want::Memory => needed.saturating_add(of.reserve.driver_bytes),
        };
        Some(Point { peak, sum: 0 })
    }

    fn transfer(&self, from: usize, to: usize, same_node: bool, cut: usize) -> Option<Point> {
        transfer_times(self.costs, (from, to), same_node, cut).map(|_| Point::default())
    }

    fn exchange(&self, shared: &Shared, with: usize, group: usize, same_node: bool) -> Option<u64> {
        exchange_time(self.costs, shared, (with, group), same_node).map(|_| 0)
    }

    fn after(&self, _n_placed: usize, point: Point) -> Point {
        point
    }

    fn bound(&self, point: Point, _at: usize, _n_left: usize, _speed: u64) -> u64 {
        point.peak
    }

    fn speed(&self, _group: usize) -> u64 {
        1
    }
}
