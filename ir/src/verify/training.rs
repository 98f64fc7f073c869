//! Rules of the step of a training graph: V13 phases, V14 anchors, V15 leaves, V16 and V17 parameters, V18 outputs,
//! V22 updated buffers.

use super::error::{Entity, Findings, Rule};
use crate::graph::{Def, InputRole, NodeId, Output, OutputRole, ValueId};
use crate::id::SideTable;
use crate::text::{PHASES, spelling};
use crate::training::{Parameter, Phase, TrainingGraph};
use std::collections::BTreeMap;

/// The names and types of the step and its inputs are valid by now (V01 to V12).
pub(super) fn check(training: &TrainingGraph, findings: &mut Findings) {
    phases(training, findings);
    anchors(training, findings);
    leaves(training, findings);
    parameters(training, findings);
    contributions(training, findings);
    outputs(training, findings);
    buffers(training, findings);
}

/// V13.
fn phases(training: &TrainingGraph, findings: &mut Findings) {
    let nodes = training.step.nodes.len();
    if training.forward_nodes > nodes {
        let message = format!("{} nodes are the forward's, but there are {nodes}", training.forward_nodes);
        findings.add(Rule::V13, Entity::Graph, message);
    }
    for id in training.step.nodes.ids() {
        let phase = training.phases[id];
        let message = match phase {
            Phase::Forward if !training.is_forward(id) => format!("{id} is a backward node, but its phase is forward"),
            Phase::InputGrad | Phase::WeightGrad if training.is_forward(id) => {
                format!("{id} is a forward node, but its phase is {}", spelling(&PHASES, phase))
            }
            Phase::Recompute | Phase::Update => {
                format!("the phase {} is for plans and update graphs only", spelling(&PHASES, phase))
            }
            Phase::Forward if training.anchors[id].is_some() => format!("{id} is a forward node, but has an anchor"),
            Phase::Forward | Phase::InputGrad | Phase::WeightGrad => continue,
        };
        findings.add(Rule::V13, Entity::Node(id), message);
    }
}

/// V14.
fn anchors(training: &TrainingGraph, findings: &mut Findings) {
    for id in training.step.nodes.ids().filter(|&id| !training.is_forward(id)) {
        match training.anchors[id] {
            None => findings.add(Rule::V14, Entity::Node(id), format!("the backward node {id} has no anchor")),
            Some(anchor) if !training.is_forward(anchor) => {
                findings.add(Rule::V14, Entity::Node(id), format!("the anchor {anchor} of {id} is not a forward node"));
            }
            Some(_) => {}
        }
    }
}

/// V15.
fn leaves(training: &TrainingGraph, findings: &mut Findings) {
    for (id, node) in training.step.nodes.iter().filter(|(id, _)| training.phases[*id] != Phase::WeightGrad) {
        for &value in &node.inputs {
            if let Some(producer) = training.step.producer(value)
                && training.phases[producer] == Phase::WeightGrad
            {
                let message = format!("{id} reads {value}, a result of the weight gradient {producer}");
                findings.add(Rule::V15, Entity::Node(id), message);
            }
        }
    }
}

/// V16.
fn parameters(training: &TrainingGraph, findings: &mut Findings) {
    let inputs = training.step.inputs.iter().filter(|input| input.role == InputRole::Parameter);
    let mut inputs = inputs.map(|input| (input.name.as_str(), input.value));
    for (id, parameter) in training.parameters.iter() {
        let found = (parameter.name.as_str(), parameter.input);
        let at = Entity::Parameter(id);
        match inputs.next() {
            Some(expected) if expected == found => {}
            Some((name, value)) => {
                let message = format!("expected {name:?} ({value}), found {:?} ({})", found.0, found.1);
                findings.add(Rule::V16, at, message);
            }
            None => findings.add(Rule::V16, at, format!("the step has no more parameters, found {:?}", found.0)),
        }
    }
    for (name, value) in inputs {
        findings.add(Rule::V16, Entity::Graph, format!("the parameter {name:?} ({value}) is not listed"));
    }
}

/// V17.
fn contributions(training: &TrainingGraph, findings: &mut Findings) {
    for (id, parameter) in training.parameters.iter() {
        for message in wrong_contributions(training, parameter) {
            findings.add(Rule::V17, Entity::Parameter(id), message);
        }
    }
}

