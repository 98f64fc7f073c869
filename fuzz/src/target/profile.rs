//! Profiles: measured rates and block times, in every form that is read.

use super::{Kind, Target};
use crate::corpus::seeds;
use trainc_ir::{Cluster, Profile};

pub(super) const TARGET: Target =
    Target { name: "profile", kind: Kind::Text, run, seeds: all_seeds, tokens: TOKENS, n_bounded: 2_000 };

/// A cluster that profiles are about.
const CLUSTER: &str =
    "[network]\nbandwidth_gbps = 10\n[[group]]\nname = \"a\"\ngpu = \"T4\"\nnodes = 1\ngpus_per_node = 2\n";

fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok(profile) = Profile::read("profile", &text) else { return };
    let cluster = Cluster::from_toml("cluster.toml", CLUSTER).expect("the cluster is a valid one");
    if let Ok(cluster) = cluster.profiled("profile", &profile) {
        for group in cluster.groups.values() {
            group.gpu.rates();
        }
    }
}

fn all_seeds() -> Vec<Vec<u8>> {
    ["profile.toml", "profile.csv", "profile.json", "profile-other.csv"]
        .into_iter()
        .flat_map(|name| seeds("cli", name))
        .collect()
}

const TOKENS: &[&str] = &[
    "[[block]]",
    "[[gpu]]",
    "gpu",
    "\"T4\"",
    "model",
    "forward_ms",
    "backward_ms",
    "micro_batch",
    "seq",
    "dtype",
    "curve",
    "1e308",
    "1e-308",
    "-1",
    "0",
    "nan",
    "inf",
    "18446744073709551615",
    ",",
    "\n",
    "=",
    "[",
    "]",
    "{",
    "}",
];
