//! The folder that `compile` writes: which files are in it, and how it finds its model again.
//!
//! `model.path` is the only file that depends on where things are: the path of the model as seen from the folder.

use crate::failure::{CANNOT_READ, Failure};
use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};
use trainc_backend::current_file;
use trainc_ir::Diagnostic;

/// The plan for people and tools.
pub const PLAN_JSON: &str = "plan.json";
/// The plan for machines, of the same content.
pub const PLAN_PB: &str = "plan.pb";
/// The request to Kubernetes.
pub const KUBERNETES: &str = "kubernetes.yaml";
/// The request to Slurm.
pub const SLURM: &str = "slurm.sh";
/// What is predicted, in stable fields.
pub const SUMMARY: &str = "summary.json";
/// Where the model is.
pub const MODEL_PATH: &str = "model.path";

/// Every file that `compile` may write.
pub(crate) const FILES: [&str; 6] = [PLAN_JSON, PLAN_PB, KUBERNETES, SLURM, SUMMARY, MODEL_PATH];

/// The plan file at a path, which is a plan file or a folder with one.
pub(crate) fn plan_file(path: &Path) -> PathBuf {
    match (path.is_dir(), path.file_name().and_then(OsStr::to_str)) {
        (true, _) => current_file(path, PLAN_JSON),
        (false, Some(name)) => current_file(path.parent().unwrap_or(Path::new("")), name),
        (false, None) => path.to_owned(),
    }
}

/// Whether the path is of a plan rather than of a model.
pub fn is_plan(path: &Path) -> bool {
    path.is_dir() || path.file_name().is_some_and(|name| name == PLAN_JSON || name == PLAN_PB)
}

/// What `model.path` holds: the path of the model as seen from the folder, with `/` on every system, and a newline. Where
/// names are bytes it is the same bytes. `None` where the path has no such form.
pub(crate) fn model_path(folder: &Path, model: &Path) -> io::Result<Option<Vec<u8>>> {
    let relative = relative(&std::path::absolute(folder)?, &model.canonicalize()?);
    let rooted = matches!(relative.components().next(), Some(Component::RootDir | Component::Prefix(_)));
    let text = if rooted || cfg!(unix) {
        to_bytes(relative.as_os_str())
    } else {
        let parts: Option<Vec<&str>> = relative.components().map(|part| part.as_os_str().to_str()).collect();
        parts.map(|parts| parts.join("/").into_bytes())
    };
    Ok(text.map(|mut text| {
        text.push(b'\n');
        text
    }))
}

/// The model of a plan: the one given, else the one that `model.path` beside the plan file names.
pub(crate) fn find_model(path: &Path, given: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(model) = given {
        return Ok(model.to_owned());
    }
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
    let file = current_file(folder, MODEL_PATH);
    let refuse = |why: String| {
        let message = format!("cannot read `{}`, which says where the model is: {why}", file.display());
        let help = "give the model with --model";
        Failure::input(Diagnostic::error(CANNOT_READ, message).with_help(help))
    };
    let mut text = std::fs::read(&file).map_err(|error| refuse(error.to_string()))?;
    if text.ends_with(b"\n") {
        text.pop();
    }
    if cfg!(not(unix)) && text.ends_with(b"\r") {
        text.pop();
    }
    let path = from_bytes(text).ok_or_else(|| refuse("it is not a path of this system".to_owned()))?;
    Ok(folder.join(path))
}

#[cfg(unix)]
fn to_bytes(path: &OsStr) -> Option<Vec<u8>> {
    Some(std::os::unix::ffi::OsStrExt::as_bytes(path).to_owned())
}

#[cfg(not(unix))]
fn to_bytes(path: &OsStr) -> Option<Vec<u8>> {
    path.to_str().map(|text| text.as_bytes().to_owned())
}

#[cfg(unix)]
fn from_bytes(bytes: Vec<u8>) -> Option<PathBuf> {
    Some(PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes)))
}

#[cfg(not(unix))]
fn from_bytes(bytes: Vec<u8>) -> Option<PathBuf> {
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

fn relative(folder: &Path, file: &Path) -> PathBuf {
    let folder = existing(folder);
    let (mut from, mut to) = (folder.components().peekable(), file.components().peekable());
    if from.peek() != to.peek() {
        return file.to_owned();
    }
    while from.peek().is_some() && from.peek() == to.peek() {
        from.next();
        to.next();
    }
    from.map(|_| OsStr::new("..")).chain(to.map(Component::as_os_str)).collect()
}

/// The folder without links and `..`, as far as it exists: what does not exist yet is made without links.
fn existing(folder: &Path) -> PathBuf {
    let known = folder.ancestors().find_map(|known| Some((known, known.canonicalize().ok()?)));
    match known {
        Some((known, real)) => real.join(folder.strip_prefix(known).unwrap_or(Path::new(""))).components().collect(),
        None => folder.components().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_found_from_the_folder() {
        let at = |folder: &str, file: &str| relative(Path::new(folder), Path::new(file)).display().to_string();
        assert_eq!(at("/nowhere/a/out", "/nowhere/a/m.onnx"), "../m.onnx");
        assert_eq!(at("/nowhere/out", "/nowhere/out/m.onnx"), "m.onnx");
        assert_eq!(at("/nowhere/a/b", "/elsewhere/m.onnx"), "../../../elsewhere/m.onnx");
    }

    #[test]
    fn the_written_path_leads_back() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert_eq!(model_path(&folder, &model).unwrap().as_deref(), Some(&b"../Cargo.toml\n"[..]));
    }

    /// Linux allows every byte in a name but `/` and 0.
    #[test]
    #[cfg(target_os = "linux")]
    fn odd_names_lead_back_too() {
        use std::os::unix::ffi::OsStrExt;
        let root = tempfile::tempdir().unwrap();
        for name in [&b"caf\xe9.onnx"[..], b"two\nlines.onnx", b"end\n", b" blank "] {
            let model = root.path().join(OsStr::from_bytes(name));
            std::fs::write(&model, "").unwrap();
            let text = model_path(&root.path().join("out"), &model).unwrap().unwrap();
            std::fs::create_dir_all(root.path().join("out")).unwrap();
            std::fs::write(root.path().join("out/model.path"), text).unwrap();
            let found = find_model(&root.path().join("out"), None).unwrap();
            assert_eq!(found.canonicalize().unwrap(), model.canonicalize().unwrap());
        }
    }
}
