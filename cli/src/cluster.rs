//! Reads cluster descriptions from files, whatever wrote them.

use crate::failure::{Failure, NOT_MEASURED, unreadable};
use crate::units::plural;
use std::path::{Path, PathBuf};
use trainc_ir::plan::Plan;
use trainc_ir::{BlockTimes, Cluster, ClusterFile, Diagnostic, Diagnostics, ImportOptions, Imported, Profile};
use trainc_passes::plan::shortlist;
use trainc_passes::plan::simulate::unmeasured;

/// Groups of equal nodes.
const EQUAL_GROUPS: &str = "N0606";
/// More unlike groups than a search can look at.
const MANY_GROUPS: &str = "N0607";
/// GPUs that no program can be emitted for.
const ESTIMATED_ONLY: &str = "N0608";

/// Every code of this module with its meaning in one line, in order.
pub(crate) const PLANNED_CLUSTER_CODES: [(&str, &str); 3] = [
    (EQUAL_GROUPS, "groups of equal nodes are planned with as one group, which has the name of the first of them"),
    (
        MANY_GROUPS,
        "of very many unlike groups only the most promising are planned with: fast types and large nodes first",
    ),
    (ESTIMATED_ONLY, "the plan is on GPUs that trainc can estimate, but emits no programs for"),
];

/// Block times of a profile that are listed.
const MOST_BLOCKS: usize = 4;

/// Bytes of files that are read at all; the reader has narrower limits.
const MOST_BYTES: u64 = 1 << 31;

/// Reads a cluster from one file or from several that belong together: a description in TOML, or what a scheduler says
/// of its nodes.
///
/// # Errors
/// A file cannot be read, or describes no cluster.
pub fn read_cluster(files: &[PathBuf], options: &ImportOptions) -> Result<Imported, Failure> {
    let mut contents = Vec::new();
    for file in files {
        contents.push((file.display().to_string(), bytes(file)?));
    }
    let files: Vec<ClusterFile<'_>> = contents.iter().map(|(name, bytes)| ClusterFile { name, bytes }).collect();
    Ok(Imported::read(&files, options)?)
}

/// The cluster with the measured times of a profile in place of modelled ones, and the text of the profile.
pub(crate) fn with_profile(cluster: Cluster, file: Option<&Path>) -> Result<(Cluster, Option<String>), Failure> {
    let Some(file) = file else { return Ok((cluster, None)) };
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| unreadable("profile", file, &error))?;
    let profile = Profile::read(&name, &text)?;
    Ok((cluster.profiled(&name, &profile)?, Some(text)))
}

/// Says for which blocks of a plan a profile has no times, although it has times of blocks of their GPU types.
pub(crate) fn not_measured(plan: &Plan, cluster: &Cluster) -> Vec<Diagnostic> {
    let mut seen: Vec<&str> = Vec::new();
    let mut notes = Vec::new();
    for group in plan.groups.values() {
        let Some(of) = cluster.group(&group.name) else { continue };
        let gpu = &cluster.groups[of].gpu;
        let shapes = unmeasured(plan, gpu);
        let (Some(profile), Some(first)) = (&gpu.profile, shapes.first()) else { continue };
        if seen.contains(&gpu.name.as_str()) {
            continue;
        }
        seen.push(&gpu.name);
        let names: Vec<String> = shapes.iter().map(|shape| format!("`{}`", shape.name)).collect();
        let message = format!("the profile has no times of {} on `{}`: they are modelled", names.join(", "), gpu.name);
        let wanted = format!(
            "the plan's micro-batches have {} of length {}",
            plural(first.micro_batch, "sample", "samples"),
            first.seq
        );
        let mut has: Vec<String> = profile.blocks.iter().map(described).collect();
        has.dedup();
        let more = has.len().saturating_sub(MOST_BLOCKS);
        has.truncate(MOST_BLOCKS);
        let more = if more > 0 { format!(", and {more} others") } else { String::new() };
        let help = "give times of these blocks, as docs/cost.md shows, or bind the batch to a size that was measured";
        let diagnostic = Diagnostic::warning(NOT_MEASURED, message)
            .with_note(wanted)
            .with_note(format!("the profile has {}{more}", has.join(", ")));
        notes.push(diagnostic.with_help(help));
    }
    notes
}

/// What block times are of.
fn described(times: &BlockTimes) -> String {
    let name = times.name.as_ref().map_or_else(|| "any block".to_owned(), |name| format!("`{name}`"));
    let seq = times.seq.map(|seq| format!(" of length {seq}")).unwrap_or_default();
    format!("{name} with {}{seq}", plural(times.micro_batch, "sample", "samples"))
}

fn bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |why: &dyn std::fmt::Display| Failure::from(unreadable("cluster description", file, why));
    let size = std::fs::metadata(file).map_err(|error| failed(&error))?.len();
    if size > MOST_BYTES {
        return Err(failed(&format_args!("it has {size} bytes, expected at most {MOST_BYTES}")));
    }
    std::fs::read(file).map_err(|error| failed(&error))
}

/// The groups that a plan is searched on: equal ones as one, and the most promising of very many. Says what that leaves out.
pub(crate) fn shortened(cluster: &Cluster, notes: &mut Diagnostics) -> Cluster {
    let merged = cluster.merged();
    let (before, after) = (cluster.groups.len(), merged.groups.len());
    if after < before {
        let message = format!("{before} groups are planned with as {after}: those of equal nodes as one");
        let help = "give groups labels, regions or links to tell them apart";
        notes.push(Diagnostic::note(EQUAL_GROUPS, message).with_help(help));
    }
    let chosen = shortlist(&merged);
    if chosen.len() == after {
        return merged;
    }
    let names: Vec<String> = chosen.iter().map(|&id| format!("`{}`", merged.groups[id].name)).collect();
    let message = format!("of {after} unlike groups the {} most promising are planned with", names.len());
    let help = "describe a cluster of fewer groups to choose them yourself";
    notes.push(Diagnostic::note(MANY_GROUPS, message).with_note(names.join(", ")).with_help(help));
    merged.only(&chosen)
}

/// Names the GPU types of a plan that no program can be emitted for.
pub(crate) fn estimated_only(cluster: &Cluster, plan: &Plan) -> Vec<Diagnostic> {
    let mut types: Vec<&str> = Vec::new();
    for group in plan.groups.values() {
        let known = cluster.group(&group.name).map(|id| &cluster.groups[id].gpu);
        if known.is_some_and(|gpu| !gpu.cuda) && !types.contains(&group.gpu.as_str()) {
            types.push(&group.gpu);
        }
    }
    let note = |gpu: &&str| {
        let message =
            format!("`{gpu}` is estimated only: trainc emits no programs for it, and `compile` leaves it out");
        Diagnostic::note(ESTIMATED_ONLY, message)
    };
    types.iter().map(note).collect()
}
