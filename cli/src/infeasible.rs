//! Why nothing fits, in words: what is missing, and the nearest changes that would fit.

use crate::failure::{Failure, FailureKind};
use crate::options::{CompileOptions, ModelOptions};
use crate::prepare::{Prepared, batch_of, prepare};
use crate::units::{bytes, count, plural};
use std::ops::Range;
use trainc_ir::plan::Header;
use trainc_ir::{Cluster, Diagnostic, TrainingGraph};
use trainc_passes::analysis::blocks::blocks;
use trainc_passes::plan::partition::{Change, Infeasible, Reason, RecomputePolicy, Stages};
use trainc_passes::plan::{PlanOptions, plan};

/// The GPUs of every group are ruled out.
const NO_USABLE_GPU: &str = "E0601";
/// More stages than the model can be cut into.
const TOO_FEW_UNITS: &str = "E0602";
/// More stages than GPUs.
const TOO_FEW_GPUS: &str = "E0603";
/// Groups that are not linked.
const NOT_CONNECTED: &str = "E0604";
/// Too little memory.
const NO_MEMORY: &str = "E0605";

/// No such schedule.
const NO_SCHEDULE: &str = "E0609";

/// Every code of a failed plan with its meaning in one line, in order.
pub(crate) const PLAN_CODES: [(&str, &str); 6] = [
    (NO_USABLE_GPU, "no GPU of the cluster can run the model: the message says why for every group"),
    (TOO_FEW_UNITS, "more pipeline stages are asked for than the model has units that can be cut apart"),
    (TOO_FEW_GPUS, "more pipeline stages are asked for than there are GPUs that can be used"),
    (NOT_CONNECTED, "the groups of the cluster are not linked as the stages would need"),
    (NO_MEMORY, "the model fits on no division of the cluster: the message says what is missing and what would fit"),
    (NO_SCHEDULE, "the schedule does not exist for this number of ranks, stages per rank and micro-batches"),
];

/// Smaller micro-batches that are tried before giving up.
const MAX_TRIES: usize = 6;

/// The failure of a plan that does not exist.
pub(crate) fn failure(
    why: &Infeasible,
    cluster: &Cluster,
    prepared: &Prepared,
    options: &CompileOptions,
    plan_options: &PlanOptions,
) -> Failure {
    let names = unit_names(prepared.training.graph());
    let mut diagnostic = reason(&why.reason, cluster, &names);
    let mut changes = why.changes.clone();
    if matches!(why.reason, Reason::Memory { .. })
        && let Some(size) = smaller_batch(cluster, prepared, options, plan_options)
    {
        changes.insert(0, Change::MicroBatch(size));
    }
    let mut texts = changes.iter().map(|change| change_text(change, prepared, &options.model, plan_options));
    if let Some(nearest) = texts.next() {
        diagnostic = diagnostic.with_help(format!("the nearest change that fits: {nearest}"));
        for other in texts {
            diagnostic = diagnostic.with_note(format!("this would fit too: {other}"));
        }
    }
    let kind = match why.reason {
        // Whatever the cluster, the options name no schedule.
        Reason::NoSchedule(_) => FailureKind::Usage,
        Reason::NoUsableGpu(_)
        | Reason::TooFewUnits { .. }
        | Reason::TooFewGpus { .. }
        | Reason::NotConnected { .. }
        | Reason::Memory { .. } => FailureKind::Infeasible,
    };
    Failure::new(kind, diagnostic)
}

fn unit_names(training: &TrainingGraph) -> Vec<String> {
    blocks(&training.step, training.forward_nodes).units.into_iter().map(|unit| unit.name).collect()
}

fn reason(reason: &Reason, cluster: &Cluster, names: &[String]) -> Diagnostic {
    match reason {
        Reason::NoUsableGpu(groups) => {
            let message = format!("no GPU of cluster `{}` can run the model", cluster.name);
            let note = |(id, why): &(trainc_ir::NodeGroupId, String)| {
                format!("group `{}` of {}: {why}", cluster.groups[*id].name, cluster.groups[*id].gpu.name)
            };
            let told = groups.iter().map(note).fold(Diagnostic::error(NO_USABLE_GPU, message), Diagnostic::with_note);
            let only_estimated = groups.iter().any(|(id, _)| !cluster.groups[*id].gpu.cuda);
            if only_estimated { told.with_help("`trainc estimate` plans on GPUs without CUDA too") } else { told }
        }
        Reason::TooFewUnits { asked, units } => {
            let message = format!("expected at most {units} stages, one for each unit of the model, found {asked}");
            let help = "give fewer with --pp, or with --loops where ranks have several stages";
            let units = format!("the units are {}", join_units(names));
            Diagnostic::error(TOO_FEW_UNITS, message).with_note(units).with_help(help)
        }
        Reason::TooFewGpus { asked, usable } => {
            let message = format!("{asked} stages need {asked} GPUs, cluster `{}` has {usable}", cluster.name);
            Diagnostic::error(TOO_FEW_GPUS, message)
        }
        Reason::NoSchedule(error) => Diagnostic::error(NO_SCHEDULE, error.to_string())
            .with_help("choose another --schedule, or other numbers with --pp, --loops and --micro-batches"),
        Reason::NotConnected { n_stages } => {
            let message = format!("the groups of cluster `{}` are not linked as {n_stages} stages need", cluster.name);
            Diagnostic::error(NOT_CONNECTED, message)
        }
        Reason::Memory { n_stages, stage, units, group, needed_bytes, available_bytes } => {
            let (needed, available) = (*needed_bytes, *available_bytes);
            let group = &cluster.groups[*group];
            let stages = plural(*n_stages as u64, "stage", "stages");
            let holds = join_units(names.get(Range::clone(units)).unwrap_or_default());
            let message = format!(
                "no plan fits cluster `{}`: of {stages}, stage {stage} lacks {} on its {}",
                cluster.name,
                bytes(needed.saturating_sub(available)),
                group.gpu.name
            );
            Diagnostic::error(NO_MEMORY, message)
                .with_note(format!("stage {stage} holds {holds} and is in group `{}`", group.name))
                .with_note(format!(
                    "it needs {} bytes with context and buffers of libraries, a program sees {} of the GPU: {} are missing",
                    count(needed),
                    count(available),
                    count(needed.saturating_sub(available))
                ))
        }
    }
}

