//! Checks that a graph means something: numbered rules, all violations reported, and a witness for those that pass.
//!
//! The rules are listed at [`Rule`]. V01 to V12 hold for every graph, V13 to V22 for training graphs, whose two graphs
//! also keep the others. That an operator is opaque is no violation: it can be estimated.

mod error;
mod roles;
mod structure;
mod training;
mod types;
mod update;

pub use error::{Entity, Part, Rule, VerifyError};

use crate::graph::Graph;
use crate::text::{print_training_with, print_with};
use crate::training::TrainingGraph;
use error::Findings;
use std::ops::Deref;

/// A graph that keeps rules V01 to V12. Analyses and backends take nothing else; a transform takes it apart and the
/// result is verified again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified(Graph);

impl Verified {
    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.0
    }

    /// The graph, to be changed.
    pub fn into_inner(self) -> Graph {
        self.0
    }
}

impl Deref for Verified {
    type Target = Graph;
    fn deref(&self) -> &Graph {
        &self.0
    }
}

/// A training graph that keeps all rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedTraining(TrainingGraph);

impl VerifiedTraining {
    /// The training graph.
    pub fn graph(&self) -> &TrainingGraph {
        &self.0
    }

    /// The training graph, to be changed.
    pub fn into_inner(self) -> TrainingGraph {
        self.0
    }
}

impl Deref for VerifiedTraining {
    type Target = TrainingGraph;
    fn deref(&self) -> &TrainingGraph {
        &self.0
    }
}

/// Checks rules V01 to V12.
///
/// # Errors
/// The graph, and every violation, ordered by entity.
#[allow(clippy::result_large_err, reason = "the caller gets back what it gave, once per pass")]
pub fn verify(graph: Graph) -> Result<Verified, (Graph, Vec<VerifyError>)> {
    let mut errors = check(&graph, Part::Whole);
    if errors.is_empty() {
        return Ok(Verified(graph));
    }
    errors.sort();
    Err((graph, errors))
}

/// Checks all rules.
///
/// # Errors
/// The training graph, and every violation, ordered by entity. V13 to V22 are checked where the graphs keep the rest.
#[allow(clippy::result_large_err, reason = "the caller gets back what it gave, once per pass")]
pub fn verify_training(training: TrainingGraph) -> Result<VerifiedTraining, (TrainingGraph, Vec<VerifyError>)> {
    let mut errors = check(&training.step, Part::Step);
    errors.extend(check(&training.update, Part::Update));
    if errors.is_empty() {
        let mut step = Findings { part: Part::Step, errors };
        training::check(&training, &mut step);
        let mut update = Findings { part: Part::Update, errors: step.errors };
        update::check(&training, &mut update);
        errors = update.errors;
    }
    if errors.is_empty() {
        return Ok(VerifiedTraining(training));
    }
    errors.sort();
    Err((training, errors))
}

/// The graph in text form with every error below the line that it is about.
pub fn print_errors(graph: &Graph, errors: &[VerifyError]) -> String {
    print_with(graph, |entity| errors.iter().filter(|error| error.at == entity).map(ToString::to_string).collect())
}

/// The training graph in text form with every error below the line that it is about.
pub fn print_training_errors(training: &TrainingGraph, errors: &[VerifyError]) -> String {
    print_training_with(training, |in_update, entity| {
        let at = |error: &&VerifyError| error.at == entity && (error.part == Part::Update) == in_update;
        errors.iter().filter(at).map(ToString::to_string).collect()
    })
}

fn check(graph: &Graph, part: Part) -> Vec<VerifyError> {
    let mut findings = Findings { part, errors: Vec::new() };
    structure::check(graph, &mut findings);
    types::check(graph, &mut findings);
    roles::check(graph, &mut findings);
    findings.errors
}

#[cfg(test)]
mod tests;
