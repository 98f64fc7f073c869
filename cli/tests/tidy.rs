//! Rules of layout that no compiler checks: file sizes, first lines, crate edges, folders for passes, tests for rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The longest source file, tests included.
const MAX_LINES: usize = 500;

/// Files that may be longer, each with the reason.
const LONGER: [(&str, &str); 0] = [];

/// Which crates of the workspace may depend on which.
const EDGES: [(&str, &[&str]); 6] = [
    ("ir", &[]),
    ("frontend", &["trainc-ir"]),
    ("passes", &["trainc-ir"]),
    ("backend", &["trainc-ir"]),
    ("cli", &["trainc-ir", "trainc-frontend", "trainc-passes", "trainc-backend"]),
    ("fuzz", &["trainc-ir", "trainc-frontend", "trainc-passes", "trainc-backend"]),
];

fn workspace() -> PathBuf {
    let cli = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    cli.parent().expect("the crate is in a folder of the workspace").to_owned()
}

/// All files below the folder, sorted, as paths from the workspace.
fn files(folder: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("the folder can be listed").path();
            if path.is_dir() { walk(&path, found) } else { found.push(path) }
        }
    }
    let mut found = Vec::new();
    walk(&workspace().join(folder), &mut found);
    let mut found: Vec<_> =
        found.iter().map(|path| path.strip_prefix(workspace()).expect("it is below").to_owned()).collect();
    found.sort();
    found
}

fn read(path: impl AsRef<Path>) -> String {
    let path = workspace().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The Rust files of all crates with their text.
fn sources() -> BTreeMap<String, String> {
    let rust = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    let paths = EDGES.iter().flat_map(|(folder, _)| files(folder)).filter(rust);
    let sources: BTreeMap<_, _> = paths.map(|path| (path.display().to_string(), read(&path))).collect();
    assert!(sources.len() > 50, "only {} source files were found", sources.len());
    sources
}

/// Fails with all complaints, one a line.
fn no_complaints(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn source_files_are_short() {
    let too_long = |path: &str, text: &str| {
        let lines = text.lines().count();
        let excused = LONGER.iter().any(|(long, _)| *long == path);
        (lines > MAX_LINES && !excused).then(|| format!("{path}: {lines} lines, at most {MAX_LINES} are allowed"))
    };
    no_complaints(&sources().iter().filter_map(|(path, text)| too_long(path, text)).collect::<Vec<_>>());
}

#[test]
fn source_files_say_what_they_are_for() {
    let bad =
        sources().into_iter().filter(|(_, text)| !text.lines().next().is_some_and(|line| line.starts_with("//! ")));
    no_complaints(&bad.map(|(path, _)| format!("{path}: line 1 must be a `//!` sentence")).collect::<Vec<_>>());
}

#[test]
fn crates_depend_only_downwards() {
    let mut complaints = Vec::new();
    for (folder, allowed) in EDGES {
        let manifest: toml::Table = read(format!("{folder}/Cargo.toml")).parse().expect("a manifest is TOML");
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let names = manifest.get(section).and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys);
            let ours = names.filter(|name| name.starts_with("trainc"));
            let wrong = ours.filter(|name| !allowed.contains(&name.as_str()));
            complaints.extend(wrong.map(|name| format!("{folder}: must not depend on {name} ({section})")));
        }
    }
    let root: toml::Table = read("Cargo.toml").parse().expect("a manifest is TOML");
    let members = root["workspace"]["members"].as_array().expect("members are a list");
    let members: BTreeSet<_> = members.iter().filter_map(toml::Value::as_str).collect();
    assert_eq!(members, EDGES.iter().map(|(folder, _)| *folder).collect(), "a crate is missing from the list of edges");
    no_complaints(&complaints);
}

#[test]
fn passes_have_golden_files() {
    let names = trainc_passes::PASSES.into_iter().chain(["differentiate", "optimizer"]);
    let without = names.filter(|name| files(&format!("testdata/transform/{name}")).is_empty());
    no_complaints(&without.map(|name| format!("testdata/transform/{name} has no golden file")).collect::<Vec<_>>());
}