/// One change in the words of the command line.
fn change_text(change: &Change, prepared: &Prepared, model: &ModelOptions, options: &PlanOptions) -> String {
    match change {
        Change::Recompute(policy) => match policy {
            RecomputePolicy::None => "--recompute none".to_owned(),
            RecomputePolicy::Full => "--recompute full".to_owned(),
            RecomputePolicy::Fit => "--recompute fit, which recomputes as little as fits".to_owned(),
        },
        Change::Stages(n) => match options.stages {
            Stages::Forced(_) => format!("--pp {n}"),
            Stages::Best { max: _ } => format!("{n} stages, with --pp {n}"),
        },
        Change::MoreGpus { stages } => format!("{stages} GPUs of the same types, with --pp {stages}"),
        Change::Memory { stages: 1, bytes: n } => {
            format!("one GPU of {} ({} bytes)", bytes(*n), count(*n))
        }
        Change::Memory { stages, bytes: n } => {
            format!("{stages} GPUs of {} each ({} bytes)", bytes(*n), count(*n))
        }
        Change::MicroBatch(size) => {
            let samples = samples(prepared);
            let how = match batch_name(model) {
                Some(name) => format!("--bind {name}={size}"),
                None => format!("--global-batch {samples}"),
            };
            format!("micro-batches of {size}, with {how} --micro-batches {}", samples / size)
        }
    }
}

/// Samples of a step.
fn samples(prepared: &Prepared) -> u64 {
    batch_of(&prepared.training.step).unwrap_or(1).saturating_mul(prepared.micro_batches)
}

/// The name by which the batch is bound.
fn batch_name(model: &ModelOptions) -> Option<String> {
    model.bindings.keys().find(|name| name.to_lowercase().contains("batch")).cloned()
}

/// The largest smaller micro-batch that divides the present one and fits, with the samples of a step unchanged.
fn smaller_batch(
    cluster: &Cluster,
    prepared: &Prepared,
    options: &CompileOptions,
    plan_options: &PlanOptions,
) -> Option<u64> {
    let batch = batch_of(&prepared.training.step)?;
    let samples = samples(prepared);
    let divisors = (1..batch).rev().filter(|size| batch.is_multiple_of(*size));
    divisors.take(MAX_TRIES).find(|&size| {
        let micro_batches = samples / size;
        let mut bindings = options.model.bindings.clone();
        if let Some(name) = batch_name(&options.model) {
            bindings.remove(&name);
        }
        let model = ModelOptions {
            micro_batches: Some(micro_batches),
            global_batch: Some(samples),
            bindings,
            ..options.model.clone()
        };
        let Ok(smaller) = prepare(&model, &mut |_| {}) else { return false };
        let plan_options = PlanOptions { micro_batches, ..*plan_options };
        plan(smaller.training.graph(), cluster, &plan_options, &Header::default()).is_ok()
    })
}

/// Names of units, with neighbouring numbers joined: `embedding, blocks 0-3`.
pub fn join_units(names: &[String]) -> String {
    let mut parts: Vec<(String, Option<(u64, u64)>)> = Vec::new();
    for name in names {
        let numbered = name.rsplit_once(' ').and_then(|(word, n)| n.parse::<u64>().ok().map(|n| (word, n)));
        match (numbered, parts.last_mut()) {
            (Some((word, n)), Some((last, Some((_, end))))) if last == word && *end + 1 == n => *end = n,
            (Some((word, n)), _) => parts.push((word.to_owned(), Some((n, n)))),
            (None, _) => parts.push((name.clone(), None)),
        }
    }
    let texts = parts.into_iter().map(|(word, range)| match range {
        None => word,
        Some((first, last)) if first == last => format!("{word} {first}"),
        Some((first, last)) => format!("{word}s {first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::join_units;

    #[test]
    fn neighbours_are_joined() {
        let join = |names: &[&str]| join_units(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(join(&["embedding", "block 0", "block 1", "block 2"]), "embedding, blocks 0-2");
        assert_eq!(join(&["block 3", "head"]), "block 3, head");
        assert_eq!(join(&["block 3", "block 5", "part 6"]), "block 3, block 5, part 6");
        assert_eq!(join(&[]), "");
    }
}
