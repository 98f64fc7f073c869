//! Every line that trainc prints with `--message-format json` fits `docs/messages.schema.json`.

use judge::judge;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "../../backend/tests/emit/judge.rs"]
mod judge;

const SCHEMA: &str = include_str!("../../docs/messages.schema.json");

fn testdata(path: &str) -> String {
    let cli = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path: PathBuf = cli.parent().expect("the crate is in the workspace").join("testdata").join(path);
    path.display().to_string()
}

/// The lines of standard output and standard error, and the exit code.
fn run(folder: &Path, arguments: &[&str]) -> (Vec<String>, Vec<String>, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_trainc"))
        .args(arguments)
        .args(["--message-format", "json"])
        .current_dir(folder)
        .output()
        .expect("the program starts");
    let lines = |bytes: Vec<u8>| {
        String::from_utf8(bytes).expect("output is text").lines().map(str::to_owned).collect::<Vec<String>>()
    };
    (lines(output.stdout), lines(output.stderr), output.status.code())
}

/// Whether a line fits one definition of the schema.
fn fits(schema: &Value, definition: &str, line: &str) -> Result<(), String> {
    let value: Value = serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
    judge(schema, schema, &value, "")?;
    judge(schema, &schema["$defs"][definition], &value, "")
}

#[test]
fn every_line_fits_the_schema() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let (model, vit) = (testdata("models/gpt2.onnx"), testdata("models/vit.onnx"));
    let (cluster, broken) = (testdata("clusters/mixed.toml"), testdata("clusters/bad/wrong-types.toml"));
    let plan = ["--bind", "batch=2,seq=8", "--micro-batches", "2", "--pp", "2", "--cluster", &cluster, "-o"];
    let compile = |out| [&["compile", model.as_str()], &plan[..], &[out]].concat();
    let other = [compile("b"), vec!["--recompute", "full"]].concat();
    for (arguments, expected, code) in [
        (&compile("a")[..], &["summary"][..], 0),
        (&other[..], &["summary"], 0),
        (&["estimate", &vit, "--bind", "*=2", "--cluster", &cluster], &["summary"], 0),
        (&["run", "a", "--steps", "2", "--checked"], &["step", "step", "touched"], 0),
        (&["verify", "a"], &["verified"], 0),
        (&["inspect", &vit, "--bind", "*=2"], &["inspected"], 0),
        (&["inspect", &testdata("models/mixtral.onnx"), "--bind", "*=16"], &["inspected"], 0),
        (&["simulate", "a", "--cluster", &cluster], &["simulated"], 0),
        (&["simulate", "--uniform", "4,1,8", "--schedule", "1f1b"], &["schedule"], 0),
        (&["simulate", "--stages", &testdata("cli/stages.toml")], &["order"], 0),
        (&["cluster", "show", &cluster], &["cluster"], 0),
        (&["cluster", "show", &testdata("clusters/regions.toml")], &["cluster"], 0),
        (&["cluster", "import", &testdata("clusters/everything.toml"), "-o", "c.toml"], &["cluster"], 0),
        (&["explain", "E0117"], &["explanation"], 0),
        (&["inspect", &model], &[], 1),
        (&["estimate", &vit, "--bind", "*=2", "--cluster", &broken], &[], 1),
        (&["estimate", &vit, "--bind", "*=2", "--cluster", &cluster, "--pp", "99"], &[], 3),
        (&["verify", "a", "--model", &vit], &[], 1),
        (&["compile"], &[], 2),
        (&["inspect", &model, "--bnid", "a=1"], &[], 2),
        (&["diff", "a", "b", "--fail-if", "peak>2%"], &[], 2),
    ] {
        let (out, err, found) = run(folder.path(), arguments);
        assert_eq!(found, Some(code), "{arguments:?}: {err:?}");
        assert_eq!(out.len(), expected.len(), "{arguments:?}: {out:?}");
        assert_eq!(code == 0, err.iter().all(|line| !line.contains("\"severity\":\"error\"")), "{arguments:?}");
        assert!(code == 0 || !err.is_empty(), "{arguments:?} says nothing");
        for (line, definition) in out.iter().zip(expected).chain(err.iter().zip(std::iter::repeat(&"diagnostic"))) {
            fits(&schema, definition, line).unwrap_or_else(|why| panic!("{arguments:?}: {definition}: {why}"));
        }
    }
    let (out, _, code) = run(folder.path(), &["diff", "a", "b", "--fail-if", "exposed-recompute>0"]);
    assert_eq!(code, Some(1));
    let (last, differences) = out.split_last().expect("there are lines");
    fits(&schema, "compared", last).expect("the last line counts");
    assert!(differences.len() > 3);
    differences.iter().for_each(|line| fits(&schema, "difference", line).expect("a difference"));
}

/// What a schema does not refuse it does not describe.
#[test]
fn other_lines_do_not_fit() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    for line in [
        "{}",
        r#"{"code":"E1","severity":"fatal","message":"m","labels":[],"notes":[],"help":null}"#,
        r#"{"code":"E1","severity":"error","message":"m","labels":[],"notes":[]}"#,
        r#"{"step":0,"loss":1.0,"loss_sum":1.0,"loss_count":1}"#,
    ] {
        let value: Value = serde_json::from_str(line).expect("it is JSON");
        assert!(judge(&schema, &schema, &value, "").is_err(), "{line}");
    }
}

#[test]
fn every_shell_gets_a_script_that_knows_the_options() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = Command::new(env!("CARGO_BIN_EXE_trainc")).args(["completions", shell]).output();
        let output = output.expect("the program starts");
        let script = String::from_utf8(output.stdout).expect("a script is text");
        assert!(output.status.success() && script.contains("dep-file") && script.contains("simulate"), "{shell}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_named() {
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    for arguments in [&["explain"][..], &["--help"], &["completions", "bash"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_trainc"))
            .args(arguments)
            .stdout(full())
            .output()
            .expect("the program starts");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(error.contains("error[E1002]: cannot write to standard output: no space left"), "{error}");
    }
}

/// A pipe has no end that could be mapped, and opening it would wait for a writer.
#[test]
#[cfg(unix)]
fn models_that_are_no_files_are_refused_at_once() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let pipe = folder.path().join("pipe.onnx");
    let made = Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success());
    let model = pipe.display().to_string();
    if made {
        let (_, err, code) = run(folder.path(), &["estimate", &model, "--cluster", &testdata("clusters/mixed.toml")]);
        assert_eq!(code, Some(1));
        assert!(err[0].contains("\"code\":\"E0101\"") && err[0].contains("it is no regular file"), "{err:?}");
    }
    let (_, err, code) =
        run(folder.path(), &["compile", ".", "--cluster", &testdata("clusters/mixed.toml"), "-o", "o"]);
    assert_eq!(code, Some(1));
    assert!(err[0].contains("it is a folder"), "{err:?}");
}
