//! Measured times of blocks in place of those that the cost model gives the segments of a plan.

use crate::plan::cost::HardwareSpec;
use crate::plan::profile::{BlockShape, block_name};
use std::collections::BTreeMap;
use trainc_ir::plan::Plan;
use trainc_ir::{GpuType, Phase};

/// Times of the calls of each segment; `Err` where the GPU cannot run it.
type Times = Vec<Result<u64, String>>;

/// Replaces the times of the segments of blocks that a profile has times for. Where the backward is divided, its parts
/// share the measured time as they share the modelled one.
pub(super) fn replace(plan: &Plan, spec: &HardwareSpec, times: &mut Times) {
    if spec.profile.is_none() {
        return;
    }
    let Some((micro_batch, seq)) = shape(plan) else { return };
    let modelled: BTreeMap<&str, u64> = plan
        .segments
        .values()
        .zip(times.iter())
        .filter_map(|(segment, time)| Some((segment.name.as_str(), *time.as_ref().ok()?)))
        .collect();
    let mut replaced = times.clone();
    for (segment, time) in plan.segments.values().zip(&mut replaced) {
        let (Some((block, part)), Ok(time)) = (segment.name.rsplit_once('.'), time) else { continue };
        if !plan.prediction.blocks.iter().any(|class| block_name(&class.name) == block) {
            continue;
        }
        let shape = BlockShape { name: block.to_owned(), micro_batch, seq };
        let Some(measured) = spec.measured(&shape) else { continue };
        *time = match segment.phase {
            Phase::Forward | Phase::Recompute => measured.forward_ps,
            Phase::InputGrad | Phase::WeightGrad => {
                let other = match part {
                    "input_grad" => "weight_grad",
                    "weight_grad" => "input_grad",
                    _ => "",
                };
                let other = modelled.get(format!("{block}.{other}").as_str()).copied().unwrap_or(0);
                share(measured.backward_ps, *time, other)
            }
            Phase::Update => *time,
        };
    }
    *times = replaced;
}

/// The classes of blocks of a plan that a GPU type has no measured times for, although its profile has times of blocks.
pub fn unmeasured(plan: &Plan, gpu: &GpuType) -> Vec<BlockShape> {
    let Some(profile) = gpu.profile.as_ref().filter(|profile| !profile.blocks.is_empty()) else { return Vec::new() };
    let Some((micro_batch, seq)) = shape(plan) else { return Vec::new() };
    let names = plan.prediction.blocks.iter().map(|class| block_name(&class.name));
    let shapes = names.map(|name| BlockShape { name, micro_batch, seq });
    shapes.filter(|shape| profile.block(&shape.name, micro_batch, seq).is_none()).collect()
}

/// Samples of a micro-batch and tokens of a sample.
fn shape(plan: &Plan) -> Option<(u64, u64)> {
    let samples = plan.prediction.samples;
    Some((samples.checked_div(plan.micro_batches)?, plan.prediction.tokens.checked_div(samples)?))
}

/// `time * own / (own + other)`.
fn share(time: u64, own: u64, other: u64) -> u64 {
    match u128::from(own) + u128::from(other) {
        0 => time,
        both => (u128::from(time) * u128::from(own) / both) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn parts_share_as_their_own_times_do() {
        assert_eq!((share(90, 2, 1), share(90, 1, 2), share(90, 5, 0), share(90, 0, 0)), (60, 30, 90, 90));
    }
}
