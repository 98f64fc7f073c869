//! Search for the order of work that makes a step shortest, for stages, links and memory that differ.
//!
//! It starts from every fixed schedule that the placement of stages has and that fits the memory, so the result is never
//! worse. Then rules build orders greedily (`list`), many orders are built side by side (`beam`), a branch and bound looks for
//! all that can be better (`exact`), and where it does not come to an end, neighbouring works are exchanged as long as that
//! helps (`local`). A bound from below (`bound`)
//! says how much better any order could be.
//!
//! Without loss, all searched orders run the forwards of a stage in ascending order of micro-batches: they are alike, and
//! backwards have to. Everything is counted in steps, so that results do not depend on the machine.

mod beam;
mod bound;
mod exact;
mod fixed;
mod flow;
mod list;
mod local;

#[cfg(test)]
mod tests;

use super::check::check_placement;
use super::timing::{self, Costs};
use super::{Ratio, Schedule, ScheduleError, ScheduleKind};
use flow::Flow;

/// Whose order is searched.
#[derive(Clone, Debug)]
pub struct Unequal {
    /// The rank of each stage.
    pub rank_of: Vec<usize>,
    /// Micro-batches of a step.
    pub micro_batches: u64,
    /// What stages and boundaries take.
    pub costs: Costs,
    /// Bytes of activations that each rank has room for.
    pub room_bytes: Vec<u64>,
    /// Whether backwards may be split into input and weight gradients.
    pub split: bool,
}

/// How hard to search.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions {
    /// Works that may be placed or replayed, over the whole search.
    pub steps: u64,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self { steps: 5_000_000 }
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The order.
    pub schedule: Schedule,
    /// Its time.
    pub makespan_ps: u64,
    /// No order takes less.
    pub lower_bound_ps: u64,
    /// The fixed schedules that the placement has, with their times; nothing if they do not fit the memory.
    pub fixed: Vec<(ScheduleKind, Option<u64>)>,
    /// Where the order comes from.
    pub by: FoundBy,
}

impl Found {
    /// Nothing is faster.
    pub fn is_optimal(&self) -> bool {
        self.makespan_ps == self.lower_bound_ps
    }

    /// How much faster another order could be at best, as a share of this one's time.
    pub fn gap(&self) -> Ratio {
        Ratio::new((self.makespan_ps - self.lower_bound_ps).into(), self.makespan_ps.into())
    }
}

/// Where an order comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// A fixed schedule.
    Fixed(ScheduleKind),
    /// One micro-batch after the other: the least memory there is.
    OneByOne,
    /// A greedy rule.
    List,
    /// Many orders side by side.
    Beam,
    /// Branch and bound.
    Exact,
    /// Exchanges of neighbours.
    Local,
}

/// The best order so far.
struct Best {
    schedule: Schedule,
    makespan_ps: u64,
    by: FoundBy,
}

/// Searches the order of work with the shortest step.
///
/// # Errors
/// If no order fits the memory, or numbers are missing.
pub fn search(problem: &Unequal, options: &SearchOptions) -> Result<Found, ScheduleError> {
    problem.check()?;
    let one_by_one = fixed::one_by_one(problem);
    let ends = timing::makespan(&one_by_one, &problem.costs).expect("micro-batches one by one wait for nothing");
    let mut best = Best { schedule: one_by_one, makespan_ps: ends, by: FoundBy::OneByOne };
    let mut fixed = Vec::new();
    for (kind, schedule) in fixed::schedules(problem) {
        let makespan = if problem.fits(&schedule) { timing::makespan(&schedule, &problem.costs) } else { None };
        fixed.push((kind, makespan));
        if let Some(makespan_ps) = makespan {
            best.take(schedule, makespan_ps, FoundBy::Fixed(kind));
        }
    }
    let mut lower_bound_ps = bound::Tails::new(problem).bound(&Flow::new(problem));
    let mut steps = options.steps;
    if best.makespan_ps > lower_bound_ps {
        list::improve(problem, &mut best, &mut steps, lower_bound_ps);
    }
    if best.makespan_ps > lower_bound_ps {
        beam::improve(problem, &mut best, &mut steps);
    }
    if best.makespan_ps > lower_bound_ps && exact::improve(problem, &mut best, &mut steps) {
        lower_bound_ps = best.makespan_ps;
    }
    if best.makespan_ps > lower_bound_ps {
        local::improve(problem, &mut best, &mut steps, lower_bound_ps);
    }
    let Best { schedule, makespan_ps, by } = best;
    Ok(Found { schedule, makespan_ps, lower_bound_ps, fixed, by })
}

impl Best {
    /// Takes another order if it is faster.
    fn take(&mut self, schedule: Schedule, makespan_ps: u64, by: FoundBy) {
        if makespan_ps < self.makespan_ps {
            *self = Self { schedule, makespan_ps, by };
        }
    }
}

impl Unequal {
    fn check(&self) -> Result<(), ScheduleError> {
        let n_stages = self.rank_of.len();
        let shape = super::Shape { ranks: self.room_bytes.len(), loops: 1, micro_batches: self.micro_batches };
        super::Shape { ranks: n_stages, ..shape }.check()?;
        self.costs.check(n_stages)?;
        check_placement(&self.rank_of, shape.ranks)?;
        for (rank, &room) in self.room_bytes.iter().enumerate() {
            let needed = fixed::least_bytes(self, rank);
            if needed > room {
                return Err(ScheduleError::NoRoom { rank, needed, room });
            }
        }
        Ok(())
    }

    /// No rank keeps more than it has room for.
    fn fits(&self, schedule: &Schedule) -> bool {
        let peaks = schedule.ranks.iter().map(|works| timing::peak_bytes(works, &self.costs));
        peaks.zip(&self.room_bytes).all(|(peak, &room)| peak <= room)
    }

    /// The number of works if no backward is split.
    fn n_works(&self) -> u64 {
        2 * self.rank_of.len() as u64 * self.micro_batches
    }
}
