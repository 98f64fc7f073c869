//! Measures what the units of a model do and hold: the profiles that partitioning works on.

use super::build::batch;
use super::crossing::{Crossing, StageUnits};
use super::facts::{Facts, Source, UnitContribution};
use super::flow::Flow;
use super::layout::live::locals_peak;
use super::profile::{BlockShape, ParameterProfile, UnitProfile, Work, block_name};
use super::segments::{Pool, sum_type};
use super::split::split;
use super::stage::{Act, Context, draft};
use crate::schedule::{Schedule, Work as ScheduledWork};
use std::collections::BTreeSet;
use trainc_ir::id::Id;
use trainc_ir::op::Optimizer;
use trainc_ir::plan::KernelCall;
use trainc_ir::{InputRole, NodeId, Phase, Type, ValueId};

/// Profiles of all units for one micro-batch.
pub(crate) fn profiles(facts: &Facts<'_>) -> Vec<UnitProfile> {
    let n_units = facts.forward.len();
    let whole = |recompute: bool| [StageUnits { units: 0..n_units, recompute: vec![recompute; n_units] }];
    let [kept, recomputed] = [whole(false), whole(true)];
    let mut profiles: Vec<UnitProfile> = (0..n_units).map(|unit| holdings(facts, unit)).collect();
    count_crossings(facts, &mut profiles);
    let crossing = Crossing::new(facts, &kept);
    for &value in &crossing.kept {
        if let Some(Source::Forward(unit)) = facts.source[value] {
            profiles[unit].saved_bytes += facts.training.step.ty(value).bytes();
        }
    }
    let full = Crossing::new(facts, &recomputed);
    // What its readers keep anyway is not saved by recomputing.
    for &value in &full.kept {
        if let Some(Source::Forward(unit)) = facts.source[value] {
            let saved = &mut profiles[unit].saved_bytes;
            *saved = saved.saturating_sub(facts.training.step.ty(value).bytes());
        }
    }
    for (unit, profile) in profiles.iter_mut().enumerate() {
        let reads = facts.forward_reads[unit].iter().chain(&facts.backward_reads[unit]);
        let mut from_outside: BTreeSet<ValueId> = reads.copied().filter(|v| full.kept.contains(v)).collect();
        from_outside.retain(|&v| facts.source[v] != Some(Source::Forward(unit)));
        profile.input_bytes = from_outside.iter().map(|&v| facts.training.step.ty(v).bytes()).sum();
    }
    let works = vec![ScheduledWork::forward(0, 0), ScheduledWork::backward(0, 0)];
    let schedule = Schedule { micro_batches: 1, rank_of: vec![0], ranks: vec![works] };
    let flow = Flow::new(&schedule, &[]);
    for (unit, profile) in profiles.iter_mut().enumerate() {
        profile.weight_grad = weight_grad(facts, unit);
    }
    for stages in [&kept, &recomputed] {
        let context = Context { facts, stages, transfers: &[], schedule: &schedule, flow: &flow };
        let mut pool = Pool::default();
        let draft = draft(&context, 0, &mut pool);
        for call in draft.tasks.iter().flat_map(|task| &task.drafts) {
            let Act::Call { segment, site: _, unit: Some(unit) } = call.act else { continue };
            let segment = &pool.segments[segment];
            let profile = &mut profiles[unit];
            let work = || Work::gather(segment.body.iter().map(|call| work(&pool, call)).collect());
            match segment.phase {
                Phase::Forward if stages == &kept => {
                    profile.forward = work();
                    profile.transient_forward = locals_peak(segment);
                }
                Phase::InputGrad | Phase::WeightGrad if stages == &kept => {
                    profile.backward = work();
                    profile.transient_backward = locals_peak(segment);
                }
                // Where there are blocks, they alone are worth recomputing: what comes before and after is held once.
                Phase::Recompute if facts.blocks.classes.is_empty() || profile.class.is_some() => {
                    profile.recompute = work();
                }
                Phase::Forward | Phase::InputGrad | Phase::WeightGrad | Phase::Recompute | Phase::Update => {}
            }
        }
    }
    profiles
}

/// The work of the part of a unit's backward that can be put off.
fn weight_grad(facts: &Facts<'_>, unit: usize) -> Vec<Work> {
    let step = &facts.training.step;
    let [_, late] = split(facts, unit);
    let node = |&id: &NodeId| {
        let node = &step.nodes[id];
        Work::of(&node.op, &step.types(&node.inputs), &step.types(&node.outputs))
    };
    let sum = |contribution: &UnitContribution| {
        let ty = step.ty(contribution.value);
        let sum = sum_type(ty);
        Work::of(&Optimizer::Accumulate.into(), &[&sum, ty], &[&sum])
    };
    Work::gather(late.nodes.iter().map(node).chain(late.contributions.iter().map(sum)).collect())
}

