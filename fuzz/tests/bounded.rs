//! Every input that once failed, then a fixed number of inputs for every target. The truth is what no input may do: panic,
//! or take memory out of proportion to its size.
#![allow(clippy::print_stdout, reason = "a test without a harness says what it did")]

use trainc_fuzz::{Counting, Session, TARGETS, Target, greedy_inputs, kept, run_once};

#[global_allocator]
static HEAP: Counting = Counting;

fn main() {
    let mut faults = Vec::new();
    for target in &TARGETS {
        let n_kept = regressions(target, &mut faults);
        let mut session = Session::new(target, 0);
        for _ in 0..target.n_bounded {
            if let Some(found) = session.step() {
                let fault = found.outcome.fault.unwrap_or_default();
                faults.push(format!("{}: input {} ({} bytes): {fault}", target.name, found.number, found.input.len()));
            }
        }
        println!("{}: {n_kept} kept inputs, {} more", target.name, target.n_bounded);
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

fn regressions(target: &'static Target, faults: &mut Vec<String>) -> usize {
    let kept = kept(target.name);
    for (name, input) in &kept {
        if let Some(fault) = run_once(target, input).fault {
            faults.push(format!("{}/{name}: {fault}", target.name));
        }
    }
    for (name, input) in greedy_inputs(target.name) {
        let outcome = run_once(target, &input);
        println!("{}/{name}: {} bytes take {} KiB", target.name, input.len(), outcome.peak >> 10);
        if let Some(fault) = outcome.fault {
            faults.push(format!("{} {name}: {fault}", target.name));
        }
    }
    kept.len()
}
