//! Fuzz targets of every reader: bytes in, no panic, no hang, no memory out of proportion to the input.
//!
//! A [`Target`] is a plain function of bytes with a corpus of seeds, so that any fuzzer can drive it. [`Session`] drives
//! it with a seeded, deterministic mutator: generic for bytes and text, and aware of the structure of protobuf messages
//! and JSON. `cargo test -p trainc-fuzz` runs a fixed number of inputs and every input that once failed
//! (`testdata/fuzz/<target>`); `cargo run --release -p trainc-fuzz -- <target> --runs 1000000` goes on for longer.

mod corpus;
mod heap;
mod limit;
mod mutate;
mod onnx_model;
mod session;
mod small;
mod target;

pub use corpus::{kept, testdata};
pub use heap::{Counting, peak_of};
pub use limit::{Outcome, run_once};
pub use mutate::{Mutator, Rng};
pub use session::{Finding, Session};
pub use small::greedy_inputs;
pub use target::{Kind, TARGETS, Target};
