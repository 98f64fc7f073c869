//! Divisions for schedules with several stages per rank: cuts that balance time or bytes, each tried whole.
//!
//! The ranks take the GPUs of one group, or of the fastest groups one after the other. For every such choice two divisions
//! are tried: the one whose slowest stage is fastest, and the one whose largest stage is smallest. Of those whose ranks hold
//! all their stages, the one with the least simulated step wins. What is recomputed is chosen per rank: as few units as it
//! needs, earliest first.

use super::infeasible::{self, Change, Infeasible, Reason};
use super::objective::transfer_times;
use super::stage_cost::{RecomputePolicy, StageCosts};
use super::{
    Lost, MAX_RUNNER_UPS, Partition, PartitionOptions, RunnerUp, StageChoice, Stages, count, is_productive, usable_gpus,
};
use crate::plan::flow;
use crate::plan::profile::UnitProfile;
use crate::schedule::{Boundary, Costs, Generator, Schedule, Shape, simulate};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use trainc_ir::id::Id;
use trainc_ir::{Cluster, NodeGroupId};

/// Finds a division for the schedule.
pub(super) fn partition(
    units: &[UnitProfile],
    cluster: &Cluster,
    options: &PartitionOptions,
) -> Result<Partition, Infeasible> {
    let costs = StageCosts::new(units, cluster, options);
    let limits = usable_gpus(&costs, options);
    let n_units = u32::try_from(units.len()).unwrap_or(u32::MAX);
    let loops = u32::try_from(options.loops).unwrap_or(u32::MAX);
    let candidates = infeasible::candidates(&costs, options, &limits)?;
    let most = (n_units / loops) as usize;
    if let Stages::Forced(ranks) = options.stages
        && ranks as usize > most
    {
        let reason = Reason::TooFewUnits { asked: ranks.saturating_mul(loops), units: n_units };
        let changes = if most > 0 { vec![Change::Stages(most as u32)] } else { Vec::new() };
        return Err(Infeasible { reason, changes });
    }
    let mut found: Vec<Division> = Vec::new();
    let mut failed: Vec<Shortage> = Vec::new();
    let mut reason = Reason::TooFewUnits { asked: loops, units: n_units };
    for &ranks in candidates.iter().filter(|&&ranks| ranks <= most) {
        let shape = Shape { ranks, loops: options.loops, micro_batches: options.micro_batches };
        let schedule = match options.schedule.generate(&shape) {
            Ok(schedule) => schedule,
            Err(error) => {
                reason = Reason::NoSchedule(error);
                continue;
            }
        };
        reason = Reason::NotConnected { n_stages: ranks };
        for groups in placements(&costs, &limits, ranks) {
            let trial = Trial::new(&costs, options, &schedule, groups);
            for cuts in trial.divisions() {
                match trial.divide(&cuts) {
                    Ok(Some(division)) => found.push(division),
                    Ok(None) => {}
                    Err(shortage) => failed.push(shortage),
                }
            }
        }
    }
    if found.is_empty() {
        return Err(explain(&costs, options, &limits, failed, reason));
    }
    found.sort_by_key(|division| (division.step_ps, division.n_ranks));
    let chosen = match options.stages {
        Stages::Forced(_) => 0,
        Stages::Best { max: _ } => productive(&costs, &limits, options, &found),
    };
    let winner = found.remove(chosen);
    let others = found.iter().map(|other| RunnerUp {
        n_stages: other.n_ranks,
        gpus: other.gpus(),
        lost: match other.step_ps.cmp(&winner.step_ps) {
            std::cmp::Ordering::Less => Lost::Unproductive { step_ps: other.step_ps },
            std::cmp::Ordering::Equal => Lost::Equal,
            std::cmp::Ordering::Greater => Lost::Slower { step_ps: other.step_ps },
        },
    });
    let own = (winner.n_ranks, winner.gpus());
    let mut seen = BTreeSet::new();
    let new = |other: &RunnerUp| {
        let key = (other.n_stages, other.gpus.clone());
        key != own && seen.insert(key)
    };
    let runner_ups: Vec<RunnerUp> = others.filter(new).take(MAX_RUNNER_UPS).collect();
    Ok(Partition { stages: winner.stages, rank_of: winner.rank_of, step_ps: winner.step_ps, exact: false, runner_ups })
}

