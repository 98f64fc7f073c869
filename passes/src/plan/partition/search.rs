//! Exact search over cuts and groups: one dynamic program for every objective.
//!
//! Stages are placed from first to last. A state is how many units are placed, the group of the last stage, how many
//! GPUs of each group are used, and which groups hold each set of shared parameters that later units still use. Each
//! state keeps the points (`peak`, `sum`) that no other beats in both. An objective whose result grows with both, and
//! whose steps grow with both, is minimized exactly.

use super::stage_cost::Shared;
use std::collections::BTreeMap;
use trainc_ir::id::Id;
use trainc_ir::{Cluster, NodeGroupId};

/// What a search minimizes. Every method is monotone in `peak` and `sum`.
pub(super) trait Objective {
    /// What the stage `range` on `group` adds: a candidate for the peak, and a summand. `None` where it cannot be.
    fn stage(&self, stage: usize, group: usize, range: (usize, usize)) -> Option<Point>;
    /// What a transfer behind unit `cut - 1` adds. `None` where the GPUs are not connected.
    fn transfer(&self, from: usize, to: usize, same_node: bool, cut: usize) -> Option<Point>;
    /// What exchanging the gradients of shared parameters with a holder on another group adds to the stage's peak.
    fn exchange(&self, shared: &Shared, with: usize, group: usize, same_node: bool) -> Option<u64>;
    /// The peak after a stage.
    fn after(&self, n_placed: usize, point: Point) -> Point;
    /// A lower bound of the result from a point, with the units from `at` on to come.
    fn bound(&self, point: Point, at: usize, left: &Left) -> u64;
    /// Whether a point cannot lead to a result of at most `ceiling`.
    fn hopeless(&self, point: Point, at: usize, left: &Left, ceiling: u64) -> bool;
}

/// A pair of figures to be small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    pub(super) peak: u64,
    pub(super) sum: u64,
}

impl Point {
    /// The result of the last stage.
    pub(super) fn total(self) -> u64 {
        self.peak.saturating_add(self.sum)
    }
}

/// What is left for the stages to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Left {
    /// Number of stages.
    pub(super) n_stages: usize,
    /// GPUs of each group.
    pub(super) free: Vec<u32>,
}

/// What a search may use.
pub(super) struct Space<'a> {
    pub(super) n_units: usize,
    pub(super) n_stages: usize,
    pub(super) cluster: &'a Cluster,
    /// GPUs of each group that may be used.
    pub(super) limits: &'a [u32],
    pub(super) shared: &'a [Shared],
    /// Points that are kept after each stage; where more are left, those of the least bounds, and the result may not be
    /// the least.
    pub(super) width: usize,
    /// Results above this are of no interest.
    pub(super) ceiling: u64,
}

/// One stage of a solution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) group: usize,
    /// Which GPU of the group, counted in the order of stages.
    pub(super) index: u32,
}

/// What a search found: the best solution of every mix of GPUs that was not cut off, the best first.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) solutions: Vec<(u64, Vec<Placed>)>,
    /// Whether the first is the least of all.
    pub(super) exact: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    at: usize,
    /// Used GPUs of each group, interned.
    mix: usize,
    group: usize,
    /// Holders of each set of shared parameters, interned.
    holders: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    point: Point,
    /// Into the steps.
    step: usize,
}

struct Step {
    before: Option<usize>,
    placed: Placed,
}

/// Values by number, in order of first sight.
struct Interned<T: Ord + Clone> {
    numbers: BTreeMap<T, usize>,
    values: Vec<T>,
}

impl<T: Ord + Clone> Interned<T> {
    fn new() -> Self {
        Self { numbers: BTreeMap::new(), values: Vec::new() }
    }

    fn number(&mut self, value: T) -> usize {
        if let Some(&number) = self.numbers.get(&value) {
            return number;
        }
        self.values.push(value.clone());
        self.numbers.insert(value, self.values.len() - 1);
        self.values.len() - 1
    }
}

struct Search<'a, O> {
    space: &'a Space<'a>,
    objective: &'a O,
    mixes: Interned<Vec<u32>>,
    holders: Interned<Vec<Vec<usize>>>,
    steps: Vec<Step>,
}

type Level = BTreeMap<State, Vec<Entry>>;

/// Minimizes the objective.
pub(super) fn search<O: Objective>(space: &Space<'_>, objective: &O) -> Found {
    let (mixes, holders) = (Interned::new(), Interned::new());
    let mut search = Search { space, objective, mixes, holders, steps: Vec::new() };
    let mut exact = true;
    let mut level = search.first();
    for placed in 1..space.n_stages {
        exact &= search.narrow(&mut level, placed);
        level = search.next(&level, placed);
    }
    let mut best: BTreeMap<usize, Entry> = BTreeMap::new();
    for (state, entries) in &level {
        for entry in entries {
            let kept = best.entry(state.mix).or_insert(*entry);
            if entry.point.total() < kept.point.total() {
                *kept = *entry;
            }
        }
    }
    let mut ends: Vec<(u64, usize, Entry)> = best.into_iter().map(|(mix, e)| (e.point.total(), mix, e)).collect();
    // Equal totals: more GPUs of earlier groups first.
    ends.sort_by(|a, b| (a.0, &search.mixes.values[b.1]).cmp(&(b.0, &search.mixes.values[a.1])));
    let solutions = ends.into_iter().map(|(total, _, entry)| (total, search.path(entry.step))).collect();
    Found { solutions, exact }
}

