//! Tests of reading and indexing on whole files: small real models, cut, flipped, and hostile ones.

use super::index::index_model;
use super::read::{RawModel, read_bytes, read_file};
use super::{Bindings, ModelBytes, OnnxModel};
use std::path::PathBuf;
use trainc_ir::{Diagnostics, ModelSource};

fn testdata(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/frontend/onnx").join(name)
}

fn read(bytes: Vec<u8>) -> Result<RawModel, Diagnostics> {
    read_bytes(ModelBytes::from_vec(PathBuf::from("m.onnx"), bytes))
}

fn code_of(bytes: &[u8]) -> &'static str {
    read(bytes.to_vec()).expect_err("not a model")[0].code
}

const MODELS: [&str; 3] = ["loop_nested.onnx", "attention_cache.onnx", "constant_lifting.onnx"];

#[test]
fn real_models_read_and_index() {
    for name in MODELS {
        let model = index_model(read_file(&testdata(name)).unwrap()).unwrap();
        assert!(!model.graph.order.is_empty(), "{name}");
    }
}

#[test]
fn every_cut_is_a_diagnostic_or_a_whole_model() {
    for name in MODELS {
        let bytes = std::fs::read(testdata(name)).unwrap();
        let mut n_refused = 0;
        for end in 0..bytes.len() {
            match read(bytes[..end].to_vec()).and_then(index_model) {
                Ok(_) => {}
                Err(problems) => {
                    n_refused += 1;
                    assert!(problems.iter().all(trainc_ir::Diagnostic::is_error), "{name} cut at {end}");
                }
            }
        }
        // Only a cut between two fields of the model message itself can leave a whole model.
        assert!(n_refused + 5 > bytes.len(), "{name}: {n_refused} of {}", bytes.len());
    }
}

#[test]
fn flipped_bytes_never_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for name in MODELS {
        let bytes = std::fs::read(testdata(name)).unwrap();
        for _ in 0..3000 {
            let mut damaged = bytes.clone();
            for _ in 0..=random() % 4 {
                let at = usize::try_from(random() % bytes.len() as u64).unwrap();
                damaged[at] = random() as u8;
            }
            let _ = read(damaged.clone()).and_then(index_model);
            let bytes = ModelBytes::from_vec(PathBuf::from("m.onnx"), damaged);
            let bindings = Bindings::parse("*=3").unwrap();
            let _ = OnnxModel::from_bytes(bytes, bindings).and_then(|model| model.lower(None));
        }
    }
}

#[test]
fn other_formats_are_named() {
    let message = |bytes: &[u8]| read(bytes.to_vec()).expect_err("not a model")[0].message.clone();
    assert_eq!(code_of(b""), "E0102");
    assert!(message(b"PK\x03\x04zip").contains("zip archive"));
    assert!(message(b"version https://git-lfs.github.com/spec/v1\n").contains("Git LFS"));
    assert!(message(b"{\"architectures\": [\"GPT2\"]}").contains("text"));
    assert!(message(b"\x80\x02}q\x00(X").contains("pickle"));
    assert_eq!(code_of(&[0xff; 64]), "E0103");
}

#[test]
fn length_bombs_stay_small() {
    // A graph field that claims 2^62 bytes, in a file that otherwise starts like a model.
    assert_eq!(code_of(&[0x08, 0x08, 0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0, 0]), "E0104");
    // A group inside a value's type, which a parser that skips unknown groups would descend into.
    assert_eq!(code_of(&[0x08, 0x08, 0x3a, 0x06, 0x5a, 0x04, 0x12, 0x02, 0x5b, 0x5b]), "E0105");
}

#[test]
fn versions_are_checked() {
    assert_eq!(code_of(&[0x08, 0x08, 0x42, 0x02, 0x10, 0x11]), "E0109");
    assert_eq!(code_of(&[0x08, 0x02, 0x3a, 0x00, 0x42, 0x02, 0x10, 0x11]), "E0107");
    assert_eq!(code_of(&[0x08, 0x08, 0x3a, 0x00, 0x42, 0x02, 0x10, 0x06]), "E0108");
    assert_eq!(code_of(&[0x08, 0x08, 0x3a, 0x00]), "E0108");
}

#[test]
fn external_weights_are_read_on_demand() {
    let raw = read_file(&testdata("external/multi_external_files.onnx")).unwrap();
    assert!(!raw.proto.graph.initializer.is_empty());
    for tensor in &raw.proto.graph.initializer {
        let weight = raw.weight(tensor).unwrap();
        assert_eq!(weight.read_bytes().unwrap().len() as u64, weight.ty().bytes());
    }
}
