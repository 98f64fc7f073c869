//! What partitioning minimizes: the time of a step, or, to explain a failure, memory.

use super::PartitionOptions;
use super::limits::Limits;
use super::search::{Left, Objective, Point};
use super::stage_cost::{Shared, StageCosts};
use crate::plan::cost;
use std::cell::RefCell;
use std::collections::BTreeMap;
use trainc_ir::NodeGroupId;
use trainc_ir::id::Id;

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
    limits: Limits,
    /// Points by group, start and in-flight micro-batches, for every end.
    rows: RefCell<BTreeMap<(usize, usize, u64, u64), Row>>,
}

type Row = Vec<Option<Point>>;

impl<'a> StepTime<'a> {
    pub(super) fn new(costs: &'a StageCosts<'a>, options: &'a PartitionOptions, limits: &[u32]) -> Self {
        Self { costs, options, n_stages: 0, limits: Limits::new(costs, limits), rows: RefCell::new(BTreeMap::new()) }
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
        self.bound(Point::default(), 0, &Left { n_stages, free: limits.to_vec() })
    }

    fn least_sum(&self, point: Point, at: usize, left: &Left) -> u64 {
        point.sum.saturating_add(self.limits.sum(at, left))
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
        let in_flight = self.options.in_flight(self.n_stages, stage);
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
        // Schedules that hold all micro-batches on every stage never wait for a way back.
        if m <= e || self.options.in_flight(self.n_stages, self.n_stages.saturating_sub(1)) == m {
            return point;
        }
        let round_trips = (u128::from(self.rounds()) * u128::from(point.sum)).div_ceil(u128::from(e));
        Point { peak: point.peak.max(u64::try_from(round_trips).unwrap_or(u64::MAX)), sum: point.sum }
    }

    fn bound(&self, point: Point, at: usize, left: &Left) -> u64 {
        if left.n_stages == 0 {
            return point.total();
        }
        let peak = point.peak.max(self.rounds().saturating_mul(self.limits.slowest(at, left)));
        peak.saturating_add(self.least_sum(point, at, left))
    }

    fn hopeless(&self, point: Point, at: usize, left: &Left, ceiling: u64) -> bool {
        if left.n_stages == 0 || self.rounds() == 0 || ceiling == u64::MAX {
            return false;
        }
        let peak = ceiling.saturating_sub(self.least_sum(point, at, left));
        !self.limits.holds(at, left, peak / self.rounds())
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
        let in_flight = self.options.in_flight(self.n_stages, stage);
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

    fn bound(&self, point: Point, _at: usize, _left: &Left) -> u64 {
        point.peak
    }

    fn hopeless(&self, _point: Point, _at: usize, _left: &Left, _ceiling: u64) -> bool {
        false
    }
}
