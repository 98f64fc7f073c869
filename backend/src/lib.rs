//! Turns plans into a running training job. This crate never changes a decision of the plan it is given.
//!
//! Start reading at `host/`: the kernels of the host device, which is also the oracle that every other device is held to.

mod host;
mod request;

pub use request::{
    KubernetesOptions, PlacementRequest, REQUEST_CODES, RequestGroup, SlurmOptions, kubernetes_manifest, slurm_script,
};
