//! What is asked for: groups of equal nodes of one GPU type.

use super::codes;
use std::collections::BTreeMap;
use std::sync::Arc;
use trainc_ir::plan::Plan;
use trainc_ir::{Cluster, Diagnostic, Diagnostics, GpuType, Place};

/// What to do where no program can be emitted for a GPU type.
pub(super) const ESTIMATE_ONLY: &str = "compile for CUDA GPUs: for this type trainc can only estimate";

/// Everything that a request is made from, whatever the scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementRequest {
    /// Name of the job, in any spelling; each scheduler gets it in the form that it takes.
    pub name: String,
    /// Groups in the order of the plan.
    pub groups: Vec<RequestGroup>,
}

/// Equal nodes to ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestGroup {
    /// Name of the placement group.
    pub name: String,
    /// The type of all its GPUs.
    pub gpu: Arc<GpuType>,
    /// How many nodes.
    pub nodes: u32,
    /// GPUs on each of them, one process for each.
    pub gpus_per_node: u32,
    /// Labels of the nodes, from the cluster description. Those that start with `slurm/` are for Slurm alone.
    pub labels: BTreeMap<String, String>,
}

impl RequestGroup {
    /// Processes of the group.
    pub fn n_ranks(&self) -> u64 {
        u64::from(self.nodes) * u64::from(self.gpus_per_node)
    }
}

impl PlacementRequest {
    /// The request of a plan. The cluster is the one that it was made for: it knows what the names of the plan mean.
    pub fn from_plan(plan: &Plan, cluster: &Cluster) -> Result<Self, Diagnostics> {
        let mut faults = Vec::new();
        let mut groups = Vec::new();
        for group in plan.groups.values() {
            let at = Place::Entity(format!("placement group `{}`", group.name));
            let known = cluster.group(&group.name).map(|id| &cluster.groups[id]);
            let Some(known) = known.filter(|known| known.gpu.name == group.gpu) else {
                let message = format!("cluster `{}` has no group `{}` of `{}`", cluster.name, group.name, group.gpu);
                let help = "request the plan with the cluster description that it was compiled for";
                faults.push(Diagnostic::error(codes::NOT_IN_CLUSTER, message).at(at, "not there").with_help(help));
                continue;
            };
            let request = RequestGroup {
                name: group.name.clone(),
                gpu: Arc::clone(&known.gpu),
                nodes: group.locality.nodes,
                gpus_per_node: group.locality.gpus_per_node,
                labels: known.labels.clone(),
            };
            if request.n_ranks() != u64::from(group.count) {
                let (nodes, each) = (request.nodes, request.gpus_per_node);
                let message =
                    format!("group `{}` has {} GPUs, but {nodes} x {each} on its nodes", group.name, group.count);
                faults.push(Diagnostic::error(codes::UNEVEN_GROUP, message).at(at, "does not add up"));
            }
            groups.push(request);
        }
        let name = format!("{}-{}", plan.header.model, plan.header.cluster);
        if faults.is_empty() { Ok(Self { name, groups }) } else { Err(faults) }
    }

    /// Processes of the job.
    pub fn n_ranks(&self) -> u64 {
        self.groups.iter().map(RequestGroup::n_ranks).sum()
    }

    /// How many GPUs and groups, for people.
    pub(super) fn size_in_words(&self) -> String {
        let counted = |n: u64, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
        format!("{} in {}", counted(self.n_ranks(), "GPU"), counted(self.groups.len() as u64, "group"))
    }

    /// Every group with the number of processes before it.
    pub(super) fn with_first_processes(&self) -> impl Iterator<Item = (&RequestGroup, u64)> {
        self.groups.iter().scan(0, |next, group| {
            let first = *next;
            *next += group.n_ranks();
            Some((group, first))
        })
    }
}
