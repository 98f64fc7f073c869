//! What a rank does once per step: zeroing sums, collecting gradients of shared parameters, updating.

use super::facts::Facts;
use super::segments::{Key, Pool, sum_name};
use super::stage::{Act, BufferDraft, Context, Draft, Lane, PortKey, RankDraft};
use std::collections::{BTreeMap, BTreeSet};
use trainc_ir::op::Op;
use trainc_ir::plan::{Access, BufferKind};
use trainc_ir::{Def, InputRole, NodeId, ParameterId, TrainingGraph, Type, ValueId};

/// The ranks that use a parameter, and the contributions that each of them makes.
pub(crate) fn holders(context: &Context<'_, '_>, parameter: ParameterId) -> Vec<(usize, Vec<usize>)> {
    let facts = context.facts;
    let input = facts.training.parameters[parameter].input;
    let readers = facts.forward_readers[input].iter().chain(&facts.backward_readers[input]);
    let ranks: BTreeSet<usize> = readers.filter_map(|&unit| context.rank_of_unit(unit)).collect();
    let made = |rank: usize| {
        let made = facts.made_in[parameter].iter().enumerate();
        made.filter(|(_, unit)| context.rank_of_unit(**unit) == Some(rank)).map(|(index, _)| index).collect()
    };
    ranks.into_iter().map(|rank| (rank, made(rank))).collect()
}

/// Whether an all-reduce over the holders adds the contributions in their order: every holder has one, in the order of
/// the ranks.
pub(crate) fn reducible(holders: &[(usize, Vec<usize>)]) -> bool {
    holders.iter().enumerate().all(|(i, (_, made))| made[..] == [i])
}

pub(crate) fn epilogue(context: &Context<'_, '_>, rank: usize, pool: &mut Pool, draft: &mut RankDraft) {
    let training = context.facts.training;
    share_count(context, rank, draft);
    let mut updates = Vec::new();
    let inputs = update_inputs(training);
    for (id, parameter) in training.parameters.iter().filter(|(_, p)| !p.contributions.is_empty()) {
        let holders = holders(context, id);
        if !holders.iter().any(|(holder, _)| *holder == rank) {
            continue;
        }
        let reduced = holders.len() > 1 && reducible(&holders);
        let port = || Lane::Port(PortKey::Among(holders.iter().map(|(rank, _)| *rank).collect()));
        if reduced {
            let own = holders.iter().position(|(holder, _)| *holder == rank).unwrap_or(0);
            let key = Key::Named(sum_name(context.facts, id, own));
            draft.epilogue.push(Draft { lane: port(), act: Act::AllReduce, args: vec![(key, Access::Update)] });
        } else if holders.len() > 1 {
            // Every holder gets every sum, so that all of them add in the same order.
            for k in 0..parameter.contributions.len() {
                let root = holders.iter().position(|(_, made)| made.contains(&k)).unwrap_or(0);
                let access = if holders[root].0 == rank { Access::Read } else { Access::Write };
                let args = vec![(Key::Named(sum_name(context.facts, id, k)), access)];
                draft.epilogue.push(Draft { lane: port(), act: Act::Broadcast { root: root as u32 }, args });
            }
        }
        let own = if reduced { holders.iter().position(|(holder, _)| *holder == rank) } else { None };
        updates.push(update(context.facts, id, &inputs, own, pool));
    }
    for (built, buffers) in updates {
        for (key, buffer) in buffers {
            draft.buffers.entry(key).or_insert(buffer);
        }
        draft.epilogue.push(built);
    }
    zero_sums(pool, draft);
    let scalars: Vec<&str> = ["lr", "step"].into_iter().filter(|&s| draft.buffers.contains_key(&named(s))).collect();
    for name in scalars {
        let args = vec![(named(name), Access::Write)];
        draft.prologue.push(Draft { lane: Lane::Load, act: Act::Load(name.to_owned()), args });
    }
}

fn named(name: &str) -> Key {
    Key::Named(name.to_owned())
}

/// The rank with the loss tells the others how many terms it had.
fn share_count(context: &Context<'_, '_>, rank: usize, draft: &mut RankDraft) {
    let p = context.schedule.ranks.len();
    if p == 1 {
        return;
    }
    let root = context.rank_of_unit(context.facts.loss_unit).unwrap_or(p - 1);
    let access = if rank == root { Access::Read } else { Access::Write };
    let ty = Type::scalar(trainc_ir::DType::I64);
    let buffer = BufferDraft { name: "loss_count".to_owned(), ty, kind: BufferKind::Scalar, slots: 1, ahead: 1 };
    draft.buffers.entry(named("loss_count")).or_insert(buffer);
    let lane = Lane::Port(PortKey::Among((0..p).collect()));
    let act = Act::Broadcast { root: root as u32 };
    draft.epilogue.push(Draft { lane, act, args: vec![(named("loss_count"), access)] });
}

