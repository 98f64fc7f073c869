//! Chooses, of a cluster with very many unlike groups, those that the search for a division looks at.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use trainc_ir::{Cluster, DType, NodeGroup, NodeGroupId};

/// Groups that are looked at: the time of the search grows steeply with the mixes of groups.
pub const MAX_GROUPS: usize = 12;

/// The groups to look at, in the order of the cluster: all of them, unless there are more than [`MAX_GROUPS`]. Then they
/// are taken in turns, of each GPU type the one with the largest nodes first, fast types before slow ones; those of the
/// region with the most arithmetic go before all others, which are reached over slower links.
pub fn shortlist(cluster: &Cluster) -> Vec<NodeGroupId> {
    if cluster.groups.len() <= MAX_GROUPS {
        return cluster.groups.ids().collect();
    }
    let home = home(cluster);
    let mut of_types: BTreeMap<(Reverse<u64>, &str), Vec<NodeGroupId>> = BTreeMap::new();
    for (id, group) in cluster.groups.iter() {
        of_types.entry((Reverse(rate(group)), group.gpu.name.as_str())).or_default().push(id);
    }
    let mut turns: BTreeSet<(bool, usize, usize, NodeGroupId)> = BTreeSet::new();
    for (place, groups) in of_types.values_mut().enumerate() {
        groups.sort_by_key(|&id| {
            let group = &cluster.groups[id];
            (is_far(group, home), Reverse(group.gpus_per_node), Reverse(group.n_gpus()), id)
        });
        let turn = |(turn, &id): (usize, &NodeGroupId)| (is_far(&cluster.groups[id], home), turn, place, id);
        turns.extend(groups.iter().enumerate().map(turn));
    }
    let mut chosen: Vec<NodeGroupId> = turns.into_iter().take(MAX_GROUPS).map(|(.., id)| id).collect();
    chosen.sort();
    chosen
}

/// Arithmetic of one GPU: of large matrix products in half precision, or in single where it has none.
fn rate(group: &NodeGroup) -> u64 {
    let flops = |dtype| group.gpu.matmul_flops(dtype).map(|(flops, _)| flops);
    flops(DType::BF16).or_else(|| flops(DType::F16)).or_else(|| flops(DType::F32)).unwrap_or(0)
}

/// The region with the most arithmetic, where regions are told.
fn home(cluster: &Cluster) -> Option<&str> {
    let mut sums: BTreeMap<&str, u128> = BTreeMap::new();
    for group in cluster.groups.values() {
        if let Some(region) = group.region.as_deref() {
            *sums.entry(region).or_default() += u128::from(rate(group)) * u128::from(group.n_gpus());
        }
    }
    sums.into_iter().max_by_key(|&(region, sum)| (sum, Reverse(region))).map(|(region, _)| region)
}

/// Whether the group is in another region than that one; a group without a region is near to all.
fn is_far(group: &NodeGroup, home: Option<&str>) -> bool {
    group.region.as_deref().is_some_and(|region| Some(region) != home)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> String {
        let cluster = Cluster::from_toml("test.toml", text).unwrap();
        shortlist(&cluster).into_iter().map(|id| cluster.groups[id].name.clone()).collect::<Vec<_>>().join(" ")
    }

    fn group(name: &str, gpu: &str, nodes: u32, more: &str) -> String {
        format!("[[group]]\nname = \"{name}\"\ngpu = \"{gpu}\"\nnodes = {nodes}\ngpus_per_node = 4\n{more}\n")
    }

    #[test]
    fn few_groups_are_all_looked_at() {
        let text = "[network]\nbandwidth_gbps = 10\n".to_owned() + &group("a", "T4", 1, "") + &group("b", "L4", 1, "");
        assert_eq!(names(&text), "a b");
    }

    /// Twenty groups of two types: the largest of each, as many of the slow as of the fast.
    #[test]
    fn types_take_turns_and_the_region_with_most_arithmetic_goes_first() {
        let mut text = "[network]\nbandwidth_gbps = 10\n".to_owned();
        for i in 1..=10 {
            text += &group(&format!("t{i}"), "T4", i, "");
            text += &group(&format!("h{i}"), "H100-SXM-80GB", i, "");
        }
        assert_eq!(names(&text), "t5 h5 t6 h6 t7 h7 t8 h8 t9 h9 t10 h10");
        let mut text = "[network]\nbandwidth_gbps = 10\n".to_owned();
        for i in 1..=10 {
            text += &group(&format!("e{i}"), "T4", 20 + i, "region = \"eu\"");
            text += &group(&format!("u{i}"), "H100-SXM-80GB", i, "region = \"us\"");
        }
        assert_eq!(names(&text), "u1 u2 u3 u4 u5 u6 u7 u8 e9 u9 e10 u10");
    }
}
