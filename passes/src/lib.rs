//! Placeholder.

pub mod plan;
