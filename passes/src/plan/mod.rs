//! Plans: how a program is laid out over devices, time and memory.
//!
//! The data flow: a training graph is divided into units ([`analysis::blocks`](crate::analysis::blocks)), `facts` says
//! which node and value belongs to which unit, `measure` what each unit does and holds, `partition` gives ranges of units
//! to GPUs. For the division found, `crossing` says what each rank keeps, receives and sends, `flow` when values go under the
//! schedule and how many slots they need, `stage` and `epilogue` write a rank's instructions for one micro-batch and for the
//! end of the step (`segments` pools the kernels, `split` divides backwards), `program` orders them and places events (with
//! `fold` and `clock`), `layout` gives every buffer its bytes, `assemble` and `build` put the plan together.

mod assemble;
mod build;
mod choice;
mod clock;
pub mod cost;
mod crossing;
mod epilogue;
mod facts;
mod flow;
mod fold;
pub mod layout;
mod measure;
pub mod partition;
mod planner;
pub mod profile;
mod program;
mod searched;
mod segments;
mod shortlist;
pub mod simulate;
mod split;
mod stage;

pub use build::PlacedStage;
pub use choice::ScheduleChoice;
pub use crossing::StageUnits;
pub use planner::{PlanOptions, Planned, plan, plan_with};
pub use shortlist::{MAX_GROUPS, shortlist};

#[cfg(test)]
mod tests;
