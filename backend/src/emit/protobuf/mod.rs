//! `plan.pb`: the plan as `proto/plan.proto` describes it.

mod read;
mod write;

pub(super) use read::{plan_from_protobuf, version};
pub use write::plan_to_protobuf;

/// What the first field of every plan holds.
const MAGIC: &str = "trainc.plan";

/// The messages of `proto/plan.proto`.
#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    reason = "this module is generated from proto/plan.proto, which documents it"
)]
mod messages {
    include!(concat!(env!("OUT_DIR"), "/trainc.plan.rs"));
}
