//! Traces of replayed plans: every row has a name, slices of a row do not overlap, arrows have two ends.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use trainc::{CompileOptions, ModelOptions, Recompute, Replayed, compile, replay, trace, write};
use trainc_backend::trace_to_json;

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the workspace").join("testdata").join(path)
}

fn replayed(stages: u64) -> Replayed {
    let bindings = [("batch".to_owned(), 2), ("seq".to_owned(), 16)].into();
    let model = ModelOptions {
        model: testdata("models/gpt2.onnx"),
        bindings,
        micro_batches: Some(5),
        ..ModelOptions::default()
    };
    let cluster = testdata("clusters/two-nodes.toml");
    let options = CompileOptions {
        model,
        cluster,
        stages: Some(stages),
        recompute: Recompute::Full,
        ..CompileOptions::default()
    };
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let out = folder.path().join("out");
    write(&compile(&options).expect("the plan fits"), &options, &out).expect("the folder can be written");
    replay(&out, &options.cluster, None).expect("the plan can be replayed")
}

/// Picoseconds, read from the digits of the text: a float would round them.
fn ps(line: &str, key: &str) -> Option<u64> {
    let text = line.split(&format!("\"{key}\":")).nth(1)?.split([',', '}']).next()?;
    let (whole, part) = text.split_once('.').expect("times have decimals");
    assert_eq!(part.len(), 6, "{line}");
    Some(format!("{whole}{part}").parse().expect("digits"))
}

#[test]
fn rows_are_named_and_hold_one_thing_at_a_time() {
    for stages in [1, 2, 4] {
        let replayed = replayed(stages);
        let text = trace_to_json(&trace(&replayed));
        let document: Value = serde_json::from_str(&text).expect("a trace is JSON");
        let events = document["traceEvents"].as_array().expect("it holds events");
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("{\"ph\"")).collect();
        assert_eq!(lines.len(), events.len(), "an event per line");

        let of = |phase: &'static str| events.iter().zip(&lines).filter(move |(event, _)| event["ph"] == phase);
        let row = |event: &Value| (event["pid"].as_u64().expect("a process"), event["tid"].as_u64());
        let named: BTreeSet<_> =
            of("M").filter(|(event, _)| event["name"] == "thread_name").map(|(event, _)| row(event)).collect();
        let processes = of("M").filter(|(event, _)| event["name"] == "process_name").count();
        assert_eq!(processes as u64, stages);

        let mut slices: BTreeMap<_, Vec<(u64, u64)>> = BTreeMap::new();
        for (event, line) in of("X") {
            assert!(named.contains(&row(event)), "{event}");
            let start = ps(line, "ts").expect("a start");
            slices.entry(row(event)).or_default().push((start, start + ps(line, "dur").expect("a duration")));
        }
        for (row, slices) in &mut slices {
            slices.sort_unstable();
            assert!(slices.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{row:?} overlaps");
        }
        let last = slices.values().flatten().map(|slice| slice.1).max();
        assert_eq!(last, Some(replayed.timeline.step_ps));

        let mut ends: BTreeMap<u64, Vec<(&str, u64)>> = BTreeMap::new();
        for (phase, (event, line)) in ["s", "f"].into_iter().flat_map(|phase| of(phase).map(move |of| (phase, of))) {
            let at = ps(line, "ts").expect("a time");
            assert!(slices[&row(event)].iter().any(|slice| slice.0 == at), "{event} is at no slice");
            ends.entry(event["id"].as_u64().expect("an id")).or_default().push((phase, at));
        }
        assert!(ends.values().all(|ends| ends.iter().map(|end| end.0).eq(["s", "f"]) && ends[0].1 <= ends[1].1));
        let transfers = replayed.timeline.transfers.iter().map(|transfer| transfer.sides.len() - 1).sum::<usize>();
        assert_eq!(ends.len(), transfers);
        assert_eq!(ends.is_empty(), stages == 1);
    }
}

#[test]
fn equal_plans_give_equal_traces() {
    assert_eq!(trace_to_json(&trace(&replayed(2))), trace_to_json(&trace(&replayed(2))));
}