/// The fastest division whose ranks each do at least four fifths of what one GPU alone would; where none is such, one with
/// the fewest ranks.
fn productive(costs: &StageCosts<'_>, limits: &[u32], options: &PartitionOptions, found: &[Division]) -> usize {
    let usable = (0..limits.len()).filter(|&group| limits[group] > 0).map(NodeGroupId::from_index);
    let whole = |group| costs.time(0..costs.n_units(), group, 0).map(|(f, b)| f.saturating_add(b));
    let alone = u128::from(usable.filter_map(whole).min().unwrap_or(0)) * u128::from(options.micro_batches);
    let fewest = || (0..found.len()).min_by_key(|&i| (found[i].n_ranks, found[i].step_ps));
    found.iter().position(|d| is_productive(alone, d.n_ranks, d.step_ps)).or_else(fewest).unwrap_or(0)
}

/// The groups that ranks can take, for each choice the group of every rank.
fn placements(costs: &StageCosts<'_>, limits: &[u32], ranks: usize) -> Vec<Vec<NodeGroupId>> {
    let time =
        |group: usize| costs.time(0..costs.n_units(), NodeGroupId::from_index(group), 0).unwrap_or((u64::MAX, 0));
    let mut groups: Vec<usize> = (0..limits.len()).filter(|&group| limits[group] > 0).collect();
    groups.sort_by_key(|&group| (time(group), group));
    let all = groups.iter().flat_map(|&group| std::iter::repeat_n(group, limits[group] as usize));
    let mixed: Vec<usize> = all.take(ranks).collect();
    let single = groups.iter().filter(|&&group| limits[group] as usize >= ranks).map(|&group| vec![group; ranks]);
    let mut choices: Vec<Vec<usize>> = single.collect();
    if mixed.len() == ranks && !choices.contains(&mixed) {
        choices.push(mixed);
    }
    choices.into_iter().map(|of| of.into_iter().map(NodeGroupId::from_index).collect()).collect()
}

/// A division that fits.
struct Division {
    step_ps: u64,
    n_ranks: usize,
    rank_of: Vec<usize>,
    stages: Vec<StageChoice>,
    groups: Vec<NodeGroupId>,
}

impl Division {
    fn gpus(&self) -> Vec<(NodeGroupId, u32)> {
        count(self.groups.iter().copied())
    }
}

/// What the fullest rank of a division lacks.
struct Shortage {
    missing: u64,
    reason: Reason,
}

/// A schedule on GPUs.
struct Trial<'t> {
    costs: &'t StageCosts<'t>,
    options: &'t PartitionOptions,
    schedule: &'t Schedule,
    in_flight: Vec<u64>,
    /// By rank: the group, and which GPU of it.
    groups: Vec<(NodeGroupId, u32)>,
}

impl<'t> Trial<'t> {
    fn new(
        costs: &'t StageCosts<'t>,
        options: &'t PartitionOptions,
        schedule: &'t Schedule,
        groups: Vec<NodeGroupId>,
    ) -> Self {
        let mut taken: BTreeMap<NodeGroupId, u32> = BTreeMap::new();
        let mut take = |group| {
            let next = taken.entry(group).or_insert(0);
            *next += 1;
            (group, *next - 1)
        };
        let groups = groups.into_iter().map(&mut take).collect();
        Self { costs, options, schedule, in_flight: flow::in_flight(schedule), groups }
    }

    /// The cuts to try.
    fn divisions(&self) -> Vec<Vec<usize>> {
        let time = |stage: usize, range: Range<usize>| {
            let group = self.groups[self.schedule.rank_of[stage]].0;
            self.costs.least_time(range, group).unwrap_or(u64::MAX)
        };
        let bytes = |stage: usize, range: Range<usize>| self.costs.fewest_bytes(range, self.in_flight[stage]);
        let (n_units, n_stages) = (self.costs.n_units(), self.schedule.n_stages());
        let mut found = vec![least_greatest(n_units, n_stages, time), least_greatest(n_units, n_stages, bytes)];
        found.dedup();
        found
    }

