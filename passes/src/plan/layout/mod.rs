//! Static memory layout of each rank.

pub mod pack;
