//! Golden files: every file of `testdata/{parse,verify,transform,cli}` is a test that says how it is run.
//!
//! The first line of an `.ir` file is `; test: COMMAND` (see `runner::commands`); the input follows. What a command has
//! to say about a line of the input stands below that line (`; error[V06]: ..`), everything else below a line
//! `; expect:`. A `.cmd` file holds command lines of trainc with what they print (see `runner::shell`). Everything that
//! is expected is exact: missing and extra lines fail. `cargo bless` rewrites it in place.

#[allow(dead_code, reason = "the table of operators needs what is tested, not the tests")]
#[path = "gradients/elementwise.rs"]
mod elementwise;
#[allow(dead_code, reason = "the table of operators needs what is tested, not the tests")]
#[path = "gradients/finite.rs"]
mod finite;
mod runner;
#[path = "gradients/structured.rs"]
mod structured;

use runner::files::{bless, check_all};
use runner::{commands, coverage, fusion, shell, workspace};
use std::path::Path;

#[test]
fn ir_files() {
    let run = |path: &Path, text: &str| {
        if path.extension().is_none_or(|extension| extension != "ir") {
            return Err("no golden file: its name does not end in .ir".to_owned());
        }
        commands::rewrite(path, text)
    };
    check_all(&["parse", "verify", "transform"].map(|folder| workspace().join("testdata").join(folder)), run);
}

#[test]
fn cli_files() {
    let folder = workspace().join("testdata/cli");
    let run = |path: &Path, text: &str| {
        if path.extension().is_some_and(|extension| extension == "cmd") {
            return shell::rewrite(text);
        }
        // Anything else is the input of a command, so one of them names it.
        let name = path.file_name().expect("a file has a name").to_string_lossy();
        let named = shell::files(&folder).iter().any(|text| text.contains(&format!("$TESTDATA/cli/{name}")));
        if named { Ok(text.to_owned()) } else { Err("no .cmd file names it".to_owned()) }
    };
    check_all(std::slice::from_ref(&folder), run);
}

#[test]
fn tables_of_operators() {
    let sample = workspace().join("testdata/ops/every-op.ir");
    let sample = std::fs::read_to_string(sample).expect("the sample of every operator is there");
    let run = |path: &Path, text: &str| {
        if path.ends_with("docs/ops.md") {
            coverage::table(&sample)
        } else if path.ends_with("docs/fusion.md") {
            fusion::table()
        } else {
            Ok(text.to_owned())
        }
    };
    for name in ["docs/ops.md", "docs/fusion.md"] {
        assert!(workspace().join(name).exists(), "{name} is not there");
    }
    check_all(&[workspace().join("docs")], run);
}

#[test]
fn nobody_blesses_in_continuous_integration() {
    assert!(!(bless() && std::env::var_os("CI").is_some()), "BLESS is set where CI is");
}
