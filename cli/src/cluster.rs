//! Reads cluster descriptions from files, whatever wrote them.

use crate::failure::{CANNOT_READ, Failure};
use std::path::{Path, PathBuf};
use trainc_ir::{ClusterFile, Diagnostic, ImportOptions, Imported};

/// Bytes of files that are read at all; the reader has narrower limits.
const MOST_BYTES: u64 = 1 << 31;

/// Reads a cluster from one file or from several that belong together: a description in TOML, or what a scheduler says
/// of its nodes.
///
/// # Errors
/// A file cannot be read, or describes no cluster.
pub fn read_cluster(files: &[PathBuf], options: &ImportOptions) -> Result<Imported, Failure> {
    let mut contents = Vec::new();
    for file in files {
        contents.push((file.display().to_string(), bytes(file)?));
    }
    let files: Vec<ClusterFile<'_>> = contents.iter().map(|(name, bytes)| ClusterFile { name, bytes }).collect();
    Ok(Imported::read(&files, options)?)
}

fn bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        let message = format!("cannot read the cluster description `{}`: {error}", file.display());
        Failure::input(Diagnostic::error(CANNOT_READ, message))
    };
    let size = std::fs::metadata(file).map_err(|error| failed(&error))?.len();
    if size > MOST_BYTES {
        return Err(failed(&format_args!("it has {size} bytes, expected at most {MOST_BYTES}")));
    }
    std::fs::read(file).map_err(|error| failed(&error))
}
