//! What a plan remembers of the options it was compiled with, so that its training graph can be made again.

use crate::failure::{BAD_HEADER, Failure};
use crate::options::{CompileOptions, ModelOptions};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::PathBuf;
use trainc_ir::plan::{Digests, Header, Plan};
use trainc_ir::text::print_training;
use trainc_ir::{Diagnostic, TrainingGraph};

/// The keys of the header's options.
const LOSS: &str = "loss";
const OPTIMIZER: &str = "optimizer";
const TRAIN: &str = "train";
const MICRO_BATCH: &str = "micro_batch";
const STAGES: &str = "stages";
const RECOMPUTE: &str = "recompute";
/// The digest of the profile.
const PROFILE: &str = "profile";

/// The header of a plan. Where files lie is not part of it: a plan is the same wherever it is compiled.
pub(crate) fn header(
    options: &CompileOptions,
    (model, digest): (&str, &str),
    (cluster, cluster_text): (&str, &str),
    training: &TrainingGraph,
    micro_batch: Option<u64>,
    profile: Option<&str>,
) -> Header {
    // The planner notes the schedule itself: it may have chosen it.
    let CompileOptions { model: of_model, cluster: _, profile: _, stages, recompute, schedule: _, loops: _ } = options;
    let train = (!of_model.train.is_empty()).then(|| of_model.train.join(","));
    let chosen = [
        (LOSS, of_model.loss.clone()),
        (OPTIMIZER, of_model.optimizer.clone()),
        (TRAIN, train),
        (MICRO_BATCH, micro_batch.map(|n| n.to_string())),
        (STAGES, stages.map(|n| n.to_string())),
        (RECOMPUTE, Some(recompute.name().to_owned())),
        (PROFILE, profile.map(text_digest)),
    ];
    let options = chosen.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
    Header {
        compiler: concat!("trainc ", env!("CARGO_PKG_VERSION")).to_owned(),
        model: model.to_owned(),
        cluster: cluster.to_owned(),
        digests: Digests {
            model: digest.to_owned(),
            training_graph: graph_digest(training),
            cluster: text_digest(cluster_text),
        },
        bindings: of_model.bindings.clone(),
        options,
    }
}

/// The options that make the plan's training graph again.
pub(crate) fn model_options(plan: &Plan, model: PathBuf) -> Result<ModelOptions, Failure> {
    let options: &BTreeMap<String, String> = &plan.header.options;
    let text = |key: &str| options.get(key).cloned();
    let size = match options.get(MICRO_BATCH).map(|text| text.parse::<u64>()) {
        None => None,
        Some(Ok(size)) => Some(size),
        Some(Err(_)) => {
            let message = format!("the plan's header says `{MICRO_BATCH}` is `{}`", options[MICRO_BATCH]);
            return Err(Failure::input(Diagnostic::error(BAD_HEADER, message).with_note("expected a whole number")));
        }
    };
    Ok(ModelOptions {
        model,
        bindings: plan.header.bindings.clone(),
        micro_batches: Some(plan.micro_batches),
        global_batch: size.map(|size| size.saturating_mul(plan.micro_batches)),
        loss: text(LOSS),
        optimizer: text(OPTIMIZER),
        train: text(TRAIN).map(|train| train.split(',').map(str::to_owned).collect()).unwrap_or_default(),
    })
}

/// The digest of a training graph, by its text form.
pub(crate) fn graph_digest(training: &TrainingGraph) -> String {
    text_digest(&print_training(training))
}

/// The digest of a text.
pub(crate) fn text_digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
