//! Equal inputs give equal bytes, wherever the model and the folder lie and however many threads there are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata").canonicalize().expect("the folder is there")
}

/// Compiles a GPT-2 for two stages into `out` of the folder.
fn compile(folder: &Path, model: &Path, micro_batches: &str, threads: &str) -> BTreeMap<String, Vec<u8>> {
    let output = Command::new(env!("CARGO_BIN_EXE_trainc"))
        .arg("compile")
        .arg(model)
        .arg("--cluster")
        .arg(testdata().join("clusters/mixed.toml"))
        .args(["--bind", "batch=2,seq=16", "--pp", "2", "--micro-batches", micro_batches, "-o", "out"])
        .current_dir(folder)
        .env("RAYON_NUM_THREADS", threads)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let entries = fs::read_dir(folder.join("out")).expect("the folder was written");
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().expect("names are readable");
        (name, fs::read(entry.path()).expect("it can be read"))
    };
    entries.map(|entry| file(entry.expect("the folder can be listed"))).collect()
}

/// Fails with the names of the files that differ, not with their bytes.
fn assert_equal(a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>) {
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    let different: Vec<&String> = a.keys().filter(|name| a[*name] != b[*name]).collect();
    assert!(different.is_empty(), "{different:?} differ");
}

#[test]
fn only_the_path_of_the_model_depends_on_where_things_are() {
    let model = testdata().join("models/gpt2.onnx");
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::copy(&model, here.path().join("gpt2.onnx")).unwrap();
    let mut relative = compile(here.path(), Path::new("gpt2.onnx"), "4", "1");
    let mut absolute = compile(there.path(), &model, "4", "4");
    assert_eq!(relative.remove("model.path").as_deref(), Some(b"../gpt2.onnx\n".as_slice()));
    assert!(absolute.remove("model.path").is_some_and(|path| path.ends_with(b"models/gpt2.onnx\n")));
    assert_equal(&relative, &absolute);
    let names = ["kubernetes.yaml", "plan.json", "plan.pb", "slurm.sh", "summary.json"];
    assert!(relative.keys().map(String::as_str).eq(names), "{:?}", relative.keys());
}

#[test]
fn a_folder_that_exists_is_replaced_whole() {
    let model = testdata().join("models/gpt2.onnx");
    let (used, fresh) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // Both folders lie equally far from the model, so that even `model.path` is equal.
    let earlier = compile(used.path(), &model, "2", "2");
    let later = compile(used.path(), &model, "4", "2");
    let expected = compile(fresh.path(), &model, "4", "2");
    assert_equal(&later, &expected);
    assert_ne!(earlier["plan.pb"], later["plan.pb"]);
    assert_ne!(earlier["summary.json"], later["summary.json"]);
}
