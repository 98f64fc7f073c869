//! Clusters: which GPUs there are, how fast they are, what they hold and how they are linked.
//!
//! Everything here is text in, values out: the caller reads the files. All quantities are integers (bytes, bytes per
//! second, FLOP per second, picoseconds, micro-dollars), so no decision depends on a rounding that differs between
//! machines. A figure that nobody published is absent; a figure that stands in for it says so ([`Basis`]).
//!
//! Start at [`Cluster::from_toml`]; [`Imported::read`] also reads what schedulers say of their nodes.

mod catalogue;
mod codes;
mod contention;
mod document;
mod efficiency;
mod gpu;
mod gpu_read;
mod import;
mod labels;
mod network_read;
mod profile;
mod profile_json;
mod profile_read;
mod rate;
mod rates;
mod read;
mod reserve;
mod suggest;
mod topology;

#[cfg(test)]
mod tests;

pub use catalogue::Catalogue;
pub use codes::CLUSTER_CODES;
pub use contention::{Contention, Slowdown, TransferKind};
pub use efficiency::SharedEfficiency;
pub use gpu::{Arch, Basis, GpuType, LinkKind, PeakFlops};
pub use import::{ClusterFile, ImportOptions, Imported};
pub use labels::{KUBERNETES_PRODUCTS, KUBERNETES_RESOURCE, SLURM_CONSTRAINT, SLURM_GRES_TYPE, SLURM_PARTITION};
pub use profile::{BlockTimes, GpuProfile, PROFILE_CODES, Profile};
pub use rate::Rate;
pub use rates::{RateBasis, Rates};
pub use reserve::MemoryReserve;
pub use topology::{Cluster, Link, NodeGroup, NodeGroupId};
