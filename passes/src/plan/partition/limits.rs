//! Lower bounds of what stages to come take: the search leaves out what cannot beat the best plan known.

use super::search::Left;
use super::stage_cost::StageCosts;
use crate::plan::cost;
use trainc_ir::NodeGroupId;
use trainc_ir::id::Id;

/// The scale of speeds: a GPU of the fastest group.
const FASTEST: u64 = 1 << 20;

/// Bounds for the units from each unit on, from times without recomputation (but with it, where all units must be).
pub(super) struct Limits {
    /// By group: [`FASTEST`] times the least time of all units on any group, over the time on it.
    speeds: Vec<u64>,
    /// Groups, the fastest first.
    by_speed: Vec<usize>,
    /// The summed least times.
    sum: Vec<u64>,
    /// The summed least products of time and speed.
    work: Vec<u128>,
    /// The least time of the slowest unit.
    slowest: Vec<u64>,
    /// The least time that a unit takes longer than on its fastest group, with the group, ascending.
    excess: Vec<Vec<(u64, usize)>>,
    /// By group: the least time of so many units in a row.
    windows: Vec<Vec<Vec<u64>>>,
    /// The least time of a transfer to the next stage and back.
    hop: u64,
}

impl Limits {
    /// The bounds where so many GPUs of each group can be used.
    pub(super) fn new(costs: &StageCosts<'_>, limits: &[u32]) -> Self {
        let n_units = costs.n_units();
        let usable: Vec<usize> = (0..limits.len()).filter(|&g| limits[g] > 0).collect();
        let time = |unit: usize, group: usize| {
            costs.least_time(unit..unit + 1, NodeGroupId::from_index(group)).unwrap_or(u64::MAX)
        };
        let total = |g: usize| (0..n_units).fold(0u64, |sum, unit| sum.saturating_add(time(unit, g))).max(1);
        let least = usable.iter().map(|&g| total(g)).min().unwrap_or(1);
        let speed = |g: usize| match usable.contains(&g) {
            true => (u128::from(FASTEST) * u128::from(least) / u128::from(total(g))) as u64,
            false => 0,
        };
        let speeds: Vec<u64> = (0..limits.len()).map(speed).collect();
        let mut by_speed = usable.clone();
        by_speed.sort_by_key(|&g| (std::cmp::Reverse(speeds[g]), g));
        let (mut sum, mut work) = (vec![0u64; n_units + 1], vec![0u128; n_units + 1]);
        let (mut slowest, mut excess) = (vec![0u64; n_units + 1], vec![Vec::new(); n_units + 1]);
        let mut more = vec![u64::MAX; limits.len()];
        for unit in (0..n_units).rev() {
            let fastest = usable.iter().map(|&g| time(unit, g)).min().unwrap_or(0);
            let product = usable.iter().map(|&g| u128::from(time(unit, g)) * u128::from(speeds[g])).min().unwrap_or(0);
            sum[unit] = sum[unit + 1].saturating_add(fastest);
            work[unit] = work[unit + 1].saturating_add(product);
            slowest[unit] = slowest[unit + 1].max(fastest);
            for &g in &usable {
                more[g] = more[g].min(time(unit, g) - fastest);
                excess[unit].push((more[g], g));
            }
            excess[unit].sort_unstable();
        }
        let windows =
            (0..limits.len()).map(|g| if limits[g] > 0 { windows(n_units, |u| time(u, g)) } else { Vec::new() });
        let windows = windows.collect();
        Self { speeds, by_speed, sum, work, slowest, excess, windows, hop: least_hop(costs, &usable) }
    }

    /// The summed times of the units from `at` on, and of the transfers to and between their stages. Every stage has a
    /// unit, so a stage on a slower GPU adds at least what one unit takes longer there.
    pub(super) fn sum(&self, at: usize, left: &Left) -> u64 {
        let (mut n_left, mut sum) = (left.n_stages as u64, self.sum[at]);
        for &(excess, group) in &self.excess[at] {
            let n = u64::from(left.free[group]).min(n_left);
            sum = sum.saturating_add(n.saturating_mul(excess));
            n_left -= n;
        }
        let hops = if at > 0 { left.n_stages } else { left.n_stages.saturating_sub(1) };
        sum.saturating_add(self.hop.saturating_mul(hops as u64))
    }

    /// The time of the slowest stage for the units from `at` on: at least that of the slowest unit, and, for any weights
    /// `w` of the groups, the sum over the units of the least `w t`, over the summed weights of the GPUs. The weights are
    /// the speeds, which makes the second bound sharp where all units prefer the same GPUs.
    pub(super) fn slowest(&self, at: usize, left: &Left) -> u64 {
        let (mut n_left, mut speed) = (left.n_stages as u64, 0u64);
        for &group in &self.by_speed {
            let n = u64::from(left.free[group]).min(n_left);
            speed = speed.saturating_add(n.saturating_mul(self.speeds[group]));
            n_left -= n;
        }
        let balanced = self.work[at] / u128::from(speed.max(1));
        self.slowest[at].max(u64::try_from(balanced).unwrap_or(u64::MAX))
    }

    /// Whether stages of at most that time could hold all units from `at` on, going by how many units in a row fit.
    pub(super) fn holds(&self, at: usize, left: &Left, time: u64) -> bool {
        let mut fits: Vec<(usize, u64)> = Vec::with_capacity(left.free.len());
        for (group, &free) in left.free.iter().enumerate().filter(|(_, free)| **free > 0) {
            fits.push((self.windows[group][at].partition_point(|&least| least <= time), u64::from(free)));
        }
        fits.sort_unstable_by(|a, b| b.cmp(a));
        let (mut n_left, mut units) = (left.n_stages as u64, 0u64);
        for (n_units, free) in fits {
            let n = free.min(n_left);
            units = units.saturating_add(n.saturating_mul(n_units as u64));
            n_left -= n;
        }
        n_left == 0 && units >= (self.sum.len() - 1 - at) as u64
    }
}

/// For every first unit and every number of units: the least time of so many in a row from there or later.
fn windows(n_units: usize, time: impl Fn(usize) -> u64) -> Vec<Vec<u64>> {
    let mut least: Vec<Vec<u64>> = vec![Vec::new(); n_units + 1];
    for start in (0..n_units).rev() {
        let mut sum = 0u64;
        let later = &least[start + 1];
        let row = (0..n_units - start).map(|n| {
            sum = sum.saturating_add(time(start + n));
            later.get(n).copied().unwrap_or(u64::MAX).min(sum)
        });
        least[start] = row.collect();
    }
    least
}

fn least_hop(costs: &StageCosts<'_>, usable: &[usize]) -> u64 {
    let cuts = || costs.units().iter().take(costs.n_units().saturating_sub(1));
    let forward = cuts().map(|unit| unit.sent_forward).min().unwrap_or(0);
    let backward = cuts().map(|unit| unit.sent_backward).min().unwrap_or(0);
    let id = |&group: &usize| NodeGroupId::from_index(group);
    let link = |from, to, same_node| costs.cluster().link(from, to, same_node);
    let mut least = u64::MAX;
    for from in usable.iter().map(id) {
        for to in usable.iter().map(id) {
            for same_node in [false, true] {
                if let (Some(there), Some(back)) = (link(from, to, same_node), link(to, from, same_node)) {
                    least = least.min(cost::transfer(there, forward).saturating_add(cost::transfer(back, backward)));
                }
            }
        }
    }
    if least == u64::MAX { 0 } else { least }
}
