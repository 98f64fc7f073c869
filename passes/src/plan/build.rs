//! Finishes a plan: placement groups, ranks, and what is expected of them.

use super::assemble::{Assembled, assemble};
use super::crossing::StageUnits;
use super::facts::Facts;
use super::profile::UnitProfile;
use crate::schedule::Schedule;
use std::collections::BTreeSet;
use trainc_ir::id::{Id, Table};
use trainc_ir::plan::{
    BlockClass, Breakdown, BufferKind, FORMAT, GroupId, Header, Locality, PlacementGroup, Plan, Prediction, ProgramId,
    Rank, RankPrediction, StreamKind,
};
use trainc_ir::{Cluster, DType, InputRole, NodeGroupId, TrainingGraph};

/// A stage and where its rank runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedStage {
    /// What runs on it.
    pub stage: StageUnits,
    /// The cluster's group that its GPU is taken from.
    pub group: NodeGroupId,
}

/// Builds the plan of a placement under a schedule that was checked and has as many stages. All stages of a rank are in
/// one group. Times are left at zero: simulation fills them in.
pub(crate) fn build(
    facts: &Facts<'_>,
    profiles: &[UnitProfile],
    cluster: &Cluster,
    placed: &[PlacedStage],
    schedule: &Schedule,
    header: Header,
) -> Plan {
    let micro_batches = schedule.micro_batches;
    let stages: Vec<StageUnits> = placed.iter().map(|p| p.stage.clone()).collect();
    let assembled = assemble(facts, &stages, schedule);
    let held: Vec<Held<'_>> = (0..schedule.ranks.len()).map(|rank| Held::new(schedule, placed, rank)).collect();
    let (groups, group_of) = groups(cluster, &held);
    let mut taken = vec![0u32; groups.len()];
    let mut ranks = Table::new();
    for (index, group) in group_of.iter().enumerate() {
        let position = &mut taken[group.index()];
        ranks.push(Rank {
            group: *group,
            index: *position,
            program: ProgramId::from_index(index),
            stage: index as u32,
            data: 0,
            tensor: 0,
            communicators: assembled.ports[index].clone(),
        });
        *position += 1;
    }
    let mut prediction = Prediction { blocks: block_classes(facts, profiles), ..Prediction::default() };
    let (samples, tokens) = batch(facts.training);
    prediction.samples = samples * micro_batches;
    prediction.tokens = tokens * micro_batches;
    for (index, held) in held.iter().enumerate() {
        prediction.ranks.push(rank_prediction(facts, cluster, held, &assembled, index));
    }
    Plan {
        format: FORMAT,
        header,
        micro_batches,
        inputs: assembled.inputs,
        groups,
        ranks,
        communicators: assembled.communicators,
        kernels: assembled.kernels,
        segments: assembled.segments,
        programs: assembled.programs,
        parameters: assembled.parameters,
        prediction,
    }
}

/// What a rank holds.
struct Held<'p> {
    group: NodeGroupId,
    stages: Vec<&'p StageUnits>,
}

impl<'p> Held<'p> {
    fn new(schedule: &Schedule, placed: &'p [PlacedStage], rank: usize) -> Self {
        let mut of_rank = schedule.stages_of(rank).map(|stage| &placed[stage]).peekable();
        let group = of_rank.peek().map_or(NodeGroupId::from_index(0), |first| first.group);
        Self { group, stages: of_rank.map(|placed| &placed.stage).collect() }
    }
}

