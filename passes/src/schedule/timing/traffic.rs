//! Gathering weights and reducing gradients of sharded data parallelism beside the work of a rank.

use crate::schedule::{Work, WorkKind};

/// How long gathered weights stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resident {
    /// For one use: each forward and backward gathers.
    EachUse,
    /// Until the rank turns to another stage.
    One,
    /// Until its forwards turn to another stage, or its backwards; one stage is resident for each of the two.
    ForwardAndBackward,
    /// For the step.
    All,
}

/// When gradients are reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// After each backward.
    EachBackward,
    /// When the rank turns to another stage's gradients: the sums are kept sharded.
    EachTurn,
    /// After the last backward of a stage: the sums are kept whole.
    Once,
}

/// Sharded data parallelism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Time to gather each stage's weights.
    pub gather_ps: Vec<u64>,
    /// Time to reduce each stage's gradients.
    pub reduce_ps: Vec<u64>,
    /// How long gathered weights stay.
    pub resident: Resident,
    /// When gradients are reduced.
    pub reduce: Reduce,
    /// Buffers for each resident stage, at least 1, and as many for gradients: with 2 the next weights are gathered and the
    /// last gradients reduced while others are in use.
    pub buffers: usize,
}

/// Consecutive works of a rank on one stage that share a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    stage: usize,
    /// Which of the buffers it takes turns in.
    lane: usize,
    /// Places of its first and last work in the rank's order.
    first: usize,
    last: usize,
}

/// The runs of a rank over gathered weights, by their first work. Weight gradients need no weights.
fn weight_runs(works: &[Work], resident: Resident) -> Vec<Run> {
    let uses = works.iter().enumerate().filter(|(_, work)| work.kind != WorkKind::WeightGrad);
    let lane = |work: &Work| match resident {
        Resident::EachUse | Resident::One => 0,
        Resident::ForwardAndBackward => usize::from(work.kind != WorkKind::Forward),
        Resident::All => work.stage,
    };
    runs(uses, lane, resident == Resident::EachUse)
}

/// The runs of a rank over gradient buffers, by their first work.
fn gradient_runs(works: &[Work], reduce: Reduce) -> Vec<Run> {
    let gradients = works.iter().enumerate().filter(|(_, work)| work.kind.adds_gradients());
    let lane = |work: &Work| if reduce == Reduce::Once { work.stage } else { 0 };
    runs(gradients, lane, reduce == Reduce::EachBackward)
}

/// Divides works into runs: a lane is left when it turns to another stage, or after each work.
fn runs<'a>(works: impl Iterator<Item = (usize, &'a Work)>, lane_of: impl Fn(&Work) -> usize, each: bool) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut current: Vec<Option<usize>> = Vec::new();
    for (place, work) in works {
        let lane = lane_of(work);
        if current.len() <= lane {
            current.resize(lane + 1, None);
        }
        match current[lane] {
            Some(run) if runs[run].stage == work.stage && !each => runs[run].last = place,
            _ => {
                current[lane] = Some(runs.len());
                runs.push(Run { stage: work.stage, lane, first: place, last: place });
            }
        }
    }
    runs
}

/// The stream of one rank.
pub(super) struct Stream<'a> {
    traffic: &'a Traffic,
    weights: Vec<Run>,
    gradients: Vec<Run>,
    /// When the weights of a run are there.
    gathered: Vec<u64>,
    /// When the gradients of a run are reduced.
    reduced: Vec<u64>,
    /// The run that takes over the buffer of a run.
    next_weights: Vec<Option<usize>>,
    /// The run whose buffer a run takes over.
    before_gradients: Vec<Option<usize>>,
    /// Runs by their first and by their last work.
    weights_at: (usize, Vec<Option<usize>>),
    gradients_at: (usize, Vec<Option<usize>>),
    /// When it is free.
    pub(super) free: u64,
}

impl<'a> Stream<'a> {
    /// The stream of a rank, with the gathers that begin with the step.
    pub(super) fn new(works: &[Work], traffic: &'a Traffic) -> Self {
        let weights = weight_runs(works, traffic.resident);
        let gradients = gradient_runs(works, traffic.reduce);
        let buffers = traffic.buffers.max(1);
        let before_weights = taken_over(&weights, buffers);
        let mut next_weights = vec![None; weights.len()];
        for (run, before) in before_weights.iter().enumerate() {
            if let Some(before) = before {
                next_weights[*before] = Some(run);
            }
        }
        let mut stream = Self {
            traffic,
            gathered: vec![0; weights.len()],
            reduced: vec![0; gradients.len()],
            next_weights,
            before_gradients: taken_over(&gradients, buffers),
            weights_at: (0, by_last(&weights, works.len())),
            gradients_at: (0, by_last(&gradients, works.len())),
            weights,
            gradients,
            free: 0,
        };
        for (run, before) in before_weights.iter().enumerate() {
            if before.is_none() {
                stream.gather(run, 0);
            }
        }
        stream
    }

    /// When the work at this place, the next in order, can begin as far as the stream is concerned.
    pub(super) fn ready(&self, place: usize) -> u64 {
        let weights = self.weights.get(self.weights_at.0).filter(|run| run.first == place);
        let gradients = self.gradients.get(self.gradients_at.0).filter(|run| run.first == place);
        let weights = weights.map_or(0, |_| self.gathered[self.weights_at.0]);
        let gradients = gradients.and_then(|_| self.before_gradients[self.gradients_at.0]);
        weights.max(gradients.map_or(0, |run| self.reduced[run]))
    }

    /// The work at this place is done.
    pub(super) fn done(&mut self, place: usize, end: u64) {
        if self.weights.get(self.weights_at.0).is_some_and(|run| run.first == place) {
            self.weights_at.0 += 1;
        }
        if self.gradients.get(self.gradients_at.0).is_some_and(|run| run.first == place) {
            self.gradients_at.0 += 1;
        }
        if let Some(next) = self.weights_at.1[place].and_then(|run| self.next_weights[run]) {
            self.gather(next, end);
        }
        if let Some(run) = self.gradients_at.1[place] {
            self.free = self.free.max(end).saturating_add(self.traffic.reduce_ps[self.gradients[run].stage]);
            self.reduced[run] = self.free;
        }
    }

    fn gather(&mut self, run: usize, from: u64) {
        self.free = self.free.max(from).saturating_add(self.traffic.gather_ps[self.weights[run].stage]);
        self.gathered[run] = self.free;
    }
}

/// For each run the one whose buffer it takes over.
fn taken_over(runs: &[Run], buffers: usize) -> Vec<Option<usize>> {
    let lanes = runs.iter().map(|run| run.lane + 1).max().unwrap_or(0);
    let mut of_lane: Vec<Vec<usize>> = vec![Vec::new(); lanes];
    let mut before = Vec::with_capacity(runs.len());
    for (i, run) in runs.iter().enumerate() {
        let lane = &mut of_lane[run.lane];
        before.push(lane.len().checked_sub(buffers).map(|place| lane[place]));
        lane.push(i);
    }
    before
}

/// The run that ends with each work.
fn by_last(runs: &[Run], n_works: usize) -> Vec<Option<usize>> {
    let mut by_last = vec![None; n_works];
    for (i, run) in runs.iter().enumerate() {
        by_last[run.last] = Some(i);
    }
    by_last
}
