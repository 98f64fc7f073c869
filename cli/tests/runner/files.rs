//! Walks folders of golden files, and compares or blesses them.

use std::fs;
use std::path::{Path, PathBuf};

/// Whether expected output is rewritten instead of compared.
pub(crate) fn bless() -> bool {
    std::env::var_os("BLESS").is_some_and(|value| value == "1")
}

/// All files below the folder, sorted; a folder that does not exist has none.
pub(crate) fn walk(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("the folder can be listed").path()).collect();
    paths.sort();
    paths.into_iter().flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// Compares every file with what it should be according to `run`, which may also refuse it.
///
/// # Panics
/// With everything that differs, after all files were looked at.
pub(crate) fn check_all(folders: &[PathBuf], run: impl Fn(&Path, &str) -> Result<String, String>) {
    let mut failures = Vec::new();
    for path in folders.iter().flat_map(|folder| walk(folder)) {
        let name = path.strip_prefix(super::workspace()).unwrap_or(&path).display().to_string();
        let Ok(text) = fs::read_to_string(&path) else {
            // Inputs of commands need not be text; what names them is checked all the same.
            failures.extend(run(&path, "").err().map(|message| format!("{name}: {message}\n")));
            continue;
        };
        match run(&path, &text) {
            Err(message) => failures.push(format!("{name}: {message}\n")),
            Ok(expected) if expected == text => {}
            Ok(expected) if bless() => fs::write(&path, expected).expect("the golden file can be written"),
            Ok(expected) => failures.push(diff(&name, &text, &expected)),
        }
    }
    assert!(
        failures.is_empty(),
        "{}\nif the new output is right: cargo bless   (that is: BLESS=1 cargo test -p trainc --test golden)\n",
        failures.join("\n")
    );
}

/// A unified diff from what the file holds to what the program gives.
pub(crate) fn diff(name: &str, file: &str, output: &str) -> String {
    let diff = similar::TextDiff::from_lines(file, output);
    diff.unified_diff().context_radius(3).header(name, "what the program gives").to_string()
}
