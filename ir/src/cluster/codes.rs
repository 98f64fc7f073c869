//! The codes of everything that can be wrong with a cluster description or a GPU catalogue.

/// The file is not TOML.
pub(super) const NOT_TOML: &str = "E0301";
/// A key that means nothing there.
pub(super) const UNKNOWN_KEY: &str = "E0302";
/// A value of the wrong type or form.
pub(super) const WRONG_TYPE: &str = "E0303";
/// A key that must be there is missing.
pub(super) const MISSING_KEY: &str = "E0304";
/// A number outside of what can be meant.
pub(super) const OUT_OF_RANGE: &str = "E0305";
/// Two things of one name.
pub(super) const DUPLICATE_NAME: &str = "E0306";
/// A GPU type that the catalogue does not have.
pub(super) const UNKNOWN_GPU: &str = "E0307";
/// A cluster without GPUs.
pub(super) const NO_GPUS: &str = "E0308";
/// A link that names a group which does not exist.
pub(super) const UNKNOWN_GROUP: &str = "E0309";
/// A link that is given twice.
pub(super) const DUPLICATE_LINK: &str = "E0310";
/// Keys that exclude each other.
pub(super) const CONFLICTING_KEYS: &str = "E0311";
/// Groups that cannot reach each other.
pub(super) const DISCONNECTED: &str = "E0312";
/// A link that has no way back.
pub(super) const ONE_WAY_LINK: &str = "E0313";

/// Every code of this module with its meaning in one line, in order.
pub const CLUSTER_CODES: [(&str, &str); 13] = [
    (NOT_TOML, "the file is not valid TOML"),
    (UNKNOWN_KEY, "a key means nothing where it stands"),
    (WRONG_TYPE, "a value has the wrong type or form"),
    (MISSING_KEY, "a key that must be given is missing"),
    (OUT_OF_RANGE, "a number is outside of what can be meant"),
    (DUPLICATE_NAME, "two groups or two GPU types have the same name"),
    (UNKNOWN_GPU, "the GPU type is not in the catalogue"),
    (NO_GPUS, "the cluster has no GPUs"),
    (UNKNOWN_GROUP, "a network link names a group that does not exist"),
    (DUPLICATE_LINK, "a network link is given twice"),
    (CONFLICTING_KEYS, "keys are given together that exclude each other"),
    (DISCONNECTED, "some nodes of the cluster cannot reach the others"),
    (ONE_WAY_LINK, "two groups are linked in one direction only"),
];