    /// The division with these cuts; nothing where stages are not connected.
    fn divide(&self, cuts: &[usize]) -> Result<Option<Division>, Shortage> {
        let ranges: Vec<Range<usize>> = cuts.windows(2).map(|cut| cut[0]..cut[1]).collect();
        let Some(boundaries) = self.boundaries(&ranges) else { return Ok(None) };
        let mut stages: Vec<Option<StageChoice>> = vec![None; ranges.len()];
        let mut shortage: Option<Shortage> = None;
        for rank in 0..self.groups.len() {
            match self.hold(rank, &ranges, &boundaries) {
                Ok(held) => held.into_iter().for_each(|(stage, choice)| stages[stage] = Some(choice)),
                Err(found) if shortage.as_ref().is_none_or(|worst| worst.missing < found.missing) => {
                    shortage = Some(found);
                }
                Err(_) => {}
            }
        }
        if let Some(shortage) = shortage {
            return Err(shortage);
        }
        let stages: Vec<StageChoice> = stages.into_iter().flatten().collect();
        let cost = |choice| self.costs.work(choice);
        let costs = Costs { stages: stages.iter().map(cost).collect(), boundaries, traffic: None };
        let update = |rank| {
            let of_rank = self.schedule.stages_of(rank).map(|stage| stages[stage].update_ps);
            of_rank.fold(0u64, u64::saturating_add)
        };
        let update = (0..self.groups.len()).map(update).max().unwrap_or(0);
        let timing = simulate(self.schedule, &costs).expect("generated schedules can be executed");
        Ok(Some(Division {
            step_ps: timing.makespan_ps.saturating_add(update),
            n_ranks: self.groups.len(),
            rank_of: self.schedule.rank_of.clone(),
            stages,
            groups: self.groups.iter().map(|(group, _)| *group).collect(),
        }))
    }

    /// The times of handing over between neighbours.
    fn boundaries(&self, ranges: &[Range<usize>]) -> Option<Vec<Boundary>> {
        let of = |stage: usize| {
            let ranks = (self.schedule.rank_of[stage], self.schedule.rank_of[stage + 1]);
            if ranks.0 == ranks.1 {
                return Some(Boundary::default());
            }
            let ((from, i), (to, j)) = (self.groups[ranks.0], self.groups[ranks.1]);
            let per_node = self.costs.cluster().groups[from].gpus_per_node.max(1);
            let same_node = from == to && i / per_node == j / per_node;
            let pair = (from.index(), to.index());
            let (forward_ps, backward_ps) = transfer_times(self.costs, pair, same_node, ranges[stage].end)?;
            Some(Boundary { forward_ps, backward_ps })
        };
        (0..ranges.len() - 1).map(of).collect()
    }

