//! Drafts: files and folders under names of their own, which are given their right names when they are complete.
//!
//! A writer holds a lock on its draft, which the system releases when the writer ends, in whatever way. A draft that
//! nobody holds was left by a writer that was killed.

use super::steps::Fault;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const PREFIX: &str = ".trainc.";
const SUFFIX: &str = ".part";

/// Differs between drafts of one process.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// What a draft is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DraftKind {
    File,
    Folder,
}

/// A draft, which is removed unless it is kept.
pub(super) struct Draft {
    path: PathBuf,
    kind: DraftKind,
    /// Open and locked as long as the draft is one; systems that cannot lock folders do without.
    file: Option<File>,
    stays: bool,
}

impl Draft {
    /// Makes an empty draft in a folder.
    pub(super) fn new(folder: &Path, kind: DraftKind) -> io::Result<Self> {
        // So that nobody takes the draft for one that was left before it is locked.
        let guard = lock(folder);
        let name = format!("{PREFIX}{}.{}{SUFFIX}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = folder.join(name);
        let file = match kind {
            DraftKind::File => Some(File::create(&path)?),
            DraftKind::Folder => {
                fs::create_dir(&path)?;
                File::open(&path).ok()
            }
        };
        if let Some(file) = &file {
            // A system without locks keeps what is left.
            let _ = file.try_lock();
        }
        drop(guard);
        Ok(Self { path, kind, file, stays: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the content of a file, and makes it last.
    pub(super) fn write_all(&mut self, content: &[u8]) -> io::Result<()> {
        let file = self.file.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        file.write_all(content)?;
        file.sync_all()
    }

    /// It has got its right name, or is left as it is.
    pub(super) fn keep(&mut self) {
        self.stays = true;
    }

    /// Leaves it where the writer was told to stop, and gives the result back.
    pub(super) fn unless_stopped<T>(&mut self, result: Result<T, Fault>) -> Result<T, Fault> {
        self.stays |= matches!(result, Err(Fault::Stopped));
        result
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.stays {
            return;
        }
        // A draft that cannot be removed harms nobody, and the next writer tries again.
        let _ = match self.kind {
            DraftKind::File => fs::remove_file(&self.path),
            DraftKind::Folder => fs::remove_dir_all(&self.path),
        };
    }
}

/// Removes the drafts in a folder that nobody holds. What cannot be removed stays.
pub(super) fn clean(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let left: Vec<PathBuf> = entries.flatten().filter(|entry| is_draft(&entry.file_name())).map(|e| e.path()).collect();
    if left.is_empty() {
        return;
    }
    let guard = lock(folder);
    for path in left {
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_err() {
            continue;
        }
        let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
    drop(guard);
}

/// Whether a name is one of a draft.
pub(super) fn is_draft(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX))
}

/// Keeps others from making or removing drafts in a folder until it is dropped.
fn lock(folder: &Path) -> Option<File> {
    let file = File::open(folder).ok()?;
    file.lock().ok()?;
    Some(file)
}
