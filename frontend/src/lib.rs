//! Readers of model files: each turns the bytes of a model into a verified forward graph, or into diagnostics.
//!
//! A frontend never guesses a shape silently and never panics on its input. It may read files; weights are read only
//! when somebody asks for their bytes, so compiling a model costs the same whether its weights are there or not.
//! Start at [`OnnxModel::open`].

mod onnx;

pub use onnx::{Bindings, CodeInfo, ModelBytes, ONNX_CODES, OnnxModel, Weight};
