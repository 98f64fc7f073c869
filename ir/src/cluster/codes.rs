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
/// JSON that cannot be read, or not as what a scheduler prints.
pub(super) const NOT_JSON: &str = "E0314";
/// A file that describes no cluster.
pub(super) const WRONG_FILE: &str = "E0315";
/// A file that is too large.
pub(super) const TOO_LARGE: &str = "E0316";
/// A host list or another expression of Slurm that cannot be read.
pub(super) const BAD_SLURM: &str = "E0317";
/// A name or label with a control character.
pub(super) const BAD_TEXT: &str = "E0318";
/// Nodes or GPUs that are not offered.
pub(super) const LEFT_OUT: &str = "N0319";
/// Nodes whose GPU type is not known.
pub(super) const UNKNOWN_IMPORT: &str = "W0320";
/// A type that is guessed.
pub(super) const AMBIGUOUS_GPU: &str = "W0321";
/// A network that nobody described.
pub(super) const ASSUMED_NETWORK: &str = "W0322";
/// Slices of GPUs among the offered.
pub(super) const SLICES: &str = "N0323";
/// GPUs that jobs use now.
pub(super) const IN_USE: &str = "N0324";
/// An included file that is not read.
pub(super) const NOT_INCLUDED: &str = "W0325";

/// Every code of this module with its meaning in one line, in order.
pub const CLUSTER_CODES: [(&str, &str); 25] = [
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
    (NOT_JSON, "a JSON file is cut off, or is not what a scheduler prints"),
    (WRONG_FILE, "the file is no cluster description, or none that can be read together with the others"),
    (TOO_LARGE, "the file is too large for a cluster description"),
    (BAD_SLURM, "an expression of Slurm cannot be read"),
    (BAD_TEXT, "a name or label holds a line break or another control character, or is too long"),
    (LEFT_OUT, "nodes of a scheduler are left out: they have no GPUs, or take no jobs"),
    (UNKNOWN_IMPORT, "nodes of a scheduler are left out: the type of their GPUs is not known"),
    (AMBIGUOUS_GPU, "what a scheduler calls a GPU may mean several types, or one with more memory"),
    (ASSUMED_NETWORK, "the network between nodes is assumed: schedulers do not describe it"),
    (SLICES, "slices of GPUs (MIG) are offered as GPUs of their own"),
    (IN_USE, "jobs use some of the GPUs now"),
    (NOT_INCLUDED, "a configuration includes another file, which was not given"),
];
