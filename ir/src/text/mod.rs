//! The text form of graphs: one deterministic printer and one hand-written parser, for tests, dumps and bug reports.
//!
//! ```text
//! graph "mlp" {
//!   v0 = input data "x" : f32[2,64]
//!   v1 = input param "w" : f32[64,8]
//!   v2 = matmul(v0, v1) transpose_a=false transpose_b=false : f32[2,8]  @ "/fc/MatMul"
//!   output prediction "y" v2
//! }
//! ```
//!
//! One statement stands on a line; `;` starts a comment. Every result is followed by its type. Numbers of values need
//! not ascend, but leave no gap. Nodes are numbered by their order; a node may say its number (`n0: v2 = ..`). The name
//! that the node has in the source model follows `@`. Constant data is `<f32[2,2] dense 0.5 1.0 nan -inf>` or
//! `<f32[2,2] splat 0.0>`; data of the wrong size, which only a broken graph has, is printed as bytes. Floats are the
//! shortest decimals that read back to the same bits, or the bits in hexadecimal where no decimal does (`0x7fc00001`).
//!
//! A [`TrainingGraph`](crate::TrainingGraph) is written as its two graphs with its parameters between them; the nodes
//! of the step say their phase and the forward node that they belong to (`#input_grad n3`).
//!
//! `print` never fails, whatever is wrong with the graph, and `read` gives back what was printed; `parse` also verifies.

mod codes;
mod cursor;
mod element;
mod lex;
mod parse;
mod parse_training;
mod print;
mod value;

pub use codes::TEXT_CODES;
pub use parse::{SourceMap, parse, read};
pub use parse_training::{parse_training, read_training};
pub(crate) use print::{PHASES, spelling};
pub use print::{print, print_training, print_training_with, print_with};

#[cfg(test)]
mod tests;
