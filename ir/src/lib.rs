//! The intermediate representations of trainc.

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
    Arch, Basis, CLUSTER_CODES, Catalogue, Cluster, GpuType, Link, LinkKind, MemoryReserve, NodeGroup, NodeGroupId,
    PeakFlops,
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
