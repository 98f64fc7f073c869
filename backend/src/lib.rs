//! Turns plans into a running training job. This crate never changes a decision of the plan it is given.
//!
//! Start reading at `host/`: the kernels of the host device, which is also the oracle that every other device is held to.

mod emit;
mod host;
mod request;
mod run;

pub use emit::{
    EMIT_CODES, FolderFiles, Replacement, Trace, TraceArrow, TraceDetail, TraceProcess, TraceSlice, current_file,
    plan_to_json, plan_to_protobuf, read_plan, summary_to_json, trace_to_json, write_file, write_files,
    write_files_stepwise,
};
pub use host::{Context, Fault, InterpretError, Tensor, interpret};
pub use request::{
    KubernetesOptions, PlacementRequest, REQUEST_CODES, RequestGroup, SlurmOptions, kubernetes_manifest, slurm_script,
};
pub use run::{
    Batches, Corpora, Interleaving, Job, JobOptions, RunError, StepReport, TokenWidth, TrainOptions, WeightLoader,
    train,
};
