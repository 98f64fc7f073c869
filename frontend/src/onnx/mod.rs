//! The ONNX frontend: read (walk, sniff, parse), index (names, order, scopes), lower (bind, infer, build).

mod code;
mod element;
mod index;
mod read;
mod tensor;
mod wire;

pub use code::{CodeInfo, ONNX_CODES};
pub use index::{IndexedGraph, IndexedModel, index_model};
pub use read::{ModelBytes, RawModel, read_bytes, read_file};
pub use tensor::Weight;

#[cfg(test)]
mod damage_tests;
