//! The library face of trainc: what its commands do, for build scripts and other programs.
//!
//! [`compile`] turns a model and a cluster into a plan and the files that go with it; [`check`] reads a plan back and
//! proves it against its model; [`run()`] executes it on this machine. Nothing here prints: what there is to say comes back
//! as diagnostics.
//!
//! ```no_run
//! use trainc::{CompileOptions, ModelOptions};
//!
//! let model = ModelOptions {
//!     model: "model.onnx".into(),
//!     bindings: [("batch".to_owned(), 8), ("seq".to_owned(), 1024)].into(),
//!     micro_batches: Some(16),
//!     ..ModelOptions::default()
//! };
//! let options = CompileOptions { model, cluster: "cluster.toml".into(), ..CompileOptions::default() };
//! let compiled = trainc::compile(&options)?;
//! trainc::write(&compiled, &options, "out".as_ref())?;
//! # Ok::<(), trainc::Failure>(())
//! ```

mod check;
mod cluster;
mod codes;
mod compile;
mod depfile;
mod diff;
mod explain;
mod failure;
mod folder;
mod header;
mod infeasible;
mod options;
mod prepare;
mod replay;
mod stages;
mod trace;
mod train;
pub mod units;

pub use check::{Checked, check, check_twin};
pub use cluster::read_cluster;
pub use codes::{codes, rules};
pub use compile::{Compiled, Progress, compile, compile_with, estimate, files, write};
pub use depfile::dep_file;
pub use diff::{Condition, Difference, Facts, Metric, PlanDiff, diff};
pub use explain::{Explanation, explanations};
pub use failure::{
    BAD_COMMAND_LINE, BAD_HEADER, BAD_OPTION, BAD_STAGES, CANNOT_READ, CANNOT_WRITE, COMMAND_CODES, CONDITION_HOLDS,
    CONFLICTING_OPTIONS, DIFFERENT_PLANS, Failure, FailureKind, INTERNAL_ERROR, MISSING_WEIGHTS, NOT_MEASURED,
    NOT_REPLAYED, OTHER_CLUSTER, OTHER_GRAPH, OTHER_MODEL, RUN_FAILED, TOO_MANY_THREADS, UNKNOWN_CODE, UNKNOWN_PASS,
};
pub use folder::{KUBERNETES, MODEL_PATH, PLAN_JSON, PLAN_PB, SLURM, SUMMARY, is_plan};
pub use infeasible::join_units;
pub use options::{CompileOptions, ModelOptions, Recompute, parse_bindings, print_bindings};
pub use prepare::{Forward, MAX_MICRO_BATCHES, Prepared, known_pass, prepare, prepare_forward, prepare_until};
pub use replay::{Replayed, replay};
pub use stages::read_stages;
pub use trace::trace;
pub use train::{Finished, RunOptions, Weights, run};
