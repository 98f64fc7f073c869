//! Facts about graphs: plain functions that change nothing.

pub mod blocks;
