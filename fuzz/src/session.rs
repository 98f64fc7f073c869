//! A run of a target over many inputs.

use crate::limit::{Outcome, run_once};
use crate::mutate::{Mutator, Rng};
use crate::target::Target;

/// An input that a target fails on.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its number in the session.
    pub number: u64,
    /// Its bytes.
    pub input: Vec<u8>,
    /// What the target did.
    pub outcome: Outcome,
}

/// Inputs for a target, one after the other: seeds as they are, then mutants. Equal seeds of the generator give equal
/// inputs on every machine.
#[derive(Debug)]
pub struct Session {
    target: &'static Target,
    seeds: Vec<Vec<u8>>,
    rng: Rng,
    n_done: u64,
}

impl Session {
    /// A session of a target.
    pub fn new(target: &'static Target, seed: u64) -> Self {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "the target {} has no seeds", target.name);
        Self { target, seeds, rng: Rng::new(seed), n_done: 0 }
    }

    /// The next input.
    pub fn input(&mut self) -> Vec<u8> {
        let number = self.n_done;
        self.n_done += 1;
        match self.seeds.get(usize::try_from(number).unwrap_or(usize::MAX)) {
            Some(seed) => seed.clone(),
            None => Mutator { target: self.target, seeds: &self.seeds }.mutant(&mut self.rng),
        }
    }

    /// Runs the next input; gives it back where the target fails on it.
    pub fn step(&mut self) -> Option<Finding> {
        let input = self.input();
        let outcome = run_once(self.target, &input);
        outcome.fault.is_some().then_some(Finding { number: self.n_done - 1, input, outcome })
    }
}
