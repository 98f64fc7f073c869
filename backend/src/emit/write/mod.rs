//! Writes outputs so that a reader sees all of the old ones or all of the new ones, whenever the writer is stopped.
//!
//! A folder that does not exist is written under another name and renamed. One that exists is written anew beside it,
//! with everything else that the user keeps in it, and the two change places in one system call (`exchange`). Where that
//! cannot be done, the new files are moved in one by one after a folder with all of them has been given a name that readers
//! look for (`journal`): [`current_file`] finds the new files from then on, and the next writer finishes the moves.
//! Everything is written as a draft first; those that a killed writer left are removed by the next one in the same place.

mod carry;
mod draft;
mod exchange;
mod journal;
mod steps;

pub use journal::current_file;

use super::codes::UNWRITABLE;
use draft::{Draft, DraftKind};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use steps::{Fault, Steps};
use trainc_ir::{Diagnostic, Diagnostics};

/// What is written into a folder.
#[derive(Clone, Copy, Debug)]
pub struct FolderFiles<'a> {
    /// The files by name.
    pub files: &'a [(&'a str, &'a [u8])],
    /// Names that belong to the writer: of these, files that are not written now are removed.
    pub owned: &'a [&'a str],
}

impl FolderFiles<'_> {
    /// Whether a name in the folder belongs to the writer; all others belong to the user and stay.
    fn owns(&self, name: &std::ffi::OsStr) -> bool {
        self.names().any(|owned| name == owned)
    }

    /// The names that belong to the writer.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.owned.iter().chain(self.files.iter().map(|(name, _)| name)).copied()
    }
}

/// How the files of a folder that exists are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// By an exchange of folders, where that can be done.
    Exchange,
    /// One by one, from a folder that readers look into first.
    OneByOne,
}

/// Writes files into a folder: all of them or none, whenever it is stopped.
///
/// # Errors
/// The folder or a file cannot be written; what was there before is still there.
pub fn write_files(folder: &Path, files: &FolderFiles<'_>) -> Result<(), Diagnostics> {
    write_files_stepwise(folder, files, Replacement::Exchange, &mut || true).map(drop)
}

/// Writes files as [`write_files`] does, and asks after every change on the disk whether to go on. If not, it stops as if it
/// had been killed, and the answer is `false`. This is for tests of what readers see at any moment.
///
/// # Errors
/// As [`write_files`].
pub fn write_files_stepwise(
    folder: &Path,
    files: &FolderFiles<'_>,
    replacement: Replacement,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<bool, Diagnostics> {
    let mut steps = Steps::new(go_on);
    match write(&mut steps, folder, files, replacement) {
        Ok(()) => Ok(true),
        Err(Fault::Stopped) => Ok(false),
        Err(Fault::Disk(path, error)) => {
            let help = "give a directory that exists or can be made, on a disk with room, with `-o DIRECTORY`";
            Err(unwritable(&path, &error, help))
        }
    }
}

/// Writes one file. What is there before is replaced in one move, after all was written beside it; a terminal, pipe or
/// device is written to.
///
/// # Errors
/// The file cannot be written; what was there before is still there.
pub fn write_file(path: &Path, content: &[u8]) -> Result<(), Diagnostics> {
    let special = fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
    let written = if special {
        File::options().write(true).open(path).and_then(|mut file| file.write_all(content).and_then(|()| file.flush()))
    } else {
        replace_file(path, content)
    };
    let help = "give a file in a directory that exists, on a disk with room";
    written.map_err(|error| unwritable(path, &error, help))
}

fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    // A link stays one: the file that it leads to is replaced.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if path.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let parent = parent(&path);
    draft::clean(parent);
    let mut draft = Draft::new(parent, DraftKind::File)?;
    draft.write_all(content)?;
    fs::rename(draft.path(), &path)?;
    draft.keep();
    sync(parent);
    Ok(())
}

fn write(steps: &mut Steps<'_>, folder: &Path, files: &FolderFiles<'_>, replacement: Replacement) -> Result<(), Fault> {
    if !folder.is_dir() {
        match create(steps, folder, files) {
            // Somebody else made it meanwhile: what they wrote is replaced as if it had been there before.
            Err(Fault::Disk(_, _)) if folder.is_dir() => {}
            created => return created,
        }
    }
    let real = folder.canonicalize().map_err(|error| Fault::Disk(folder.to_owned(), error))?;
    for name in files.names() {
        let place = real.join(name);
        if fs::symlink_metadata(&place).is_ok_and(|of| of.is_dir()) {
            return Err(Fault::Disk(folder.join(name), io::Error::from(io::ErrorKind::IsADirectory)));
        }
    }
    journal::finish(steps, &real)?;
    draft::clean(&real);
    if replacement == Replacement::Exchange && exchange::replace(steps, &real, files)? {
        return Ok(());
    }
    journal::replace(steps, &real, files)
}

/// Makes the folder under another name and renames it.
fn create(steps: &mut Steps<'_>, folder: &Path, files: &FolderFiles<'_>) -> Result<(), Fault> {
    let at = |error| Fault::Disk(folder.to_owned(), error);
    let parent = parent(folder);
    fs::create_dir_all(parent).map_err(at)?;
    draft::clean(parent);
    let mut draft = Draft::new(parent, DraftKind::Folder).map_err(at)?;
    let made =
        fill(steps, draft.path(), folder, files).and_then(|()| steps.did(folder, fs::rename(draft.path(), folder)));
    draft.unless_stopped(made)?;
    draft.keep();
    sync(parent);
    Ok(())
}

/// Writes the files into a draft of the folder.
fn fill(steps: &mut Steps<'_>, draft: &Path, folder: &Path, files: &FolderFiles<'_>) -> Result<(), Fault> {
    for (name, content) in files.files {
        steps.did(&folder.join(name), write_synced(&draft.join(name), content))?;
    }
    sync(draft);
    Ok(())
}

fn write_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Makes renames last; where directories cannot be opened, the system does that by itself.
fn sync(directory: &Path) {
    if let Ok(directory) = File::open(directory) {
        let _ = directory.sync_all();
    }
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}

fn unwritable(path: &Path, error: &io::Error, help: &str) -> Diagnostics {
    let message = format!("cannot write `{}`: {}", path.display(), reason(error));
    vec![Diagnostic::error(UNWRITABLE, message).with_help(help)]
}

/// The reason without the number that the system gives it.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
