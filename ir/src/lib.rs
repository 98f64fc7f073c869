//! The intermediate representations of trainc: what a frontend makes, passes transform and backends run. Nothing here
//! does I/O or knows a file format of another project; cluster descriptions and text IR come in as text.
//!
//! Four forms follow each other.
//!
//! - A [`Graph`] is the model for one micro-batch: values in static single assignment form with an element type and a
//!   static [`Shape`], nodes in topological order, inputs with a role (data, label, parameter, buffer...). Operators are a
//!   closed set in families ([`Op`]); each knows the types of its results, and every node is typed by that rule as it is
//!   added ([`GraphBuilder`]). A tied weight is one input with several users. A value is never written twice; a reshape is
//!   its operand under another shape and costs nothing. An operator that no rule knows is `opaque`: it has types, and
//!   cannot be run.
//! - A [`TrainingGraph`] is a graph differentiated: `step` computes one micro-batch forward and backward, `update` the
//!   optimizer once per step. Losses and gradients are sums, divided by the number of terms only in the update, so that
//!   micro-batches add up to the whole batch. It says nothing of devices.
//! - A [`Cluster`] says which GPUs there are, what they hold and how they are linked.
//! - A [`plan::Plan`] says what every rank does, in which order, with which bytes. [`plan::verify`] proves it against its
//!   training graph and trusts nothing that made it.
//!
//! [`verify`](verify()) and [`plan::verify`] return witnesses ([`Verified`], [`VerifiedTraining`],
//! [`plan::VerifiedPlan`]): who takes one need not check again. What is wrong with the user's input is said as
//! [`Diagnostics`]; what is wrong with a graph is a bug and said as [`VerifyError`]s.
//!
//! Start reading at [`Graph`]; [`text`] prints and parses it.

mod build;
mod cluster;
mod diag;
mod graph;
pub mod id;
pub mod op;
pub mod plan;
mod source;
pub mod text;
mod training;
mod ty;
mod verify;
mod visit;

pub use build::{Copier, GraphBuilder};
pub use cluster::{
    Arch, Basis, BlockTimes, CLUSTER_CODES, Catalogue, Cluster, ClusterFile, Contention, GpuProfile, GpuType,
    ImportOptions, Imported, KUBERNETES_PRODUCTS, KUBERNETES_RESOURCE, Link, LinkKind, MemoryReserve, NodeGroup,
    NodeGroupId, PROFILE_CODES, PeakFlops, Profile, Rate, RateBasis, Rates, SLURM_CONSTRAINT, SLURM_GRES_TYPE,
    SLURM_PARTITION, SharedEfficiency, Slowdown, TransferKind,
};
pub use diag::{Diagnostic, Diagnostics, Label, Place, Severity};
pub use graph::{Def, Graph, Input, InputRole, Node, NodeId, Origin, Output, OutputRole, Value, ValueId};
pub use op::Op;
pub use source::{Lowered, ModelSource};
pub use training::{Contribution, Parameter, ParameterId, Phase, TrainingGraph};
pub use ty::{DType, Shape, Type};
pub use verify::{
    Entity, Part, Rule, Verified, VerifiedTraining, VerifyError, print_errors, print_training_errors, verify,
    verify_training,
};
pub use visit::{Dataflow, OperandEdge, Seen};
