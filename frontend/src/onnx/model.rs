//! The public face: a model opened from a file, bound, and lowered on demand.

use super::bind::{self, Bindings};
use super::code;
use super::index::{IndexedModel, index_model};
use super::lower;
use super::read::{ModelBytes, RawModel, read_bytes, read_file};
use super::tensor::Weight;
use onnx_protobuf::{Message, TensorProto};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use trainc_ir::{Diagnostic, Diagnostics, Lowered, ModelSource};

/// An ONNX model with its bindings.
#[derive(Debug)]
pub struct OnnxModel {
    name: String,
    digest: String,
    model: IndexedModel,
    bindings: Bindings,
}

impl OnnxModel {
    /// Opens a model file. Its weights stay on disk.
    ///
    /// # Errors
    /// Whatever is wrong with the file, or with the model as a graph.
    pub fn open(path: &Path, bindings: Bindings) -> Result<Self, Diagnostics> {
        Self::from_raw(read_file(path)?, path, bindings)
    }

    /// A model whose file's bytes are in memory.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes(bytes: ModelBytes, bindings: Bindings) -> Result<Self, Diagnostics> {
        let path = bytes.path().to_owned();
        Self::from_raw(read_bytes(bytes)?, &path, bindings)
    }

    fn from_raw(raw: RawModel, path: &Path, bindings: Bindings) -> Result<Self, Diagnostics> {
        let name = path.file_stem().map_or_else(|| "model".to_owned(), |stem| stem.to_string_lossy().into_owned());
        let digest = digest(&raw);
        Ok(Self { name, digest, model: index_model(raw)?, bindings })
    }

    /// The files that were read so far: the model's own, and the data files of those tensors whose values were needed.
    pub fn files_read(&self) -> Vec<PathBuf> {
        let own = self.model.raw.file.path().to_owned();
        std::iter::once(own).chain(self.model.raw.file.opened()).collect()
    }

    /// Whether the model has an initializer of this name.
    pub fn has_weight(&self, name: &str) -> bool {
        self.model.graph.initializers.contains_key(name)
    }

    /// The tensor that a parameter or buffer of the lowered graph starts from; its bytes are read when asked for.
    ///
    /// # Errors
    /// The model has no such tensor, or one that trainc cannot represent.
    pub fn weight(&self, name: &str) -> Result<Weight, Diagnostic> {
        match self.model.graph.initializers.get(name) {
            Some(&position) => self.model.raw.weight(&self.model.raw.proto.graph.initializer[position]),
            None => Err(Diagnostic::error(code::MISSING_VALUE, format!("the model has no initializer `{name}`"))),
        }
    }

    /// All initializers that trainc can represent, in the order of the file.
    pub fn weights(&self) -> Vec<Weight> {
        self.model.raw.proto.graph.initializer.iter().filter_map(|tensor| self.model.raw.weight(tensor).ok()).collect()
    }
}

impl ModelSource for OnnxModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn digest(&self) -> &str {
        &self.digest
    }

    fn lower(&self, micro_batch: Option<u64>) -> Result<Lowered, Diagnostics> {
        let bound = bind::bind(&self.model.graph.inputs, &self.bindings, micro_batch)?;
        lower::lower(&self.model, &bound, &self.name)
    }
}

/// SHA-256 of the model's message without the elements of its float initializers, wherever they are stored.
fn digest(raw: &RawModel) -> String {
    let mut proto = raw.proto.clone();
    if let Some(graph) = proto.graph.as_mut() {
        for tensor in &mut graph.initializer {
            let is_float = super::element::dtype(tensor.data_type).is_ok_and(trainc_ir::DType::is_float);
            if is_float && tensor.dims.iter().any(|&dim| dim != 1) {
                let TensorProto { name, dims, data_type, .. } = std::mem::take(tensor);
                *tensor = TensorProto { name, dims, data_type, ..Default::default() };
            } else {
                tensor.special_fields = protobuf::SpecialFields::default();
            }
        }
    }
    let bytes = proto.write_to_bytes().unwrap_or_default();
    Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
