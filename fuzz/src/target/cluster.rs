//! Cluster descriptions.

use super::{Kind, Target};
use crate::corpus::seeds;
use trainc_ir::Cluster;

pub(super) const TARGET: Target =
    Target { name: "cluster", kind: Kind::Text, run, seeds: all_seeds, tokens: TOKENS, n_bounded: 8_000 };

fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok(cluster) = Cluster::from_toml("cluster.toml", &text) else { return };
    cluster.n_gpus();
    cluster.gpus_by_type();
    for (id, group) in cluster.groups.iter() {
        group.capacity_bytes();
        group.arena_budget(1, &[2, 2]);
        for other in cluster.groups.ids() {
            cluster.link(id, other, id == other);
        }
    }
}

fn all_seeds() -> Vec<Vec<u8>> {
    let mut all = seeds("clusters", ".toml");
    all.extend(seeds("clusters/bad", ".toml"));
    all
}

const TOKENS: &[&str] = &[
    "name",
    "[[group]]",
    "[group.link]",
    "[network]",
    "[[network.link]]",
    "[reserve]",
    "gpu",
    "nodes",
    "gpus_per_node",
    "region",
    "price_usd_per_gpu_hour",
    "labels",
    "kind",
    "\"nvlink\"",
    "\"pcie\"",
    "bandwidth_gbps",
    "bandwidth_gbytes_per_s",
    "latency_us",
    "between",
    "from",
    "to",
    "connected",
    "context_mib",
    "\"A100\"",
    "\"H100 SXM\"",
    "\"T4\"",
    "[gpu_type]",
    "memory_gib",
    "1e308",
    "-1",
    "0",
    "nan",
    "inf",
    "true",
    "9223372036854775807",
    "4294967296",
    "\"\"\"",
    "{",
    "}",
    "[",
    "]",
    "=",
    "\n",
    ",",
];
