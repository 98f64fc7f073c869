//! The targets.

mod cluster;
mod import;
mod onnx;
mod passes;
mod plan;
mod profile;
mod text;

/// What the inputs of a target are, for the mutator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A protobuf message.
    Protobuf,
    /// A JSON document.
    Json,
    /// A plan: JSON or protobuf.
    Plan,
    /// Text of another form.
    Text,
}

/// A reader under test: it takes any bytes, and panics only where trainc has a bug.
#[derive(Debug)]
pub struct Target {
    /// Its name, and that of the folder of its kept inputs.
    pub name: &'static str,
    /// What its inputs are.
    pub kind: Kind,
    /// What it does with an input.
    pub run: fn(&[u8]),
    /// Inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words that inputs are made of.
    pub tokens: &'static [&'static str],
    /// How many inputs the bounded run gives it.
    pub n_bounded: u64,
}

/// All targets.
pub const TARGETS: [Target; 7] =
    [onnx::TARGET, text::TARGET, passes::TARGET, plan::TARGET, cluster::TARGET, import::TARGET, profile::TARGET];