    /// What a rank recomputes to hold its stages.
    fn hold(
        &self,
        rank: usize,
        ranges: &[Range<usize>],
        boundaries: &[Boundary],
    ) -> Result<Vec<(usize, StageChoice)>, Shortage> {
        let stages: Vec<usize> = self.schedule.stages_of(rank).collect();
        let (group, index) = self.groups[rank];
        let needs = self.needs(&stages, ranges);
        let node_group = &self.costs.cluster().groups[group];
        let beyond = self.beyond_arena(rank, group).saturating_add(self.options.reduction(rank));
        let available = node_group.capacity_bytes();
        let budget_bytes = available.saturating_sub(beyond);
        let Some(&(n, arena_bytes)) = needs.iter().find(|(_, bytes)| *bytes <= budget_bytes) else {
            let least = needs.iter().map(|(_, bytes)| *bytes).min().unwrap_or(u64::MAX);
            let needed_bytes = least.saturating_add(beyond);
            let stage = stages.iter().copied().max_by_key(|&stage| ranges[stage].len()).unwrap_or(0);
            let reason = Reason::Memory {
                n_stages: ranges.len(),
                stage,
                units: ranges[stage].clone(),
                group,
                needed_bytes,
                available_bytes: available,
            };
            return Err(Shortage { missing: needed_bytes.saturating_sub(available), reason });
        };
        let recomputed: Vec<usize> = self.recomputable(&stages, ranges).map(|(unit, _)| unit).take(n).collect();
        let choose = |stage: usize| {
            let units = ranges[stage].clone();
            let own: Vec<usize> = recomputed.iter().copied().filter(|unit| units.contains(unit)).collect();
            let (forward_ps, backward_ps) =
                self.costs.time(units.clone(), group, own.len()).expect("only GPUs that can run the model are used");
            let choice = StageChoice {
                group,
                index,
                in_flight: self.in_flight[stage],
                arena_bytes,
                budget_bytes,
                forward_ps,
                backward_ps,
                recompute_ps: self.costs.recompute_time(units.clone(), group, own.len()),
                update_ps: self.costs.update_time(units.clone(), group),
                transfer_ps: boundaries.get(stage).map_or((0, 0), |b| (b.forward_ps, b.backward_ps)),
                recomputed: own,
                units,
            };
            (stage, choice)
        };
        Ok(stages.iter().map(|&stage| choose(stage)).collect())
    }

    /// The units of the stages that can be recomputed, with the micro-batches that their stage holds.
    fn recomputable<'s>(
        &'s self,
        stages: &'s [usize],
        ranges: &'s [Range<usize>],
    ) -> impl Iterator<Item = (usize, u64)> {
        let units =
            stages.iter().flat_map(move |&stage| ranges[stage].clone().map(move |unit| (unit, self.in_flight[stage])));
        units.filter(|(unit, _)| !self.costs.units()[*unit].recompute.is_empty())
    }

    /// The allowed numbers of recomputed units of a rank, ascending, with the bytes of its arena: as for one stage, with
    /// parameters counted once and activations by each stage's micro-batches.
    fn needs(&self, stages: &[usize], ranges: &[Range<usize>]) -> Vec<(usize, u64)> {
        let units = self.costs.units();
        let of_rank = || stages.iter().flat_map(move |&stage| ranges[stage].clone().map(move |unit| (stage, unit)));
        let parameters: BTreeMap<u32, u64> = of_rank()
            .flat_map(|(_, unit)| &units[unit].parameters)
            .map(|p| (p.parameter, p.weight.saturating_add(p.gradient).saturating_add(p.state)))
            .collect();
        let fixed = parameters.values().copied().fold(0u64, u64::saturating_add);
        let boundary = stages.iter().map(|&stage| self.costs.boundary_bytes(&ranges[stage]));
        let fixed = boundary.fold(fixed, u64::saturating_add);
        let mut kept = of_rank().fold(0u64, |sum, (stage, unit)| {
            let unit = &units[unit];
            let bytes = unit.input_bytes.saturating_add(unit.data_bytes).saturating_add(unit.saved_bytes);
            sum.saturating_add(self.in_flight[stage].saturating_mul(bytes))
        });
        let plain = of_rank().map(|(_, unit)| units[unit].transient_forward.max(units[unit].transient_backward));
        let mut transient = plain.max().unwrap_or(0);
        let recomputable: Vec<(usize, u64)> = self.recomputable(stages, ranges).collect();
        let (least, most) = match self.options.recompute {
            RecomputePolicy::None => (0, 0),
            RecomputePolicy::Full => (recomputable.len(), recomputable.len()),
            RecomputePolicy::Fit => (0, recomputable.len()),
        };
        let mut needs = Vec::new();
        for n in 0..=most {
            if let Some(&(unit, in_flight)) = n.checked_sub(1).and_then(|last| recomputable.get(last)) {
                let unit = &units[unit];
                kept = kept.saturating_sub(in_flight.saturating_mul(unit.saved_bytes));
                transient = transient.max(unit.transient_backward.saturating_add(unit.saved_bytes));
            }
            if n >= least {
                needs.push((n, fixed.saturating_add(kept).saturating_add(transient)));
            }
        }
        needs
    }

    /// Context, workspace and communicators: one for each rank that the rank hands over to or takes over from, in each
    /// direction, for activations and gradients.
    fn beyond_arena(&self, rank: usize, group: NodeGroupId) -> u64 {
        let mut pairs = BTreeSet::new();
        for ranks in self.schedule.rank_of.windows(2).filter(|ranks| ranks[0] != ranks[1]) {
            pairs.insert((ranks[0], ranks[1], false));
            pairs.insert((ranks[1], ranks[0], true));
        }
        let own = pairs.iter().filter(|(from, to, _)| *from == rank || *to == rank).count();
        let node_group = &self.costs.cluster().groups[group];
        node_group.reserve.beyond_arena(self.options.n_library_streams, &vec![2; own])
    }
}

