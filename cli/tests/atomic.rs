//! Whenever `compile` is stopped, readers of its folder find the old plan or the new one, whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use trainc::{CompileOptions, ModelOptions, check, check_twin, compile, files};
use trainc_backend::{FolderFiles, Replacement, write_files, write_files_stepwise};

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the workspace").join("testdata").join(path)
}

fn options(micro_batches: u64) -> CompileOptions {
    let model = ModelOptions {
        model: testdata("models/vit.onnx"),
        bindings: [("*".to_owned(), 2)].into(),
        micro_batches: Some(micro_batches),
        ..ModelOptions::default()
    };
    CompileOptions { model, cluster: testdata("cli/one-t4.toml"), ..CompileOptions::default() }
}

/// The micro-batches of the plan in a folder, after everything that `verify` does has passed.
fn verified(folder: &Path) -> u64 {
    let checked = check(folder, None).unwrap_or_else(|failure| panic!("{}: {failure}", folder.display()));
    check_twin(folder, checked.plan.plan()).expect("both forms hold one plan");
    checked.plan.plan().micro_batches
}

/// What is written for so many micro-batches.
fn content(micro_batches: u64, out: &Path) -> Vec<(&'static str, Vec<u8>)> {
    let compiled = compile(&options(micro_batches)).expect("the plan fits");
    files(&compiled, &options(micro_batches), out).expect("the requests can be made")
}

fn write_all(
    out: &Path,
    content: &[(&str, Vec<u8>)],
    replacement: Replacement,
    go_on: &mut dyn FnMut() -> bool,
) -> bool {
    let files: Vec<(&str, &[u8])> = content.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    let files = FolderFiles { files: &files, owned: &[] };
    write_files_stepwise(out, &files, replacement, go_on).expect("the folder can be written")
}

#[test]
fn verify_finds_one_plan_after_every_step() {
    let root = tempfile::tempdir().expect("there is room for a folder");
    let out = root.path().join("out");
    let (old, new) = (content(2, &out), content(4, &out));
    for replacement in [Replacement::Exchange, Replacement::OneByOne] {
        let mut seen = Vec::new();
        for n_steps in 1.. {
            write_all(&out, &old, Replacement::Exchange, &mut || true);
            let mut n_left = n_steps;
            let mut go_on = || {
                n_left -= 1;
                n_left > 0
            };
            let done = write_all(&out, &new, replacement, &mut go_on);
            seen.push(verified(&out));
            if done {
                break;
            }
        }
        let first_new = seen.iter().position(|&n| n == 4).expect("it comes to its end");
        assert!(seen.iter().enumerate().all(|(i, &n)| n == if i < first_new { 2 } else { 4 }), "{seen:?}");
        assert!(first_new > 3 && seen.len() > first_new, "{seen:?}");
    }
    let none = FolderFiles { files: &[], owned: &[] };
    write_files(&out, &none).expect("the folder can be written");
    assert_eq!(fs::read_dir(root.path()).expect("it can be listed").count(), 1);
}

/// Two builds begin before the folder is there.
#[test]
fn a_folder_that_appears_while_it_is_written_is_replaced() {
    let root = tempfile::tempdir().expect("there is room for a folder");
    let out = root.path().join("out");
    let content = [("plan.json", b"mine".to_vec())];
    let mut go_on = || {
        if !out.exists() {
            fs::create_dir(&out).and_then(|()| fs::write(out.join("plan.json"), "theirs")).expect("there is room");
        }
        true
    };
    assert!(write_all(&out, &content, Replacement::Exchange, &mut go_on));
    assert_eq!(fs::read(out.join("plan.json")).expect("the file is there"), b"mine");
    assert_eq!(fs::read_dir(root.path()).expect("it can be listed").count(), 1, "no draft is left");
}

/// Killed at many moments of its run, from the start to the end.
#[test]
#[cfg(unix)]
fn a_killed_compile_leaves_one_plan() {
    let root = tempfile::tempdir().expect("there is room for a folder");
    let out = root.path().join("out");
    let old = content(2, &out);
    let start = || {
        Command::new(env!("CARGO_BIN_EXE_trainc"))
            .args(["compile", "--bind", "*=2", "--micro-batches", "4", "--quiet", "-o"])
            .arg(&out)
            .arg("--cluster")
            .arg(testdata("cli/one-t4.toml"))
            .arg(testdata("models/vit.onnx"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts")
    };
    let begun = Instant::now();
    assert!(start().wait().expect("it ends").success());
    let whole = begun.elapsed();
    assert_eq!(verified(&out), 4);
    for i in 1..=13u32 {
        write_all(&out, &old, Replacement::Exchange, &mut || true);
        fs::write(out.join("notes.txt"), "mine").expect("the file can be written");
        let mut child = start();
        // Most of the moments lie in the last third, when it writes.
        let at = if i <= 4 { whole * i / 8 } else { whole * (55 + 5 * (i - 4)) / 100 };
        std::thread::sleep(at.max(Duration::from_millis(1)));
        let _ = child.kill();
        child.wait().expect("it ends");
        let found = verified(&out);
        assert!(found == 2 || found == 4, "moment {i}: {found}");
        assert_eq!(fs::read_to_string(out.join("notes.txt")).ok().as_deref(), Some("mine"));
    }
    assert!(start().wait().expect("it ends").success());
    assert_eq!(verified(&out), 4);
    let left: Vec<_> = fs::read_dir(root.path()).expect("it can be listed").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["out"], "the next compile removes what killed ones left");
}
