//! Tests of the plan verifier: a plan written by hand, a broken plan for every rule, mutants against an interpreter.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod assembler;
mod interpreter;
mod model;
mod mutants;
mod mutation;
mod rules;
mod two_stages;
