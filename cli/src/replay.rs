//! Replays a plan on a cluster: when everything happens, and what the length of a step comes from.

use crate::check::read_plan_file;
use crate::cluster::{not_measured, read_cluster, with_profile};
use crate::failure::{Failure, NOT_REPLAYED, OTHER_CLUSTER};
use crate::folder::plan_file;
use crate::header::text_digest;
use std::path::Path;
use trainc_ir::plan::Plan;
use trainc_ir::{Cluster, Diagnostic, ImportOptions, Imported};
use trainc_passes::plan::simulate::{CriticalStep, Timeline, simulate_critical};

/// A plan that was replayed.
#[derive(Debug)]
pub struct Replayed {
    /// The plan.
    pub plan: Plan,
    /// The cluster it was replayed on.
    pub cluster: Cluster,
    /// When everything happens.
    pub timeline: Timeline,
    /// What the length of the step comes from, from its start to its end.
    pub critical: Vec<CriticalStep>,
    /// Warnings and notes.
    pub notes: Vec<Diagnostic>,
}

/// Replays the plan of a folder or plan file on a cluster. The cluster may be another than the one that the plan was made
/// for, as long as it has groups of the same names: that shows what other GPUs or links would do to this plan.
///
/// # Errors
/// The plan or the cluster cannot be read, or the plan cannot run on the cluster.
pub fn replay(path: &Path, cluster: &Path, profile: Option<&Path>) -> Result<Replayed, Failure> {
    let file = plan_file(path);
    let plan = read_plan_file(&file)?;
    let Imported { cluster, toml: text, mut notes } = read_cluster(&[cluster.to_owned()], &ImportOptions::default())?;
    if plan.header.digests.cluster != text_digest(&text) {
        let message = format!(
            "the plan was made for another description of a cluster, named `{}`: the times are those of this plan on `{}`",
            plan.header.cluster, cluster.name
        );
        let help = "compile the model again for the plan that suits this cluster best";
        notes.push(Diagnostic::note(OTHER_CLUSTER, message).with_help(help));
    }
    let (cluster, _) = with_profile(cluster, profile)?;
    // As the planner sees it: groups of equal nodes are one.
    let cluster = cluster.merged();
    let (timeline, critical) = simulate_critical(&plan, &cluster).map_err(|why| {
        let message = format!("cannot replay `{}` on the cluster `{}`: {why}", file.display(), cluster.name);
        let help = "give the cluster that the plan was made for, or one with groups of the same names; `trainc verify` \
                    says whether the plan itself is sound";
        Failure::input(Diagnostic::error(NOT_REPLAYED, message).with_help(help))
    })?;
    notes.extend(not_measured(&plan, &cluster));
    Ok(Replayed { plan, cluster, timeline, critical, notes })
}
