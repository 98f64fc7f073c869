//! Whether a schedule can be executed and adds up gradients in ascending order.

use super::{Schedule, ScheduleError, Shape, Work, WorkKind};

/// What has been done of a stage and a micro-batch, as bits.
const FORWARD: u8 = 1;
const INPUT_GRAD: u8 = 2;
const WEIGHT_GRAD: u8 = 4;

impl Schedule {
    /// It is executable, and a stage adds up its gradients in ascending order of micro-batches.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self) -> Result<(), ScheduleError> {
        self.check_executable()?;
        let mut last: Vec<Option<u64>> = vec![None; self.n_stages()];
        for &work in self.ranks.iter().flatten().filter(|work| work.kind.adds_gradients()) {
            if let Some(after) = last[work.stage].filter(|&last| last > work.micro_batch) {
                return Err(ScheduleError::Descending { work, after });
            }
            last[work.stage] = Some(work.micro_batch);
        }
        Ok(())
    }

    /// Each piece of work is done exactly once, on its stage's rank, and no ranks wait for each other for ever.
    ///
    /// # Errors
    /// The first violation.
    pub fn check_executable(&self) -> Result<(), ScheduleError> {
        self.check_complete()?;
        self.run()
    }

    /// Each piece of work is done exactly once, on its stage's rank.
    pub(super) fn check_complete(&self) -> Result<(), ScheduleError> {
        let (n_stages, n_ranks) = (self.n_stages(), self.ranks.len());
        check_placement(&self.rank_of, n_ranks)?;
        let micro_batches = self.micro_batches;
        if (n_stages as u64).checked_mul(micro_batches).is_none_or(|pairs| pairs > Shape::MOST) {
            let shape = Shape { ranks: n_ranks, loops: n_stages.div_ceil(n_ranks.max(1)), micro_batches };
            return Err(ScheduleError::TooLarge { shape });
        }
        let mut seen = vec![0u8; n_stages * micro_batches as usize];
        for (rank, works) in self.ranks.iter().enumerate() {
            for &work in works {
                if work.stage >= n_stages || work.micro_batch >= micro_batches {
                    return Err(ScheduleError::NoSuchWork { rank, work, stages: n_stages, micro_batches });
                }
                if self.rank_of[work.stage] != rank {
                    return Err(ScheduleError::WrongRank { rank, work, expected: self.rank_of[work.stage] });
                }
                let bits = bits(work.kind);
                let seen = &mut seen[self.index(work.stage, work.micro_batch)];
                if *seen & bits != 0 {
                    return Err(ScheduleError::Twice { work });
                }
                *seen |= bits;
            }
        }
        for (i, &seen) in seen.iter().enumerate() {
            let (stage, micro_batch) = (i / micro_batches as usize, (i % micro_batches as usize) as u64);
            let of = |kind| Work { kind, stage, micro_batch };
            for kind in [WorkKind::Forward, WorkKind::InputGrad, WorkKind::WeightGrad] {
                if seen & bits(kind) == 0 {
                    let whole = seen & (INPUT_GRAD | WEIGHT_GRAD) == 0 && kind == WorkKind::InputGrad;
                    return Err(ScheduleError::Missing { work: if whole { of(WorkKind::Backward) } else { of(kind) } });
                }
            }
        }
        Ok(())
    }

    /// Runs all ranks as far as they come.
    pub(super) fn run(&self) -> Result<(), ScheduleError> {
        let mut done = vec![0u8; self.n_stages() * self.micro_batches as usize];
        let mut next = vec![0usize; self.ranks.len()];
        let mut ready: Vec<usize> = (0..self.ranks.len()).collect();
        let mut waiting = vec![false; self.ranks.len()];
        while let Some(rank) = ready.pop() {
            waiting[rank] = true;
            while let Some(&work) = self.ranks[rank].get(next[rank]) {
                if self.missing(&done, work).is_some() {
                    break;
                }
                done[self.index(work.stage, work.micro_batch)] |= bits(work.kind);
                next[rank] += 1;
                let neighbour = match work.kind {
                    WorkKind::Forward => (work.stage + 1 < self.n_stages()).then(|| work.stage + 1),
                    WorkKind::Backward | WorkKind::InputGrad => work.stage.checked_sub(1),
                    WorkKind::WeightGrad => None,
                };
                if let Some(stage) = neighbour {
                    let woken = self.rank_of[stage];
                    if std::mem::take(&mut waiting[woken]) {
                        ready.push(woken);
                    }
                }
            }
        }
        for (rank, works) in self.ranks.iter().enumerate() {
            if let Some(&work) = works.get(next[rank]) {
                let waits_for = self.missing(&done, work).expect("a rank stops where something is missing");
                return Err(ScheduleError::Deadlock { rank, work, waits_for });
            }
        }
        Ok(())
    }

    /// What has to be done before the work and is not.
    fn missing(&self, done: &[u8], work: Work) -> Option<Work> {
        let Work { kind, stage, micro_batch } = work;
        let not_done = |kind, stage| {
            let missing = done[self.index(stage, micro_batch)] & bits(kind) == 0;
            missing.then_some(Work { kind, stage, micro_batch })
        };
        match kind {
            WorkKind::Forward => stage.checked_sub(1).and_then(|before| not_done(WorkKind::Forward, before)),
            WorkKind::Backward | WorkKind::InputGrad => not_done(WorkKind::Forward, stage)
                .or_else(|| (stage + 1 < self.n_stages()).then(|| not_done(WorkKind::InputGrad, stage + 1)).flatten()),
            WorkKind::WeightGrad => not_done(WorkKind::InputGrad, stage),
        }
    }

    /// Where a table over stages and micro-batches has this pair.
    pub(super) fn index(&self, stage: usize, micro_batch: u64) -> usize {
        stage * self.micro_batches as usize + micro_batch as usize
    }
}

/// Every stage is on one of so many ranks.
pub(super) fn check_placement(rank_of: &[usize], ranks: usize) -> Result<(), ScheduleError> {
    match rank_of.iter().copied().enumerate().find(|&(_, rank)| rank >= ranks) {
        Some((stage, rank)) => Err(ScheduleError::NoSuchRank { stage, rank, ranks }),
        None => Ok(()),
    }
}

/// What the work does, as bits.
fn bits(kind: WorkKind) -> u8 {
    match kind {
        WorkKind::Forward => FORWARD,
        WorkKind::Backward => INPUT_GRAD | WEIGHT_GRAD,
        WorkKind::InputGrad => INPUT_GRAD,
        WorkKind::WeightGrad => WEIGHT_GRAD,
    }
}