fn work(pool: &Pool, call: &KernelCall) -> Work {
    let kernel = &pool.kernels[call.kernel];
    let inputs: Vec<&Type> = kernel.inputs.iter().collect();
    let outputs: Vec<&Type> = kernel.outputs.iter().collect();
    Work::of(&kernel.op, &inputs, &outputs)
}

/// What a unit holds and passes on, apart from what its kernels need.
fn holdings(facts: &Facts<'_>, unit: usize) -> UnitProfile {
    let step = &facts.training.step;
    let mut profile = UnitProfile {
        name: facts.blocks.units.get(unit).map_or_else(|| "model".to_owned(), |u| u.name.clone()),
        class: facts.blocks.units.get(unit).and_then(|u| u.class),
        ..UnitProfile::default()
    };
    profile.block = profile.class.map(|class| {
        let (samples, tokens) = batch(facts.training);
        let name = block_name(&facts.blocks.classes[class].name);
        BlockShape { name, micro_batch: samples, seq: tokens.checked_div(samples).unwrap_or(0) }
    });
    let reads: BTreeSet<ValueId> =
        facts.forward_reads[unit].iter().chain(&facts.backward_reads[unit]).copied().collect();
    for value in reads {
        match facts.source[value] {
            Some(Source::Held) => {
                let (held, update) = parameter(facts, value);
                profile.update.extend(update);
                profile.parameters.push(held);
            }
            Some(Source::Data) => profile.data_bytes += step.ty(value).bytes(),
            Some(Source::Forward(_) | Source::Backward(_) | Source::Free(_)) | None => {}
        }
    }
    profile.update = Work::gather(std::mem::take(&mut profile.update));
    profile
}

/// Adds the bytes of every value to the cuts that it crosses.
fn count_crossings(facts: &Facts<'_>, profiles: &mut [UnitProfile]) {
    let step = &facts.training.step;
    // What becomes live and what is done with at each cut; sums of them wrap around and come back.
    let mut forward = vec![0u64; profiles.len() + 1];
    let mut backward = forward.clone();
    let span = |changes: &mut [u64], first: usize, end: usize, bytes: u64| {
        changes[first] = changes[first].wrapping_add(bytes);
        changes[end] = changes[end].wrapping_sub(bytes);
    };
    for (id, value) in step.values.iter() {
        let readers = || facts.forward_readers[id].iter().chain(&facts.backward_readers[id]).copied();
        match facts.source[id] {
            Some(Source::Forward(from)) => {
                span(&mut forward, from, readers().fold(from, usize::max), value.ty.bytes());
            }
            Some(Source::Backward(from)) => {
                span(&mut backward, readers().fold(from, usize::min), from, value.ty.bytes());
            }
            Some(Source::Held | Source::Data | Source::Free(_)) | None => {}
        }
    }
    let (mut sent_forward, mut sent_backward) = (0u64, 0u64);
    for (profile, (forward, backward)) in profiles.iter_mut().zip(forward.into_iter().zip(backward)) {
        sent_forward = sent_forward.wrapping_add(forward);
        sent_backward = sent_backward.wrapping_add(backward);
        profile.sent_forward = sent_forward;
        profile.sent_backward = sent_backward;
    }
}

/// What each holder of a parameter needs, and the work of its update.
fn parameter(facts: &Facts<'_>, input: ValueId) -> (ParameterProfile, Vec<Work>) {
    let training = facts.training;
    let ty = training.step.ty(input);
    let found = facts.parameter_of[input].map(|id| (id, &training.parameters[id]));
    let Some((id, parameter)) = found.filter(|(_, p)| !p.contributions.is_empty()) else {
        let id = found.map_or(training.parameters.len() + input.index(), |(id, _)| id.index());
        let held = ParameterProfile { parameter: id as u32, weight: ty.bytes(), gradient: 0, state: 0 };
        return (held, Vec::new());
    };
    let update = &training.update;
    let node = facts.names.update_outputs.get(parameter.name.as_str()).and_then(|o| update.producer(o.value));
    let mut state = 0;
    let mut works = Vec::new();
    if let Some(node) = node.map(|n| &update.nodes[n]) {
        let states = node.inputs.iter().filter(|&&v| update.input_of(v).is_some_and(|i| i.role == InputRole::State));
        state = states.map(|&v| update.ty(v).bytes()).sum();
        works.push(Work::of(&node.op, &update.types(&node.inputs), &update.types(&node.outputs)));
    }
    let gradient = sum_type(ty).bytes();
    (ParameterProfile { parameter: id.index() as u32, weight: ty.bytes(), gradient, state }, works)
}
