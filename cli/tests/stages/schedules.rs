//! Plans under every schedule: gradients equal to the bit with those of one stage, no byte touched that was not planned.

use super::{Golden, SAMPLES, SEQ, bits, compiled_with, gradients, job};
use std::collections::BTreeMap;
use trainc::{CompileOptions, Compiled, Recompute};
use trainc_backend::Interleaving;

/// A schedule, the ranks, and the stages of each.
type Case = (&'static str, u64, u64);

/// A model compiled under a schedule.
fn compiled(model: &str, bind: &[(&str, u64)], micro_batches: u64, case: Case, recompute: Recompute) -> Compiled {
    let (schedule, ranks, loops) = case;
    let options = CompileOptions {
        stages: Some(ranks),
        recompute,
        schedule: schedule.parse().unwrap(),
        loops: Some(loops),
        ..CompileOptions::default()
    };
    compiled_with(model, bind, micro_batches, options)
}

/// Trains one step under each schedule in checked mode. Cases take turns in what they recompute.
fn check(family: &str, model: &str, bind: &[(&str, u64)], micro_batches: u64, cases: &[Case]) {
    let golden = Golden::open(family);
    let mut first: Option<BTreeMap<String, Vec<f32>>> = None;
    for (i, &case) in std::iter::once(&("1f1b", 1, 1)).chain(cases).enumerate() {
        let recompute = if (i as u64 + micro_batches).is_multiple_of(2) { Recompute::None } else { Recompute::Full };
        let what = format!("{model}, {micro_batches} micro-batches, {case:?}, {recompute:?}");
        let compiled = compiled(model, bind, micro_batches, case, recompute);
        let plan = compiled.plan.plan();
        let mut job = job(model, plan, true);
        job.step(&mut &golden, 1e-3, Interleaving::Threads).unwrap_or_else(|error| panic!("{what}: {error}"));
        let arenas: Vec<u64> = plan.prediction.ranks.iter().map(|r| r.arena_bytes).collect();
        assert_eq!(job.touched_bytes(), arenas, "{what}: bytes touched against bytes predicted");
        // Where there are a few small buffers only, their alignment outweighs everything else.
        for program in plan.programs.values().filter(|program| program.arena_bytes > 1 << 18) {
            let (arena, bound) = (program.arena_bytes, program.arena_lower_bound);
            assert!(arena * 100 <= bound * 102, "{what}, {}: arena {arena}, lower bound {bound}", program.name);
        }
        let found = gradients(plan, &job);
        match &first {
            None => first = Some(found),
            Some(first) => assert!(bits(first) == bits(&found), "{what}: gradients differ from one stage's"),
        }
    }
}

const CASES: [Case; 11] = [
    ("gpipe", 2, 1),
    ("gpipe", 4, 1),
    ("1f1b", 4, 1),
    ("interleaved", 2, 2),
    ("interleaved", 2, 3),
    ("breadth-first", 2, 2),
    ("breadth-first:2", 2, 3),
    ("zb-h1", 2, 1),
    ("zb-h1", 4, 1),
    ("zb-h1", 2, 2),
    ("zb-v", 2, 2),
];

/// GPT-2's samples in so many micro-batches.
fn check_gpt2(micro_batches: u64, batch: u64) {
    check("gpt2", "gpt2.onnx", &[("batch", batch), ("seq", SEQ)], micro_batches, &CASES);
}

#[test]
fn one_micro_batch_gives_equal_bits_under_every_schedule() {
    check_gpt2(1, SAMPLES);
}

#[test]
fn four_micro_batches_give_equal_bits_under_every_schedule() {
    check_gpt2(4, SAMPLES / 4);
}

#[test]
fn eight_micro_batches_give_equal_bits_under_every_schedule() {
    check_gpt2(8, SAMPLES / 8);
}

/// A number that no number of ranks divides.
#[test]
fn five_micro_batches_give_equal_bits_under_every_schedule() {
    check_gpt2(5, 1);
}

/// Encoder and decoder: the encoder's output goes to every stage of the decoder.
#[test]
fn an_encoder_feeds_a_decoder_under_every_schedule() {
    let cases = [&CASES[..], &[("auto", 2, 2)]].concat();
    check("t5", "t5.onnx", &[("batch", 1), ("source", 24), ("target", 16)], 3, &cases);
}

#[test]
fn drawn_interleavings_change_nothing_under_looped_and_divided_schedules() {
    let golden = Golden::open("gpt2");
    for case in [("interleaved", 2, 2), ("breadth-first", 2, 3), ("zb-h1", 4, 1), ("zb-v", 3, 2)] {
        let compiled = compiled("gpt2.onnx", &[("batch", 1), ("seq", SEQ)], 8, case, Recompute::Full);
        let run = |interleaving| {
            let mut job = job("gpt2.onnx", compiled.plan.plan(), false);
            job.step(&mut &golden, 1e-3, interleaving).expect("the step runs");
            gradients(compiled.plan.plan(), &job)
        };
        let threads = run(Interleaving::Threads);
        for seed in 0..3 {
            assert!(bits(&threads) == bits(&run(Interleaving::Drawn { seed })), "{case:?}, seed {seed}");
        }
    }
}
