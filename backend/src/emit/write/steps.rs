//! The changes that a writer makes on the disk, one by one, so that tests can stop it after any of them.

use std::io;
use std::path::{Path, PathBuf};

/// Why a writer did not come to its end.
#[derive(Debug)]
pub(super) enum Fault {
    /// The disk refused a change to this file.
    Disk(PathBuf, io::Error),
    /// It was told to stop, and leaves everything as it is.
    Stopped,
}

/// Asks after every change whether to go on.
pub(super) struct Steps<'a> {
    go_on: &'a mut dyn FnMut() -> bool,
}

impl<'a> Steps<'a> {
    pub(super) fn new(go_on: &'a mut dyn FnMut() -> bool) -> Self {
        Self { go_on }
    }

    /// A change to a file was tried.
    pub(super) fn did<T>(&mut self, path: &Path, result: io::Result<T>) -> Result<T, Fault> {
        let done = result.map_err(|error| Fault::Disk(path.to_owned(), error))?;
        if (self.go_on)() { Ok(done) } else { Err(Fault::Stopped) }
    }
}
