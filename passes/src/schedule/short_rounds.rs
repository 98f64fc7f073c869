//! Looped schedules whose rounds have fewer micro-batches than there are ranks.
//!
//! A rank then waits in each round until its first micro-batch has come around, and no pattern of forwards and backwards in
//! turns fits all ranks. So the orders of both are merged by running them: a forward takes 1, a backward 2; a rank prefers
//! its next backward, and has no more in flight than it would with the pattern.

use super::{Schedule, Shape, Work, WorkKind, rounds};
use std::ops::Range;

/// The schedule with these rounds.
pub(super) fn in_rounds(shape: &Shape, rounds: &[Range<u64>]) -> Schedule {
    let first = rounds.first().map_or(0, |round| round.end - round.start);
    let rank_of = shape.looped();
    let mut merge = Merge {
        last_stage: shape.n_stages() - 1,
        input: vec![u64::MAX; shape.n_stages() * shape.micro_batches as usize],
        gradient: vec![u64::MAX; shape.n_stages() * shape.micro_batches as usize],
        micro_batches: shape.micro_batches as usize,
    };
    let rank = |rank: usize| Rank {
        forwards: rounds::forwards(shape, rounds, rank),
        backwards: rounds::backwards(shape, rounds, rank),
        done: (0, 0),
        most: (shape.loops - 1) * first as usize + 2 * (shape.ranks - 1 - rank) + 1,
        free: 0,
        order: Vec::new(),
    };
    let mut ranks: Vec<Rank> = (0..shape.ranks).map(rank).collect();
    let mut now = 0;
    while ranks.iter().any(|rank| rank.done.1 < rank.backwards.len()) {
        let mut moves = false;
        for rank in &mut ranks {
            if rank.free <= now
                && let Some(work) = rank.next(&merge, now)
            {
                rank.free = now + if work.kind == WorkKind::Forward { 1 } else { 2 };
                merge.send(work, rank.free);
                rank.order.push(work);
            }
            moves |= rank.free > now;
        }
        now += 1;
        if !moves {
            // All wait for one that may not go further ahead.
            ranks.iter_mut().for_each(|rank| rank.most += 1);
        }
    }
    let orders = ranks.into_iter().map(|rank| rank.order).collect();
    Schedule { micro_batches: shape.micro_batches, rank_of, ranks: orders }
}

/// A rank while it runs.
struct Rank {
    forwards: Vec<Work>,
    backwards: Vec<Work>,
    /// Forwards and backwards done.
    done: (usize, usize),
    /// Forwards that it may be ahead of its backwards.
    most: usize,
    free: u64,
    order: Vec<Work>,
}

impl Rank {
    /// What it begins now, if anything.
    fn next(&mut self, merge: &Merge, now: u64) -> Option<Work> {
        // Other gradients come only after the own forward.
        let backward = self.backwards.get(self.done.1).filter(|&&work| merge.has_gradient(work, now));
        if let Some(&work) = backward {
            self.done.1 += 1;
            return Some(work);
        }
        let forward = self.forwards.get(self.done.0).filter(|&&work| merge.has_input(work, now));
        let &work = forward.filter(|_| self.done.0 - self.done.1 < self.most)?;
        self.done.0 += 1;
        Some(work)
    }
}

/// What has been sent, and when.
struct Merge {
    last_stage: usize,
    input: Vec<u64>,
    gradient: Vec<u64>,
    micro_batches: usize,
}

impl Merge {
    fn index(&self, stage: usize, work: Work) -> usize {
        stage * self.micro_batches + work.micro_batch as usize
    }

    fn has_input(&self, work: Work, now: u64) -> bool {
        work.stage == 0 || self.input[self.index(work.stage, work)] <= now
    }

    fn has_gradient(&self, work: Work, now: u64) -> bool {
        self.gradient[self.index(work.stage, work)] <= now
    }

    fn send(&mut self, work: Work, end: u64) {
        let forward = work.kind == WorkKind::Forward;
        if forward && work.stage < self.last_stage {
            let to = self.index(work.stage + 1, work);
            self.input[to] = end;
        } else if forward {
            let here = self.index(work.stage, work);
            self.gradient[here] = end;
        }
        if !forward && work.stage > 0 {
            let to = self.index(work.stage - 1, work);
            self.gradient[to] = end;
        }
    }
}
