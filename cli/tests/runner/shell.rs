//! The commands of `.cmd` files: command lines of trainc, run one after the other in one empty folder.
//!
//! ```text
//! # Why this is tested.
//! $ trainc verify broken.json
//! exit 1
//! err| error[E0401]: ...
//! ```
//!
//! A line that starts with `$` is run; what it gives is rewritten below it: `exit N`, `out|` and `err|` lines. Words are
//! split at blanks, quotes hold words together. `$TESTDATA` stands for the folder of that name. A last word `>-` or
//! `2>-` leaves out standard output or standard error, where it is not the point. A few commands prepare and show files
//! of the folder:
//!
//! - `write FILE TEXT`, `copy FROM TO`, `truncate FILE BYTES`
//! - `replace FILE OLD NEW`: the first occurrence, which must be there
//! - `cat FILE`, `ls FOLDER`

use super::files::walk;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a command gave.
struct Given {
    code: i32,
    out: String,
    err: String,
}

/// The texts of all `.cmd` files.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let is_cmd = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "cmd");
    walk(folder).into_iter().filter(is_cmd).map(|path| fs::read_to_string(path).expect("a .cmd file is text")).collect()
}

/// What the file should be: its commands with what they give now.
pub(crate) fn rewrite(text: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut out = String::new();
    let mut commands = 0;
    for line in text.lines() {
        if line.starts_with("exit ") || line.starts_with("out|") || line.starts_with("err|") {
            continue;
        }
        writeln!(out, "{line}").expect("writing to a string does not fail");
        if let Some(command) = line.strip_prefix("$ ") {
            let given = run(command, folder.path()).map_err(|message| format!("`{command}`: {message}"))?;
            writeln!(out, "exit {}", given.code).expect("writing to a string does not fail");
            for (mark, text) in [("out", &given.out), ("err", &given.err)] {
                for line in text.lines() {
                    let space = if line.is_empty() { "" } else { " " };
                    writeln!(out, "{mark}|{space}{line}").expect("writing to a string does not fail");
                }
            }
            commands += 1;
        }
    }
    if commands == 0 { Err("there is no command in it".to_owned()) } else { Ok(out) }
}

fn run(command: &str, folder: &Path) -> Result<Given, String> {
    let testdata = super::workspace().join("testdata");
    let testdata = testdata.to_str().ok_or("the folder of the workspace has no readable name")?;
    let mut words: Vec<String> = split(command)?.iter().map(|word| word.replace("$TESTDATA", testdata)).collect();
    let mut keep = [true; 2];
    while let Some(stream) = words.last().and_then(|word| [">-", "2>-"].iter().position(|mark| mark == word)) {
        keep[stream] = false;
        words.pop();
    }
    let (name, arguments) = words.split_first().ok_or("the command is empty")?;
    let mut given = match name.as_str() {
        "trainc" => trainc(arguments, folder)?,
        name => {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            Given { code: 0, out: builtin(name, &arguments, folder)?, err: String::new() }
        }
    };
    for (text, keep) in [&mut given.out, &mut given.err].into_iter().zip(keep) {
        let folder = folder.to_str().ok_or("the temporary folder has no readable name")?;
        *text = if keep { text.replace(folder, "$TMP").replace(testdata, "$TESTDATA") } else { String::new() };
    }
    Ok(given)
}

fn trainc(arguments: &[String], folder: &Path) -> Result<Given, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_trainc"))
        .args(arguments)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env_remove("RUST_BACKTRACE")
        .env_remove("CLICOLOR_FORCE")
        .output()
        .map_err(|error| error.to_string())?;
    let text = |bytes| String::from_utf8(bytes).map_err(|_| "the output is not UTF-8".to_owned());
    let code = output.status.code().ok_or("the program was killed by a signal")?;
    Ok(Given { code, out: text(output.stdout)?, err: text(output.stderr)? })
}

fn builtin(name: &str, arguments: &[&str], folder: &Path) -> Result<String, String> {
    let at = |file: &str| folder.join(file);
    let text = |file: &str| fs::read_to_string(at(file)).map_err(|error| format!("{file}: {error}"));
    let done = |result: std::io::Result<()>| result.map(|()| String::new()).map_err(|error| error.to_string());
    match (name, arguments) {
        ("write", [file, text]) => done(fs::write(at(file), format!("{text}\n"))),
        ("copy", [from, to]) => done(fs::copy(at(from), at(to)).map(drop)),
        ("truncate", [file, bytes]) => {
            let mut data = fs::read(at(file)).map_err(|error| format!("{file}: {error}"))?;
            data.truncate(bytes.parse().map_err(|_| format!("`{bytes}` is no number of bytes"))?);
            done(fs::write(at(file), data))
        }
        ("replace", [file, old, new]) => {
            let text = text(file)?;
            if !text.contains(old) {
                return Err(format!("{file} does not contain {old:?}"));
            }
            done(fs::write(at(file), text.replacen(old, new, 1)))
        }
        ("cat", [file]) => text(file),
        ("ls", [file]) => {
            let files = walk(&at(file)).into_iter();
            Ok(files.map(|path| format!("{}\n", path.strip_prefix(at(file)).expect("it is below").display())).collect())
        }
        _ => Err("there is no such command, or it takes other arguments".to_owned()),
    }
}

/// Splits at blanks; single and double quotes hold words together.
fn split(command: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in command.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c == ' ' => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if quote.is_some() { Err("a quote is not closed".to_owned()) } else { Ok(words) }
}