/// Zeroes everything that the micro-batches add to.
fn zero_sums(pool: &mut Pool, draft: &mut RankDraft) {
    let args = draft.tasks.iter().flat_map(|task| &task.drafts).flat_map(|d| &d.args);
    // Running averages are updated too, but go on from where the last step left them.
    let is_sum = |key: &&Key| draft.buffers[*key].kind != BufferKind::Parameter;
    let added = args.filter(|(_, access)| *access == Access::Update).map(|(key, _)| key).filter(is_sum);
    let added: BTreeSet<&Key> = added.collect();
    let sums: Vec<(Key, Type)> = added.into_iter().map(|key| (key.clone(), draft.buffers[key].ty.clone())).collect();
    if sums.is_empty() {
        return;
    }
    let built = pool.zeros("zero_sums", &sums);
    let args = built.args.into_iter().map(|key| (key, Access::Write)).collect();
    draft.prologue.push(Draft {
        lane: Lane::Compute,
        act: Act::Call { segment: built.segment, site: 0, unit: None },
        args,
    });
}

/// The nodes of the update graph that lead to the outputs of one parameter, in order, without those that make `given`.
fn update_nodes<'k>(
    training: &TrainingGraph,
    outputs: &[ValueId],
    given: &impl Fn(ValueId) -> Option<&'k Key>,
) -> Vec<NodeId> {
    let graph = &training.update;
    let mut pending = outputs.to_vec();
    let mut nodes = BTreeSet::new();
    while let Some(value) = pending.pop() {
        if given(value).is_some() {
            continue;
        }
        if let Some(node) = graph.producer(value)
            && nodes.insert(node)
        {
            pending.extend(&graph.nodes[node].inputs);
        }
    }
    nodes.into_iter().collect()
}

/// What stands for each input of the update graph.
fn update_inputs(training: &TrainingGraph) -> BTreeMap<ValueId, Key> {
    let key = |name: &str| named(if name == "count" { "loss_count" } else { name });
    training.update.inputs.iter().map(|input| (input.value, key(&input.name))).collect()
}

fn update(
    facts: &Facts<'_>,
    id: ParameterId,
    inputs: &BTreeMap<ValueId, Key>,
    reduced_into: Option<usize>,
    pool: &mut Pool,
) -> (Draft, Vec<(Key, BufferDraft)>) {
    let training = facts.training;
    let graph = &training.update;
    let parameter = &training.parameters[id];
    let mut total = None;
    if let Some(own) = reduced_into {
        let value = total_of(training, facts, id, parameter.contributions.len());
        total = value.map(|value| (value, named(&sum_name(facts, id, own))));
    }
    let given = |value: ValueId| match &total {
        Some((of, key)) if *of == value => Some(key),
        Some(_) | None => inputs.get(&value),
    };
    let node = facts.names.update_outputs.get(parameter.name.as_str()).and_then(|o| graph.producer(o.value));
    let values: Vec<ValueId> = node.map(|node| graph.nodes[node].outputs.clone()).unwrap_or_default();
    let name_of = |v: &ValueId| facts.names.update_results[*v].map(|name| (*v, named(name)));
    let write: BTreeMap<ValueId, Key> = values.iter().filter_map(name_of).collect();
    let values: Vec<ValueId> = write.keys().copied().collect();
    let nodes = update_nodes(training, &values, &given);
    let built =
        pool.update(graph, "update", &nodes, &|v| given(v).expect("what no node makes is given").clone(), &write);
    let mut buffers = Vec::new();
    let formals = pool.segments[built.segment].formals.clone();
    for (key, formal) in built.args.iter().zip(&formals) {
        let Key::Named(input) = key else { continue };
        let kind = match facts.names.update_inputs.get(input.as_str()).map(|i| i.role) {
            Some(InputRole::Parameter) => BufferKind::Parameter,
            Some(InputRole::State) => BufferKind::State,
            Some(InputRole::GradientSum) => BufferKind::Gradient,
            Some(InputRole::Scalar | InputRole::Data | InputRole::Label | InputRole::Buffer) | None => {
                BufferKind::Scalar
            }
        };
        buffers
            .push((key.clone(), BufferDraft { name: input.clone(), ty: formal.ty.clone(), kind, slots: 1, ahead: 1 }));
    }
    let args = built.args.into_iter().zip(formals).map(|(key, formal)| (key, formal.access)).collect();
    (Draft { lane: Lane::Compute, act: Act::Call { segment: built.segment, site: 0, unit: None }, args }, buffers)
}

/// The value of the update graph that is the sum of all contributions of a parameter: the last of a chain of additions.
fn total_of(training: &TrainingGraph, facts: &Facts<'_>, id: ParameterId, n: usize) -> Option<ValueId> {
    let graph = &training.update;
    let input = |k: usize| facts.names.update_inputs.get(sum_name(facts, id, k).as_str()).map(|i| i.value);
    let mut total = input(0)?;
    for k in 1..n {
        let next = input(k)?;
        let node = graph.nodes.iter().find(|(_, node)| node.inputs == [total, next] && is_add(&node.op))?;
        total = node.1.outputs[0];
        debug_assert!(matches!(graph.values[total].def, Def::Result { node: _, index: 0 }));
    }
    Some(total)
}

fn is_add(op: &Op) -> bool {
    matches!(op, Op::Elementwise(trainc_ir::op::Elementwise::Add))
}
