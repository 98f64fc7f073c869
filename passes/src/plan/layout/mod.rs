//! Static memory layout of each rank.

pub(crate) mod live;
pub mod pack;
pub(crate) mod turns;
