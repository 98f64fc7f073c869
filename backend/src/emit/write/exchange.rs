//! Replaces a folder in one system call: a complete new one changes places with it.

use super::draft::{self, Draft, DraftKind};
use super::steps::{Fault, Steps};
use super::{FolderFiles, carry, fill, sync};
use std::fs;
use std::io;
use std::path::Path;

/// Replaces the folder; `false` where that cannot be done here, and nothing has changed.
pub(super) fn replace(steps: &mut Steps<'_>, folder: &Path, files: &FolderFiles<'_>) -> Result<bool, Fault> {
    // Whoever works in the folder, a shell say, would be left in the old one.
    let works_inside = std::env::current_dir().and_then(|at| at.canonicalize()).is_ok_and(|at| at.starts_with(folder));
    let Some(parent) = folder.parent().filter(|_| !works_inside) else { return Ok(false) };
    let Some(entries) = carry::entries(folder, files) else { return Ok(false) };
    draft::clean(parent);
    // A parent that cannot be written to is no reason to fail: the folder itself may be.
    let Ok(mut draft) = Draft::new(parent, DraftKind::Folder) else { return Ok(false) };
    let made = fill(steps, draft.path(), folder, files);
    draft.unless_stopped(made)?;
    let permissions = fs::metadata(folder).and_then(|of| fs::set_permissions(draft.path(), of.permissions()));
    if permissions.is_err() {
        return Ok(false);
    }
    let carried = carry::carry(steps, folder, draft.path(), &entries);
    let exchanged = carried.and_then(|()| {
        sync(draft.path());
        steps.did(folder, exchange(draft.path(), folder))
    });
    match draft.unless_stopped(exchanged) {
        Ok(()) => sync(parent),
        // A disk without second names, or without exchange.
        Err(Fault::Disk(_, _)) => return Ok(false),
        Err(Fault::Stopped) => return Err(Fault::Stopped),
    }
    // The draft is now the old folder. What cannot be moved out of it must not be removed with it.
    if carry::catch_up(draft.path(), folder, files).is_err() {
        draft.keep();
    }
    drop(draft);
    steps.did(folder, Ok(true))
}

#[cfg(target_os = "linux")]
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(not(target_os = "linux"))]
fn exchange(_a: &Path, _b: &Path) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
