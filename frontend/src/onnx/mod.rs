//! The ONNX frontend: read (walk, sniff, parse), index (names, order, scopes), lower (bind, infer, build).

mod bind;
mod call;
mod code;
mod constant;
mod element;
mod emit;
mod eval;
mod finish;
mod index;
mod lower;
mod model;
mod ops;
mod read;
mod shared;
mod survey;
mod tensor;
mod wire;

pub use bind::Bindings;
pub use code::{CodeInfo, ONNX_CODES};
pub use model::OnnxModel;
pub use read::ModelBytes;
pub use tensor::Weight;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod lower_tests;
