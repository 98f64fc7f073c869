//! Reads descriptions of unequal pipeline stages.

use crate::failure::{BAD_STAGES, Failure, unreadable};
use serde::Deserialize;
use std::path::Path;
use trainc_ir::{Diagnostic, Place};
use trainc_passes::schedule::{Boundary, Costs, StageCost, Unequal};

/// Stages in the form of a file. Times are in any unit, bytes are those of one micro-batch.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    micro_batches: u64,
    /// Bytes of activations that each rank has room for; without it all.
    room: Option<Vec<u64>>,
    stage: Vec<Stage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Stage {
    rank: Option<usize>,
    forward: u64,
    backward: u64,
    /// Time of the halves of the backward, both or none.
    input_grad: Option<u64>,
    weight_grad: Option<u64>,
    #[serde(default)]
    recompute: u64,
    #[serde(default)]
    keeps: u64,
    #[serde(default)]
    keeps_for_weights: u64,
    /// Time to the next stage, and of the gradient's way back from it.
    #[serde(default)]
    send: u64,
    #[serde(default)]
    send_back: u64,
}

/// Sum of the times of all work, and of the bytes, that can be counted with room to spare.
const MOST: u128 = 1 << 60;

/// The time of everything that a stage does for a micro-batch, in every form that it may take.
fn times(stage: &Stage) -> u128 {
    let halves = [stage.input_grad, stage.weight_grad].into_iter().flatten();
    let whole = [stage.forward, stage.backward, stage.recompute, stage.send, stage.send_back];
    whole.into_iter().chain(halves).map(u128::from).sum()
}

/// A figure of all stages and micro-batches together.
fn sum(file: &File, of: impl Fn(&Stage) -> u128) -> u128 {
    file.stage.iter().map(of).sum::<u128>().saturating_mul(u128::from(file.micro_batches))
}

/// Reads a description. Backwards may be split where all stages have times for both halves.
///
/// # Errors
/// The file cannot be read, or describes no stages.
pub fn read_stages(path: &Path) -> Result<Unequal, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| unreadable("stages", path, &error))?;
    let file: File = toml::from_str(&text).map_err(|error| {
        let diagnostic = Diagnostic::error(BAD_STAGES, format!("`{name}` does not describe stages"));
        let why = error.message().trim().to_owned();
        Failure::input(match error.span() {
            Some(span) => diagnostic.at(Place::Source { file: name.clone(), start: span.start, end: span.end }, why),
            None => diagnostic.with_note(why),
        })
    })?;
    let bad = |message: String| Failure::input(Diagnostic::error(BAD_STAGES, message));
    let rank_of: Vec<usize> = file.stage.iter().enumerate().map(|(i, stage)| stage.rank.unwrap_or(i)).collect();
    let n_ranks = rank_of.iter().max().map_or(0, |last| last.saturating_add(1));
    if n_ranks > rank_of.len() {
        let (stages, last) = (rank_of.len(), n_ranks - 1);
        return Err(bad(format!("`{name}` has a rank {last}, but {stages} stages: ranks are counted from 0")));
    }
    let room_bytes = file.room.clone().unwrap_or_else(|| vec![u64::MAX; n_ranks]);
    if room_bytes.len() != n_ranks {
        return Err(bad(format!("`{name}` has room for {} ranks, expected {n_ranks}", room_bytes.len())));
    }
    let halves = |stage: &Stage| stage.input_grad.is_some() && stage.weight_grad.is_some();
    if let Some(half) = file.stage.iter().position(|stage| stage.input_grad.is_some() != stage.weight_grad.is_some()) {
        let message =
            format!("stage {half} of `{name}` has one of `input-grad` and `weight-grad`: expected both or none");
        return Err(bad(message));
    }
    for (what, most) in [("times", sum(&file, times)), ("bytes", sum(&file, |stage| stage.keeps.into()))] {
        if most > MOST {
            return Err(bad(format!(
                "the {what} of all stages and micro-batches of `{name}` are {most}, at most {MOST}"
            )));
        }
    }
    if let Some(more) = file.stage.iter().position(|stage| stage.keeps_for_weights > stage.keeps) {
        let message =
            format!("stage {more} of `{name}` keeps more between the halves of its backward than before them");
        return Err(bad(message));
    }
    let cost = |stage: &Stage| StageCost {
        forward_ps: stage.forward,
        backward_ps: stage.backward,
        input_grad_ps: stage.input_grad.unwrap_or(stage.backward),
        weight_grad_ps: stage.weight_grad.unwrap_or(0),
        recompute_ps: stage.recompute,
        kept_bytes: stage.keeps,
        kept_for_weights_bytes: stage.keeps_for_weights,
    };
    let last = file.stage.len().saturating_sub(1);
    let boundary = |stage: &Stage| Boundary { forward_ps: stage.send, backward_ps: stage.send_back };
    Ok(Unequal {
        rank_of,
        micro_batches: file.micro_batches,
        costs: Costs {
            stages: file.stage.iter().map(cost).collect(),
            boundaries: file.stage[..last].iter().map(boundary).collect(),
            traffic: None,
        },
        room_bytes,
        split: file.stage.iter().all(halves),
    })
}
