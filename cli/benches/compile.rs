//! How long compiling takes: `cargo bench -p trainc --bench compile`. Recorded results are in `docs/benchmarks.md`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use trainc::{CompileOptions, ModelOptions, Recompute, compile};
use trainc_backend::plan_to_json;

const RUNS: usize = 9;

fn main() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    for (model, batch, seq, micro_batches, stages) in [
        ("gpt2.onnx", 2, 64, 4, Some(2)),
        ("gpt2_12l_768_noweights.onnx", 4, 1024, 8, None),
        ("gpt2_12l_768_noweights.onnx", 4, 1024, 8, Some(4)),
        ("gpt2_12l_768_noweights.onnx", 4, 1024, 256, Some(4)),
    ] {
        let options = CompileOptions {
            model: ModelOptions {
                model: testdata.join("models").join(model),
                bindings: BTreeMap::from([("batch".to_owned(), batch), ("seq".to_owned(), seq)]),
                micro_batches: Some(micro_batches),
                ..ModelOptions::default()
            },
            cluster: testdata.join("clusters/two-nodes.toml"),
            profile: None,
            stages,
            recompute: Recompute::Fit,
            ..CompileOptions::default()
        };
        let mut times: Vec<Duration> = (0..RUNS)
            .map(|_| {
                let start = Instant::now();
                let compiled = compile(&options).expect("the plan fits");
                assert!(!plan_to_json(compiled.plan.plan()).is_empty());
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        let [least, median, most] = [times[0], times[RUNS / 2], times[RUNS - 1]];
        let stages = stages.map_or_else(|| "free".to_owned(), |n| n.to_string());
        report(&format!(
            "{model} batch {batch} seq {seq}, {micro_batches} micro-batches, stages {stages}: \
             median {median:.1?} ({least:.1?} to {most:.1?})"
        ));
    }
}

#[expect(clippy::print_stdout, reason = "a bench reports on standard output")]
fn report(line: &str) {
    println!("{line}");
}