impl<O: Objective> Search<'_, O> {
    fn first(&mut self) -> Level {
        let n_groups = self.space.limits.len();
        let mix = self.mixes.number(vec![0; n_groups]);
        let holders = self.holders.number(vec![Vec::new(); self.space.shared.len()]);
        let mut level = Level::new();
        for group in 0..n_groups {
            self.extend(&mut level, State { at: 0, mix, group, holders }, group, &[], 0);
        }
        level
    }

    fn next(&mut self, level: &Level, placed: usize) -> Level {
        let mut next = Level::new();
        for (state, entries) in level {
            for group in 0..self.space.limits.len() {
                self.extend(&mut next, *state, group, entries, placed);
            }
        }
        next
    }

    /// Puts the next stage on a group, with every end that leaves a unit for each later stage.
    fn extend(&mut self, next: &mut Level, state: State, group: usize, entries: &[Entry], placed: usize) {
        let used = self.mixes.values[state.mix][group];
        if used >= self.space.limits[group] {
            return;
        }
        let mut mix = self.mixes.values[state.mix].clone();
        mix[group] += 1;
        let mix = self.mixes.number(mix);
        let (n_left, ceiling) = (self.space.n_stages - placed - 1, self.space.ceiling);
        let left = self.left(mix, n_left);
        let transfer = match placed {
            0 => Some(Point::default()),
            _ => self.objective.transfer(state.group, group, self.same_node(state, group), state.at),
        };
        let Some(transfer) = transfer else { return };
        let last = self.space.n_units - n_left;
        let first = if n_left == 0 { last } else { state.at + 1 };
        let start = [Entry { point: Point::default(), step: usize::MAX }];
        let entries = if placed == 0 { &start[..] } else { entries };
        for end in first..=last {
            let Some(own) = self.objective.stage(placed, group, (state.at, end)) else { continue };
            let Some((exchange, holders)) = self.exchange(state, mix, group, end) else { continue };
            let mut points = Vec::new();
            for entry in entries {
                let peak = own.peak.saturating_add(exchange).max(transfer.peak).max(entry.point.peak);
                let sum = entry.point.sum.saturating_add(transfer.sum).saturating_add(own.sum);
                let point = self.objective.after(placed + 1, Point { peak, sum });
                let bound = self.objective.bound(point, end, &left);
                if bound <= ceiling && !self.objective.hopeless(point, end, &left, ceiling) {
                    points.push((point, (placed > 0).then_some(entry.step)));
                }
            }
            if points.is_empty() {
                if own.total() > ceiling {
                    break;
                }
                continue;
            }
            let front = next.entry(State { at: end, mix, group, holders }).or_default();
            for (point, before) in points {
                if front.iter().all(|e| e.point.peak > point.peak || e.point.sum > point.sum) {
                    front.retain(|e| e.point.peak < point.peak || e.point.sum < point.sum);
                    front.push(Entry { point, step: self.steps.len() });
                    let placed = Placed { start: state.at, end, group, index: used };
                    self.steps.push(Step { before, placed });
                }
            }
        }
    }

    /// Whether the next GPU of a group is on the node of its latest one.
    fn same_node(&self, state: State, group: usize) -> bool {
        let used = self.mixes.values[state.mix][group];
        let per_node = self.space.cluster.groups[NodeGroupId::from_index(group)].gpus_per_node.max(1);
        state.group == group && !used.is_multiple_of(per_node)
    }

    /// What the exchanges of shared parameters add when a stage ends at `end`, and the holders afterwards.
    fn exchange(&mut self, state: State, mix: usize, group: usize, end: usize) -> Option<(u64, usize)> {
        if self.space.shared.is_empty() {
            return Some((0, state.holders));
        }
        let per_node = self.space.cluster.groups[NodeGroupId::from_index(group)].gpus_per_node;
        let one_node = self.mixes.values[mix][group] <= per_node;
        let mut holders = self.holders.values[state.holders].clone();
        let mut time = 0u64;
        for (shared, held) in self.space.shared.iter().zip(&mut holders) {
            if !shared.units.iter().any(|u| (state.at..end).contains(u)) {
                continue;
            }
            let mut slowest = 0;
            for &with in held.iter() {
                slowest = slowest.max(self.objective.exchange(shared, with, group, with == group && one_node)?);
            }
            time = time.saturating_add(slowest);
            if shared.units.iter().all(|&u| u < end) {
                held.clear();
            } else if let Err(place) = held.binary_search(&group) {
                held.insert(place, group);
            }
        }
        Some((time, self.holders.number(holders)))
    }

    fn left(&self, mix: usize, n_stages: usize) -> Left {
        let free = self.space.limits.iter().zip(&self.mixes.values[mix]).map(|(limit, used)| limit - used);
        Left { n_stages, free: free.collect() }
    }

    /// Keeps the points of the least bounds; whether that was all.
    fn narrow(&self, level: &mut Level, placed: usize) -> bool {
        if level.values().map(Vec::len).sum::<usize>() <= self.space.width {
            return true;
        }
        let n_left = self.space.n_stages - placed;
        let mut ranked: Vec<(u64, State, Point)> = Vec::new();
        for (state, entries) in level.iter() {
            let left = self.left(state.mix, n_left);
            for entry in entries {
                ranked.push((self.objective.bound(entry.point, state.at, &left), *state, entry.point));
            }
        }
        ranked.sort_unstable();
        let last = ranked[self.space.width - 1];
        level.retain(|state, entries| {
            let left = self.left(state.mix, n_left);
            let bound = |e: &Entry| self.objective.bound(e.point, state.at, &left);
            entries.retain(|e| (bound(e), *state, e.point) <= last);
            !entries.is_empty()
        });
        false
    }

    fn path(&self, end: usize) -> Vec<Placed> {
        let mut path = Vec::with_capacity(self.space.n_stages);
        let mut at = Some(end);
        while let Some(step) = at {
            path.push(self.steps[step].placed.clone());
            at = self.steps[step].before;
        }
        path.reverse();
        path
    }
}