fn wrong_contributions(training: &TrainingGraph, parameter: &Parameter) -> Vec<String> {
    let mut messages = Vec::new();
    let step = &training.step;
    let Some(input) = step.values.get(parameter.input) else {
        return vec![format!("the input {} does not exist", parameter.input)];
    };
    let mut last = None;
    for (k, contribution) in parameter.contributions.iter().enumerate() {
        let (value, user) = (contribution.value, contribution.user);
        match step.values.get(value) {
            None => messages.push(format!("contribution {k} ({value}) does not exist")),
            Some(found) if found.ty != input.ty => {
                messages
                    .push(format!("contribution {k} ({value}) has the type {}, the parameter {}", found.ty, input.ty));
            }
            Some(_) => {}
        }
        let reads = step.nodes.get(user).is_some_and(|node| node.inputs.contains(&parameter.input));
        if !training.is_forward(user) || !reads {
            messages.push(format!("{user} of contribution {k} is not a forward node that reads {}", parameter.input));
        }
        if last > Some(user) {
            messages.push(format!("contribution {k} (of {user}) stands after one of a later use"));
        }
        last = Some(user);
    }
    messages
}

/// V18.
fn outputs(training: &TrainingGraph, findings: &mut Findings) {
    let step = &training.step;
    let mut gradients = BTreeMap::new();
    for parameter in training.parameters.values() {
        for (k, contribution) in parameter.contributions.iter().enumerate() {
            gradients.insert(format!("grad.{}.{k}", parameter.name), contribution.value);
        }
    }
    for (name, role) in [("loss_sum", OutputRole::LossSum), ("loss_count", OutputRole::LossCount)] {
        if !step.outputs.iter().any(|output| output.name == name && output.role == role) {
            findings.add(Rule::V18, Entity::Graph, format!("the output `{name}` is missing"));
        }
    }
    for (i, output) in step.outputs.iter().enumerate() {
        let at = Entity::Output(i);
        match output.role {
            OutputRole::LossSum | OutputRole::LossCount | OutputRole::Updated => {}
            OutputRole::Prediction => findings.add(Rule::V18, at, "a step gives out no predictions"),
            OutputRole::Gradient => match gradients.remove(&output.name) {
                Some(value) if value == output.value => {}
                Some(value) => {
                    findings.add(Rule::V18, at, format!("{:?} is {value}, found {}", output.name, output.value));
                }
                None => findings.add(Rule::V18, at, format!("{:?} is the name of no contribution", output.name)),
            },
        }
    }
    for (name, value) in gradients {
        findings.add(Rule::V18, Entity::Graph, format!("the contribution {value} is not given out as {name:?}"));
    }
}

/// V22.
fn buffers(training: &TrainingGraph, findings: &mut Findings) {
    let users = training.step.users();
    for (i, output) in training.step.outputs.iter().enumerate() {
        if output.role == OutputRole::Updated
            && let Err(message) = buffer(training, &users, output)
        {
            findings.add(Rule::V22, Entity::Output(i), message);
        }
    }
}

fn buffer(training: &TrainingGraph, users: &SideTable<ValueId, Vec<NodeId>>, output: &Output) -> Result<(), String> {
    let (step, name) = (&training.step, &output.name);
    let input = step.input(name).filter(|input| input.role == InputRole::Buffer);
    let Some(input) = input else { return Err(format!("{name:?} is the name of no buffer")) };
    let Def::Result { node, index } = step.values[output.value].def else {
        return Err(format!("{name:?} is not updated: {} is an input", output.value));
    };
    let operands = &step.nodes[node].inputs;
    let replaces = |&(result, operand): &(usize, usize)| result == index && operands.get(operand) == Some(&input.value);
    if !training.is_forward(node) || !step.nodes[node].op.in_place().iter().any(replaces) {
        return Err(format!("{node} gives no next value of {name:?} in place"));
    }
    if users[input.value] != [node] {
        return Err(format!("{name:?} has the readers {:?}, expected only {node}", users[input.value]));
    }
    match users[output.value].first() {
        Some(reader) => Err(format!("{reader} reads {}, the next value of {name:?}", output.value)),
        None => Ok(()),
    }
}
