//! Clusters as schedulers describe them: nodes of Kubernetes, nodes and configuration of Slurm.

use super::{Kind, Target};
use crate::corpus::seeds;
use trainc_ir::{ClusterFile, ImportOptions, Imported};

pub(super) const TARGET: Target =
    Target { name: "import", kind: Kind::Text, run, seeds: all_seeds, tokens: TOKENS, n_bounded: 2_000 };

fn run(input: &[u8]) {
    let file = ClusterFile { name: "nodes", bytes: input };
    let Ok(imported) = Imported::read(&[file], &ImportOptions::default()) else { return };
    imported.cluster.gpus_by_type();
    let written = ClusterFile { name: "cluster.toml", bytes: imported.toml.as_bytes() };
    let again = Imported::read(&[written], &ImportOptions::default());
    assert!(again.is_ok_and(|again| again.cluster == imported.cluster), "what was imported is not read back the same");
}

fn all_seeds() -> Vec<Vec<u8>> {
    [".json", ".conf", ".txt"].into_iter().flat_map(|ending| seeds("clusters/import", ending)).collect()
}

const TOKENS: &[&str] = &[
    "\"items\"",
    "\"kind\"",
    "\"NodeList\"",
    "\"labels\"",
    "\"nvidia.com/gpu\"",
    "\"nvidia.com/gpu.product\"",
    "\"nvidia.com/gpu.replicas\"",
    "\"nvidia.com/mig-1g.5gb\"",
    "\"nodes\"",
    "\"gres\"",
    "gpu:a100:4(S:0-1)",
    "NodeName=",
    "host[01-16]",
    "host[0-99999999]",
    "Gres=",
    "GresTypes=",
    "DEFAULT",
    "PartitionName=",
    "-SHARED",
    "18446744073709551615",
    "-1",
    "1e308",
    "null",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\n",
];
