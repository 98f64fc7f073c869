//! The folder that `compile` writes: which files are in it, and how it finds its model again.
//!
//! `model.path` is the only file that depends on where things are: the path of the model as seen from the folder.

use crate::failure::{CANNOT_READ, Failure};
use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};
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

/// The plan file at a path, which is a plan file or a folder with one.
pub(crate) fn plan_file(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(PLAN_JSON) } else { path.to_owned() }
}

/// Whether the path is of a plan rather than of a model.
pub fn is_plan(path: &Path) -> bool {
    path.is_dir() || path.file_name().is_some_and(|name| name == PLAN_JSON || name == PLAN_PB)
}

/// The path of the model as seen from the folder, in the form that is written: with `/` on every system. `None` where
/// it has no such form.
pub(crate) fn model_path(folder: &Path, model: &Path) -> io::Result<Option<String>> {
    let relative = relative(&std::path::absolute(folder)?, &model.canonicalize()?);
    let parts: Option<Vec<&str>> = relative.components().map(|part| part.as_os_str().to_str()).collect();
    let joined = match relative.components().next() {
        Some(Component::RootDir | Component::Prefix(_)) => relative.to_str().map(str::to_owned),
        _ => parts.map(|parts| parts.join("/")),
    };
    Ok(joined.filter(|path| !path.contains('\n')))
}

/// The model of a plan: the one given, else the one that `model.path` beside the plan file names.
pub(crate) fn find_model(plan_file: &Path, given: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(model) = given {
        return Ok(model.to_owned());
    }
    let folder = plan_file.parent().unwrap_or(Path::new(""));
    let path = folder.join(MODEL_PATH);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(folder.join(text.trim_end_matches(['\n', '\r']))),
        Err(error) => {
            let message = format!("cannot read `{}`, which says where the model is: {error}", path.display());
            let help = "give the model with --model";
            Err(Failure::input(Diagnostic::error(CANNOT_READ, message).with_help(help)))
        }
    }
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
        assert_eq!(model_path(&folder, &model).unwrap().as_deref(), Some("../Cargo.toml"));
    }
}