/// The placement groups in the order of their first ranks, and the one of each rank. Where the ranks of a group are
/// neighbours, as they mostly are, the processes of a job are then numbered as the ranks.
fn groups(cluster: &Cluster, held: &[Held<'_>]) -> (Table<GroupId, PlacementGroup>, Vec<GroupId>) {
    let mut groups = Table::new();
    let mut group_of = vec![GroupId::from_index(0); held.len()];
    let mut seen = BTreeSet::new();
    for id in held.iter().map(|p| p.group).filter(|&group| seen.insert(group)) {
        let group = &cluster.groups[id];
        let members: Vec<usize> = (0..held.len()).filter(|&i| held[i].group == id).collect();
        let count = members.len() as u32;
        let name = group.name.clone();
        let locality = locality(count, group.nodes, group.gpus_per_node);
        let new = groups.push(PlacementGroup { name, gpu: group.gpu.name.clone(), count, locality });
        for member in members {
            group_of[member] = new;
        }
    }
    (groups, group_of)
}

/// The fewest nodes that hold exactly `count` GPUs with equally many on each; where the cluster has no such nodes, whole
/// ones.
fn locality(count: u32, nodes: u32, gpus_per_node: u32) -> Locality {
    let even = (1..=gpus_per_node.min(count)).rev().find(|per| count.is_multiple_of(*per) && count / per <= nodes);
    match even {
        Some(per) => Locality { nodes: count / per, gpus_per_node: per },
        None => Locality { nodes: count.div_ceil(gpus_per_node.max(1)), gpus_per_node },
    }
}

/// Samples and tokens of a micro-batch: the first dimension of its first input, and the elements of its first integer
/// input.
pub(crate) fn batch(training: &TrainingGraph) -> (u64, u64) {
    let mut data = training.step.inputs.iter().filter(|i| i.role == InputRole::Data).map(|i| training.step.ty(i.value));
    let samples = data.clone().next().and_then(|ty| ty.shape.first().copied()).unwrap_or(1);
    let integers = data.find(|ty| matches!(ty.dtype, DType::I64 | DType::I32) && ty.rank() >= 2);
    (samples, integers.map_or(samples, trainc_ir::Type::elements))
}

fn block_classes(facts: &Facts<'_>, profiles: &[UnitProfile]) -> Vec<BlockClass> {
    let of = |class: &crate::analysis::blocks::Class| {
        let first = class.instances[0];
        BlockClass {
            name: class.name.clone(),
            instances: class.instances.len() as u32,
            nodes: facts.blocks.units[first].nodes.len() as u32,
            parameter_bytes: profiles[first].parameters.iter().map(|p| p.weight).sum(),
            saved_bytes: profiles[first].saved_bytes + profiles[first].input_bytes,
        }
    };
    facts.blocks.classes.iter().map(of).collect()
}

fn rank_prediction(
    facts: &Facts<'_>,
    cluster: &Cluster,
    held: &Held<'_>,
    assembled: &Assembled,
    index: usize,
) -> RankPrediction {
    let group = &cluster.groups[held.group];
    let program = &assembled.programs[ProgramId::from_index(index)];
    let sum =
        |kind: BufferKind| -> u64 { program.buffers.values().filter(|b| b.kind == kind).map(|b| b.ty.bytes()).sum() };
    let (parameters, gradients, optimizer) =
        (sum(BufferKind::Parameter), sum(BufferKind::Gradient), sum(BufferKind::State));
    let rest = program.arena_bytes - parameters - gradients - optimizer;
    let saved = assembled.activation_bytes[index].min(rest);
    let sizes: Vec<u32> = assembled.ports[index].iter().map(|&c| assembled.communicators[c].len() as u32).collect();
    let reserve = &group.reserve;
    let streams = program.streams.values().filter(|s| s.kind != StreamKind::Transfer).count() as u64;
    let breakdown = Breakdown {
        parameters,
        gradients,
        optimizer,
        saved,
        transient: rest - saved,
        communication: sizes.iter().map(|&n| reserve.communicator(n)).sum(),
        workspace: reserve.workspace_bytes_per_stream * streams,
        context: reserve.context_bytes,
    };
    let beyond = breakdown.communication + breakdown.workspace + breakdown.context;
    let units = held.stages.iter().flat_map(|stage| stage.units.clone());
    let recomputed = held.stages.iter().flat_map(|stage| &stage.recompute).filter(|&&r| r).count();
    RankPrediction {
        arena_bytes: program.arena_bytes,
        device_bytes: program.arena_bytes + beyond,
        capacity_bytes: group.capacity_bytes(),
        breakdown,
        busy_ps: 0,
        units: units.filter_map(|u| facts.blocks.units.get(u)).map(|u| u.name.clone()).collect(),
        recomputed_blocks: recomputed as u32,
    }
}
