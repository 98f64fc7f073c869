//! What the user keeps in a folder that is replaced: it is in the new folder before that takes the old one's place.

use super::draft::is_draft;
use super::steps::{Fault, Steps};
use super::{FolderFiles, journal};
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// Entries that are carried over at most; a folder with more (a home folder, say) is not exchanged.
const MOST_ENTRIES: usize = 1000;

/// One entry, by its path from the folder.
pub(super) struct Entry {
    path: PathBuf,
    is_folder: bool,
}

/// The entries of a folder that are not the writer's, folders before what is in them. `None` where they are too many or
/// not of one disk, or cannot be read.
pub(super) fn entries(folder: &Path, files: &FolderFiles<'_>) -> Option<Vec<Entry>> {
    let disk = fs::metadata(folder).ok().map(|of| device(&of))?;
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(inner) = open.pop() {
        for entry in fs::read_dir(folder.join(&inner)).ok()? {
            let entry = entry.ok()?;
            let name = entry.file_name();
            let top = inner.as_os_str().is_empty();
            if top && (files.owns(&name) || is_draft(&name) || journal::is_journal(&name)) {
                continue;
            }
            let of = entry.metadata().ok()?;
            if device(&of) != disk || found.len() == MOST_ENTRIES {
                return None;
            }
            let path = inner.join(name);
            if of.is_dir() {
                open.push(path.clone());
            }
            found.push(Entry { path, is_folder: of.is_dir() });
        }
    }
    Some(found)
}

/// Gives the new folder the entries of the old one: files by a second name, so that nothing is copied and nothing can be
/// lost; folders are made again.
pub(super) fn carry(steps: &mut Steps<'_>, old: &Path, new: &Path, entries: &[Entry]) -> Result<(), Fault> {
    for Entry { path, is_folder } in entries {
        let (from, to) = (old.join(path), new.join(path));
        let carried = match is_folder {
            true => fs::create_dir(&to).and_then(|()| fs::set_permissions(&to, fs::metadata(&from)?.permissions())),
            false => fs::hard_link(&from, &to),
        };
        steps.did(&from, carried)?;
    }
    Ok(())
}

/// Moves what came to the old folder, or was replaced in it, after its entries were listed.
pub(super) fn catch_up(old: &Path, new: &Path, files: &FolderFiles<'_>) -> io::Result<()> {
    let late = entries(old, files).unwrap_or_default();
    for Entry { path, is_folder } in late {
        let (from, to) = (old.join(&path), new.join(&path));
        match fs::symlink_metadata(&to) {
            Ok(there) if is_folder || is_same(&there, &fs::symlink_metadata(&from)?) => {}
            Ok(_) => fs::rename(from, to)?,
            Err(_) if is_folder => fs::create_dir(to)?,
            Err(_) => fs::rename(from, to)?,
        }
    }
    Ok(())
}

#[cfg(unix)]
fn device(of: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::dev(of)
}

#[cfg(not(unix))]
fn device(_of: &Metadata) -> u64 {
    0
}

#[cfg(unix)]
fn is_same(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn is_same(_a: &Metadata, _b: &Metadata) -> bool {
    true
}
