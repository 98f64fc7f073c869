//! Plans: how a program is laid out over devices, time and memory.

pub mod cost;
pub mod layout;
pub mod partition;
pub mod profile;
pub(crate) mod assemble;
pub mod crossing;
pub(crate) mod epilogue;
pub(crate) mod facts;
pub(crate) mod program;
pub(crate) mod segments;
pub(crate) mod stage;
pub(crate) mod measure;
pub mod build;
#[cfg(test)]
mod tests;
