//! Writes outputs so that a reader never sees half of one, whenever the writer is stopped.

use super::codes::UNWRITABLE;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use trainc_ir::{Diagnostic, Diagnostics};

/// Writes files into a directory. A new directory appears with all of them; in one that exists every file is replaced
/// in one move, after all of them have been written beside their places.
///
/// # Errors
/// The directory or a file cannot be written; what was there before is still there.
pub fn write_files(directory: &Path, files: &[(&str, &[u8])]) -> Result<(), Diagnostics> {
    let written = if directory.is_dir() { replace(directory, files) } else { create(directory, files) };
    written.map_err(|(path, error)| {
        let message = format!("cannot write `{}`: {}", path.display(), reason(&error));
        let help = "give a directory that exists or can be made, on a disk with room, with `-o DIRECTORY`";
        vec![Diagnostic::error(UNWRITABLE, message).with_help(help)]
    })
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
    written.map_err(|error| {
        let message = format!("cannot write `{}`: {}", path.display(), reason(&error));
        let help = "give a file in a directory that exists, on a disk with room";
        vec![Diagnostic::error(UNWRITABLE, message).with_help(help)]
    })
}

fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    // A link stays one: the file that it leads to is replaced.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let draft = parent(&path).join(draft_name(&name.to_string_lossy()));
    let written = write(&draft, content).and_then(|()| fs::rename(&draft, &path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    sync(parent(&path));
    written
}

type Failure = (PathBuf, io::Error);

/// Makes the directory under another name and renames it.
fn create(directory: &Path, files: &[(&str, &[u8])]) -> Result<(), Failure> {
    let at = |error| (directory.to_owned(), error);
    let parent = parent(directory);
    fs::create_dir_all(parent).map_err(at)?;
    let name = directory.file_name().ok_or_else(|| at(io::Error::from(io::ErrorKind::InvalidInput)))?;
    let draft = parent.join(draft_name(&name.to_string_lossy()));
    let made = fs::create_dir(&draft).map_err(at).and_then(|()| {
        for (name, content) in files {
            write(&draft.join(name), content).map_err(|error| (directory.join(name), error))?;
        }
        sync(&draft);
        fs::rename(&draft, directory).map_err(at)
    });
    if made.is_err() {
        // The first error is the one to tell; a draft that cannot be removed harms nobody.
        let _ = fs::remove_dir_all(&draft);
    }
    sync(parent);
    made
}

/// Writes every file beside its place, then renames them.
fn replace(directory: &Path, files: &[(&str, &[u8])]) -> Result<(), Failure> {
    let drafts: Vec<PathBuf> = files.iter().map(|(name, _)| directory.join(draft_name(name))).collect();
    let written = files
        .iter()
        .zip(&drafts)
        .try_for_each(|((name, content), draft)| write(draft, content).map_err(|error| (directory.join(name), error)));
    let written = written.and_then(|()| {
        files.iter().zip(&drafts).try_for_each(|((name, _), draft)| {
            let place = directory.join(name);
            fs::rename(draft, &place).map_err(|error| (place, error))
        })
    });
    if written.is_err() {
        for draft in &drafts {
            let _ = fs::remove_file(draft);
        }
    }
    sync(directory);
    written
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
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

/// Differs between processes that write to one place at the same time.
fn draft_name(name: &str) -> String {
    format!(".{name}.{}.part", std::process::id())
}

fn parent(directory: &Path) -> &Path {
    match directory.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => directory,
    }
}

/// The reason without the number that the system gives it.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
