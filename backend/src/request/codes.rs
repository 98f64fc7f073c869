//! The codes of everything that keeps a plan from being requested.

/// The plan names a group or a GPU type that the cluster does not have.
pub(super) const NOT_IN_CLUSTER: &str = "E0901";
/// The group's GPUs and its nodes do not agree.
pub(super) const UNEVEN_GROUP: &str = "E0902";
/// No program can be emitted for the GPU type, or the scheduler has no way to select it.
pub(super) const CANNOT_SELECT: &str = "E0903";
/// A label or an option that the scheduler would not take.
pub(super) const BAD_LABEL: &str = "E0904";

/// Every code of this module with its meaning in one line, in order.
pub const REQUEST_CODES: [(&str, &str); 4] = [
    (NOT_IN_CLUSTER, "the plan asks for a group that the cluster description does not have"),
    (UNEVEN_GROUP, "the nodes of a placement group do not make up its number of GPUs"),
    (CANNOT_SELECT, "the scheduler cannot be asked for this GPU type"),
    (BAD_LABEL, "a label or an option is not in the form that the scheduler takes"),
];
