//! Seeds and kept inputs, from `testdata`.

use std::path::{Path, PathBuf};

/// A path below the folder of test data.
pub fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata").join(path)
}

/// The inputs on which a target once failed, with their names.
pub fn kept(target: &str) -> Vec<(String, Vec<u8>)> {
    files(&testdata("fuzz").join(target), |_| true)
}

/// The files of a folder below the test data whose names end so, sorted.
pub(crate) fn seeds(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    files(&testdata(folder), |name| name.ends_with(ending)).into_iter().map(|(_, bytes)| bytes).collect()
}

fn files(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<(String, Vec<u8>)> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?.to_owned();
        (wanted(&name) && path.is_file()).then(|| std::fs::read(path).ok().map(|bytes| (name, bytes))).flatten()
    };
    paths.iter().filter_map(read).collect()
}