#[test]
fn rules_of_the_verifier_have_tests() {
    let mut tests: BTreeSet<String> = files("testdata/verify")
        .iter()
        .filter(|path| {
            let rule = path.file_stem().map(|stem| stem.to_string_lossy()[..3.min(stem.len())].to_uppercase());
            rule.is_some_and(|rule| read(path).contains(&format!("; error[{rule}]: ")))
        })
        .filter_map(|path| path.file_stem().map(|stem| stem.to_string_lossy()[..3].to_uppercase()))
        .collect();
    for line in read("ir/src/verify/tests.rs").lines() {
        if let Some(name) = line.strip_prefix("fn v") {
            tests.insert(format!("V{}", &name[..2]));
        }
    }
    let untested = trainc_ir::Rule::ALL.iter().map(|rule| rule.code()).filter(|code| !tests.contains(*code));
    no_complaints(&untested.map(|code| format!("no test is named after rule {code}")).collect::<Vec<_>>());
}

#[test]
fn nothing_is_left_to_do() {
    // Spelled in parts, so that this file does not find itself.
    let words = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["HA", "CK"], ["todo", "!("], ["unimplemented", "!("]];
    let words = words.map(|parts| parts.concat());
    let mut complaints = Vec::new();
    for (path, text) in sources() {
        for (i, line) in text.lines().enumerate() {
            let found = words.iter().find(|word| line.contains(word.as_str()));
            complaints.extend(found.map(|word| format!("{path}:{}: {word}", i + 1)));
        }
    }
    no_complaints(&complaints);
}

#[test]
fn nothing_needs_files_from_elsewhere() {
    let places = [["/ho", "me/"], ["/wo", "rk/"], ["/ro", "ot/"], ["/Us", "ers/"]].map(|parts| parts.concat());
    let mut complaints = Vec::new();
    let manifests = EDGES.map(|(folder, _)| format!("{folder}/Cargo.toml")).map(|path| (path.clone(), read(path)));
    for (path, text) in sources().into_iter().chain(manifests) {
        let found = places.iter().filter(|place| text.contains(place.as_str()));
        complaints.extend(found.map(|place| format!("{path}: names a file under {place}")));
    }
    no_complaints(&complaints);
}

#[test]
fn modules_are_named_after_what_they_hold() {
    let bad = ["utils", "util", "helpers", "helper", "misc", "common", "prelude"];
    let named = |path: &&String| {
        let path = Path::new(path.as_str());
        path.components().any(|part| bad.contains(&part.as_os_str().to_string_lossy().trim_end_matches(".rs")))
    };
    let sources = sources();
    no_complaints(&sources.keys().filter(named).map(|path| format!("{path}: says nothing")).collect::<Vec<_>>());
}

#[test]
fn modules_import_by_name() {
    let glob = |line: &str| line.trim_start().trim_start_matches("pub ").starts_with("use ") && line.contains("::*");
    let mut complaints = Vec::new();
    for (path, text) in sources() {
        // A module of tests inside a file may take all of the file's names.
        let found = text.lines().enumerate().filter(|(_, line)| glob(line) && !line.contains("use super::*;"));
        complaints.extend(found.map(|(i, line)| format!("{path}:{}: {}", i + 1, line.trim())));
    }
    no_complaints(&complaints);
}

#[test]
fn diagnostic_codes_mean_one_thing() {
    // A code is declared once, as a constant; everything else uses the constant.
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    let mut complaints = Vec::new();
    for (path, text) in sources() {
        for line in text.lines().filter(|line| line.contains("const ") && line.contains(": &str = \"E0")) {
            let code = line.split('"').nth(1).expect("the line holds a quote").to_owned();
            if let Some(other) = first.insert(code.clone(), path.clone()) {
                complaints.push(format!("{code} is declared in {other} and in {path}"));
            }
        }
    }
    assert!(first.len() > 20, "only {} codes were found", first.len());
    no_complaints(&complaints);
}
