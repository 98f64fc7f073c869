//! Every mutant of the hand-written plan is rejected, or computes what the training graph asks for in every order that
//! was tried. The judge is the interpreter, which knows nothing of the verifier.

use crate::interpreter::{Outcome, expected, run};
use crate::mutants::mutants;
use crate::{model, two_stages};
use trainc_ir::TrainingGraph;
use trainc_ir::plan::{Plan, verify};

/// Runs a plan in several orders; `Err` says what went wrong in one.
fn runs_right(plan: &Plan, expected: &Outcome, orders: u64) -> Result<(), String> {
    for seed in 0..orders {
        let outcome = run(plan, seed).ok_or_else(|| format!("seed {seed}: does not end"))?;
        for ((rank, name), bytes) in &outcome {
            if expected.get(name) != Some(bytes) {
                return Err(format!("seed {seed}: `{name}` of rank {rank} is wrong"));
            }
        }
        if let Some(name) = expected.keys().find(|name| !outcome.keys().any(|(_, held)| held == *name)) {
            return Err(format!("seed {seed}: nobody holds `{name}`"));
        }
    }
    Ok(())
}

fn judge(plan: &Plan, training: &TrainingGraph) -> Option<Result<(), String>> {
    verify(plan, training).ok()?;
    Some(runs_right(plan, &expected(training, plan.micro_batches), 6))
}

#[test]
fn the_plan_is_accepted_and_runs_right() {
    let (plan, training) = (two_stages::plan(), model::training());
    if let Err(errors) = verify(&plan, &training) {
        panic!("{errors:#?}");
    }
    assert_eq!(runs_right(&plan, &expected(&training, 3), 100), Ok(()));
}

/// A step of a hundred thousand kernels is checked in well under a second where the build is optimized.
#[test]
fn long_plans_are_accepted() {
    let (plan, training) = (two_stages::plan_of(4000), model::training());
    if let Err(errors) = verify(&plan, &training) {
        panic!("{errors:#?}");
    }
}

#[test]
fn mutants_are_rejected_or_run_right() {
    let (plan, training) = (two_stages::plan(), model::training());
    let document = serde_json::to_value(&plan).unwrap();
    let mutants = mutants(&document);
    let (mut unreadable, mut rejected, mut harmless) = (0, 0, Vec::new());
    let mut wrong = Vec::new();
    // All of them take a while where nothing is optimized; there every third is judged.
    let step = if cfg!(debug_assertions) { 3 } else { 1 };
    for mutant in mutants.iter().step_by(step) {
        let Ok(changed) = serde_json::from_value::<Plan>(mutant.apply(&document)) else {
            unreadable += 1;
            continue;
        };
        match judge(&changed, &training) {
            None => rejected += 1,
            Some(Ok(())) => harmless.push(mutant.describe()),
            Some(Err(message)) => wrong.push(format!("{}: {message}", mutant.describe())),
        }
    }
    println!("{} mutants: {unreadable} unreadable, {rejected} rejected, {} harmless", mutants.len(), harmless.len());
    println!("{}", harmless.join("\n"));
    assert!(wrong.is_empty(), "accepted, but wrong:\n{}", wrong.join("\n"));
    assert!(rejected * step > 3000, "expected thousands of rejected mutants, found {rejected}");
    assert!(harmless.len() * 4 < rejected, "too many mutants change nothing for the test to mean much");
}