/// The cuts of the units into stages whose greatest cost is least. Costs grow with the range.
fn least_greatest(n_units: usize, n_stages: usize, cost: impl Fn(usize, Range<usize>) -> u64) -> Vec<usize> {
    // Per number of units that the stages so far hold: the greatest cost, and where the last of them starts.
    let mut levels: Vec<Vec<(u64, usize)>> = Vec::with_capacity(n_stages);
    for stage in 0..n_stages {
        let mut level = vec![(u64::MAX, 0); n_units + 1];
        for (end, entry) in level.iter_mut().enumerate().take(n_units + 1 - (n_stages - 1 - stage)).skip(stage + 1) {
            let Some(before) = levels.last() else {
                *entry = (cost(stage, 0..end), 0);
                continue;
            };
            // The stages before cost more the later the cut, this one costs less.
            let (mut low, mut high) = (stage, end - 1);
            while low < high {
                let middle = low + (high - low) / 2;
                if before[middle].0 >= cost(stage, middle..end) { high = middle } else { low = middle + 1 }
            }
            let at = |cut: usize| (before[cut].0.max(cost(stage, cut..end)), cut);
            *entry = if low > stage { at(low).min(at(low - 1)) } else { at(low) };
        }
        levels.push(level);
    }
    let mut cuts = vec![n_units];
    for level in levels.iter().rev() {
        let end = cuts.last().copied().unwrap_or(0);
        cuts.push(level[end].1);
    }
    cuts.reverse();
    cuts
}

/// Why nothing fits, and whether recomputing would help.
fn explain(
    costs: &StageCosts<'_>,
    options: &PartitionOptions,
    limits: &[u32],
    failed: Vec<Shortage>,
    reason: Reason,
) -> Infeasible {
    let Some(least) = failed.into_iter().min_by_key(|shortage| shortage.missing) else {
        return Infeasible { reason, changes: Vec::new() };
    };
    let mut changes = Vec::new();
    if options.recompute != RecomputePolicy::Fit {
        let options = PartitionOptions { recompute: RecomputePolicy::Fit, ..options.clone() };
        if partition(costs.units(), costs.cluster(), &options).is_ok() {
            changes.push(Change::Recompute(RecomputePolicy::Fit));
        }
    }
    if let Stages::Forced(asked) = options.stages {
        let usable = limits.iter().copied().fold(0u32, u32::saturating_add);
        let most = ((costs.n_units() / options.loops) as u32).min(super::MAX_STAGES).min(usable);
        let more = |ranks: &u32| fits(costs, options, limits, *ranks as usize);
        changes.extend((asked + 1..=most).find(more).map(Change::Stages));
    }
    Infeasible { reason: least.reason, changes }
}

/// Whether some division into that many ranks fits.
fn fits(costs: &StageCosts<'_>, options: &PartitionOptions, limits: &[u32], ranks: usize) -> bool {
    let shape = Shape { ranks, loops: options.loops, micro_batches: options.micro_batches };
    let Ok(schedule) = options.schedule.generate(&shape) else { return false };
    placements(costs, limits, ranks).into_iter().any(|groups| {
        let trial = Trial::new(costs, options, &schedule, groups);
        trial.divisions().iter().any(|cuts| matches!(trial.divide(cuts), Ok(Some(_))))
    })
}
