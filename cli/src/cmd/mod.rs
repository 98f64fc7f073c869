//! The commands, one file each.

pub(crate) mod cluster;
pub(crate) mod compile;
pub(crate) mod completions;
pub(crate) mod diff;
pub(crate) mod estimate;
pub(crate) mod explain;
mod fused;
pub(crate) mod inspect;
pub(crate) mod profile;
pub(crate) mod run;
pub(crate) mod schedule;
pub(crate) mod simulate;
pub(crate) mod stages;
pub(crate) mod verify;
