//! Replaces the files of a folder one by one, in a way that can be finished by anybody.
//!
//! The new files are written to a folder inside, which is then renamed to `.trainc.next`. From this moment on the new files
//! are the current ones: a reader looks for a file there first, and then in the folder itself, where it has been moved. An
//! empty file `NAME.gone` stands for one that is removed.

use super::draft::{Draft, DraftKind};
use super::steps::{Fault, Steps};
use super::{FolderFiles, fill, sync};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

const NEXT: &str = ".trainc.next";
const GONE: &str = ".gone";

/// The place of a file that [`write_files`](super::write_files) wrote to a folder, also where the writer was stopped
/// before its end. The file may not be there.
pub fn current_file(folder: &Path, name: &str) -> PathBuf {
    let next = folder.join(NEXT).join(name);
    let is_gone = || folder.join(NEXT).join(format!("{name}{GONE}")).exists();
    if next.exists() || is_gone() { next } else { folder.join(name) }
}

/// Whether a name is the one of new files that are being moved.
pub(super) fn is_journal(name: &OsStr) -> bool {
    name == NEXT
}

/// Replaces the files.
pub(super) fn replace(steps: &mut Steps<'_>, folder: &Path, files: &FolderFiles<'_>) -> Result<(), Fault> {
    let at = |error| Fault::Disk(folder.to_owned(), error);
    let mut draft = Draft::new(folder, DraftKind::Folder).map_err(at)?;
    let made = fill(steps, draft.path(), folder, files).and_then(|()| {
        let written = |name: &&&str| files.files.iter().any(|(file, _)| *file == **name);
        for name in files.owned.iter().filter(|name| !written(name) && folder.join(name).exists()) {
            let gone = draft.path().join(format!("{name}{GONE}"));
            steps.did(&folder.join(name), fs::write(gone, b""))?;
        }
        // Another writer may have come first: its files are moved, then these.
        if folder.join(NEXT).exists() {
            finish(steps, folder)?;
        }
        steps.did(folder, fs::rename(draft.path(), folder.join(NEXT)))
    });
    draft.unless_stopped(made)?;
    draft.keep();
    sync(folder);
    finish(steps, folder)
}

/// Moves new files that wait to be moved.
pub(super) fn finish(steps: &mut Steps<'_>, folder: &Path) -> Result<(), Fault> {
    let next = folder.join(NEXT);
    let Ok(entries) = fs::read_dir(&next) else { return Ok(()) };
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    for name in names {
        let gone = name.to_str().and_then(|name| name.strip_suffix(GONE));
        match gone {
            Some(old) => {
                let place = folder.join(old);
                if place.exists() {
                    steps.did(&place, fs::remove_file(&place))?;
                }
                steps.did(&place, fs::remove_file(next.join(&name)))?;
            }
            None => {
                let place = folder.join(&name);
                steps.did(&place, fs::rename(next.join(&name), &place))?;
            }
        }
    }
    sync(folder);
    steps.did(folder, fs::remove_dir(&next))?;
    sync(folder);
    Ok(())
}
