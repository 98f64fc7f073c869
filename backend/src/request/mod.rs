//! Turns the placement groups of a plan into requests to a cluster's scheduler.
//!
//! A request asks for GPUs by type and count and leaves the choice of hosts to the scheduler. Every process learns its place
//! from the environment; the last two columns say who sets what.
//!
//! | variable | meaning | Kubernetes | Slurm |
//! |---|---|---|---|
//! | `TRAINC_GROUP` | name of the placement group | pod | task |
//! | `TRAINC_FIRST_PROCESS` | number of processes of the groups before it | pod | task |
//! | `WORLD_SIZE`, `LOCAL_WORLD_SIZE` | processes of the job, of a node | pod | task |
//! | `MASTER_ADDR`, `MASTER_PORT` | where the first process listens | pod | task |
//! | `JOB_COMPLETION_INDEX` | node within the group | set by the Job controller | - |
//! | `SLURM_PROCID`, `SLURM_LOCALID` | process of the job, of the node | - | set by srun |
//!
//! Processes are numbered group by group, then node by node. The number within the group is the `index` of the plan's rank.
//!
//! A Kubernetes pod is one node and starts `LOCAL_WORLD_SIZE` processes itself; a Slurm task is one process.

mod codes;
mod kubernetes;
mod names;
mod placement;
mod slurm;

#[cfg(test)]
mod tests;

pub use codes::REQUEST_CODES;
pub use kubernetes::{KubernetesOptions, kubernetes_manifest};
pub use placement::{PlacementRequest, RequestGroup};
pub use slurm::{SlurmOptions, slurm_script};
