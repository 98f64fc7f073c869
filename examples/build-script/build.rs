//! Compiles a model into a plan while the crate is built, and again when the model or the cluster changed.

use std::path::{Path, PathBuf};
use trainc::{CompileOptions, Failure, ModelOptions};

fn main() {
    let out = std::env::var_os("OUT_DIR").expect("Cargo sets it");
    match plan(Path::new(env!("CARGO_MANIFEST_DIR")), &Path::new(&out).join("plan")) {
        Ok(inputs) => {
            for input in inputs {
                println!("cargo::rerun-if-changed={}", input.display());
            }
        }
        // A build script's standard error is shown when it fails.
        Err(failure) => {
            eprintln!("{failure}");
            std::process::exit(1);
        }
    }
}

/// Writes the plan to a folder; gives the files that it was made from.
pub(crate) fn plan(here: &Path, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let model = ModelOptions {
        model: here.join("../../testdata/models/gpt2.onnx"),
        bindings: [("batch".to_owned(), 2), ("seq".to_owned(), 64)].into(),
        micro_batches: Some(4),
        ..ModelOptions::default()
    };
    let cluster = here.join("../../testdata/clusters/mixed.toml");
    let options = CompileOptions { model, cluster, ..CompileOptions::default() };
    let compiled = trainc::compile(&options)?;
    trainc::write(&compiled, &options, folder)?;
    Ok(compiled.inputs)
}
