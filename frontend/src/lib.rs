//! Readers of model files: each turns the bytes of a model into a verified forward graph, or into diagnostics.
//!
//! A frontend never guesses a shape silently and never panics on its input. It may read files; weights are read only
//! when somebody asks for their bytes, so compiling a model costs the same whether its weights are there or not.
//! Start at [`read_file`].

mod onnx;

pub use onnx::{
    CodeInfo, IndexedGraph, IndexedModel, ModelBytes, ONNX_CODES, RawModel, Weight, index_model, read_bytes, read_file,
};
