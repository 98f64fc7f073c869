//! What the descriptions of Slurm have in common: nodes with generic resources, features, states and partitions.

use super::gather::{Gathering, Offer};
use super::gres;
use super::hostlist::BadHosts;
use super::product::Slice;
use crate::cluster::codes;
use crate::cluster::labels::{SLURM_CONSTRAINT, SLURM_GRES_TYPE, SLURM_PARTITION};

/// A node, or many that are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Machine {
    /// Its `Gres`.
    pub(super) gres: String,
    pub(super) features: Vec<String>,
    /// States and their flags, in any spelling.
    pub(super) states: Vec<String>,
    /// The partition to ask for it in.
    pub(super) partition: Option<String>,
}

/// States and flags in which a node takes no jobs; the first letters are enough.
const UNUSABLE: [(&str, &str); 12] = [
    ("DOWN", "down"),
    ("DRAIN", "drained"),
    ("DRNG", "drained"),
    ("FAIL", "failing"),
    ("ERROR", "in error"),
    ("FUTURE", "not there yet"),
    ("FUTR", "not there yet"),
    ("MAINT", "in maintenance"),
    ("NOT_RESPONDING", "not responding"),
    ("NO_RESPOND", "not responding"),
    ("INVALID", "registered with other resources than configured"),
    ("INVAL", "registered with other resources than configured"),
];

/// Takes the GPUs of a node.
pub(super) fn offer(node: &str, machine: &Machine, gathering: &mut Gathering<'_>) {
    gathering.saw();
    let gpus = match gres::gpus(&machine.gres) {
        Ok(gpus) => gpus,
        Err(part) => {
            let message = format!("the resources of node `{node}` cannot be read: `{part}`");
            gathering.fault(codes::BAD_SLURM, message, "expected `gpu:COUNT` or `gpu:TYPE:COUNT`");
            return;
        }
    };
    if gpus.iter().all(|gres| gres.count == 0) {
        gathering.leave_out("no GPUs", node);
        return;
    }
    if let Some(reason) = unusable(&machine.states) {
        gathering.leave_out(reason, node);
        return;
    }
    for gres in gpus {
        let mut labels = std::collections::BTreeMap::new();
        labels.extend(gres.kind.iter().map(|kind| (SLURM_GRES_TYPE.to_owned(), kind.clone())));
        labels.extend(machine.partition.iter().map(|name| (SLURM_PARTITION.to_owned(), name.clone())));
        let sliced = gres.kind.as_deref().and_then(Slice::split);
        let (product, slice) = match sliced {
            Some((gpu, slice)) => (Some(gpu.to_owned()), Some(slice)),
            None => (gres.kind.clone().or_else(|| typed_by(&machine.features, gathering)), None),
        };
        let (hints, count) = (machine.features.clone(), gres.count);
        let hint_label = Some(SLURM_CONSTRAINT);
        gathering.offer(node, Offer { product, slice, hints, count, labels, hint_label, ..Offer::default() });
    }
}

/// The feature that names a GPU type, for GPUs without one.
fn typed_by(features: &[String], gathering: &Gathering<'_>) -> Option<String> {
    features.iter().find(|feature| gathering.catalogue.find(feature).is_some()).cloned()
}

fn unusable(states: &[String]) -> Option<&'static str> {
    states.iter().find_map(|state| {
        let upper = state.to_ascii_uppercase();
        let known = UNUSABLE.iter().find(|(name, _)| upper.starts_with(name)).map(|(_, reason)| *reason);
        known.or_else(|| upper.ends_with('*').then_some("not responding"))
    })
}

/// Reports a host list that cannot be read.
pub(super) fn bad_hosts(list: &str, why: &BadHosts, gathering: &mut Gathering<'_>) {
    let shown: String = list.chars().take(80).collect();
    gathering.fault(
        codes::BAD_SLURM,
        format!("the host list `{shown}` cannot be read: {why}"),
        "write it as `gpu[01-16]`",
    );
}
