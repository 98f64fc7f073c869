//! Files made from plans: `plan.json` for people and other tools, `plan.pb` for machines, `summary.json`, traces; and
//! reading plans back.

mod codes;
mod json;
mod layout;
mod protobuf;
mod read;
mod summary;
mod trace;
mod write;

pub use codes::EMIT_CODES;
pub use json::plan_to_json;
pub use protobuf::plan_to_protobuf;
pub use read::read_plan;
pub use summary::summary_to_json;
pub use trace::{Trace, TraceArrow, TraceDetail, TraceProcess, TraceSlice, trace_to_json};
pub use write::{FolderFiles, Replacement, current_file, write_file, write_files, write_files_stepwise};
