//! Outputs appear whole or not at all.

use std::fs;
use std::path::PathBuf;
use trainc_backend::write_files;

/// An empty directory of this test.
fn scratch(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn names(path: &std::path::Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_new_directory_appears_with_all_files() {
    let root = scratch("new");
    let out = root.join("deep/out");
    write_files(&out, &[("a.json", b"one"), ("b.pb", b"two")]).unwrap();
    assert_eq!(names(&out), ["a.json", "b.pb"]);
    assert_eq!(fs::read(out.join("b.pb")).unwrap(), b"two");
    assert_eq!(names(&root.join("deep")), ["out"]);
}

#[test]
fn files_are_replaced_and_others_stay() {
    let out = scratch("replace");
    fs::write(out.join("a.json"), "old and longer").unwrap();
    fs::write(out.join("notes.txt"), "mine").unwrap();
    write_files(&out, &[("a.json", b"new"), ("b.pb", b"two")]).unwrap();
    assert_eq!(names(&out), ["a.json", "b.pb", "notes.txt"]);
    assert_eq!(fs::read(out.join("a.json")).unwrap(), b"new");
    assert_eq!(fs::read(out.join("notes.txt")).unwrap(), b"mine");
}

/// A file cannot take the place of a directory: the last of the moves fails, and nothing else is left behind.
#[test]
fn failures_are_named_and_leave_no_drafts() {
    let out = scratch("failing");
    fs::create_dir(out.join("b.pb")).unwrap();
    let error = write_files(&out, &[("a.json", b"new"), ("b.pb", b"two")]).unwrap_err().remove(0);
    assert_eq!(error.code, "E0706");
    assert!(error.message.starts_with("cannot write `") && error.message.contains("b.pb`: "), "{}", error.message);
    assert!(error.help.is_some());
    assert!(names(&out).iter().all(|name| !name.ends_with(".part")), "{:?}", names(&out));
}

/// Where a file is, no directory can be made; unlike permissions, this holds for every user.
#[test]
fn a_directory_under_a_file_is_refused() {
    let root = scratch("under_a_file");
    fs::write(root.join("file"), "").unwrap();
    let error = write_files(&root.join("file/out"), &[("a.json", b"new")]).unwrap_err().remove(0);
    assert_eq!(error.code, "E0706");
    assert!(
        error.message.ends_with(": not a directory") || error.message.ends_with(": file exists"),
        "{}",
        error.message
    );
    assert_eq!(names(&root), ["file"]);
}
