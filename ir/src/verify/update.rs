//! Rules of the update of a training graph: V19 inputs, V20 outputs, V21 nodes.

use super::error::{Entity, Findings, Rule};
use crate::graph::{Graph, Input, InputRole, Output, OutputRole, ValueId};
use crate::id::Id;
use crate::text::spelling;
use crate::training::{Parameter, TrainingGraph};
use crate::ty::{DType, Type};
use petgraph::unionfind::UnionFind;
use std::collections::BTreeMap;

/// The names and types of the update and its inputs are valid by now (V01 to V12).
pub(super) fn check(training: &TrainingGraph, findings: &mut Findings) {
    inputs(training, findings);
    outputs(&training.update, findings);
    nodes(&training.update, findings);
}

/// The scalars that an update may take.
const SCALARS: [(&str, DType); 3] = [("lr", DType::F32), ("step", DType::I64), ("count", DType::I64)];

/// V19.
fn inputs(training: &TrainingGraph, findings: &mut Findings) {
    let trained: BTreeMap<&str, &Parameter> = training
        .parameters
        .values()
        .filter(|parameter| !parameter.contributions.is_empty())
        .map(|parameter| (parameter.name.as_str(), parameter))
        .collect();
    let mut expected = BTreeMap::new();
    for (name, parameter) in &trained {
        expected.insert((*name).to_owned(), InputRole::Parameter);
        for k in 0..parameter.contributions.len() {
            expected.insert(format!("grad.{name}.{k}"), InputRole::GradientSum);
        }
    }
    for (i, input) in training.update.inputs.iter().enumerate() {
        let ty = training.update.ty(input.value);
        if let Some(message) = wrong_input(training, &trained, input, ty) {
            findings.add(Rule::V19, Entity::Input(i), message);
        }
        if expected.get(&input.name) == Some(&input.role) {
            expected.remove(&input.name);
        }
    }
    for name in expected.keys() {
        findings.add(Rule::V19, Entity::Graph, format!("the input {name:?} is missing"));
    }
}

fn wrong_input(
    training: &TrainingGraph,
    trained: &BTreeMap<&str, &Parameter>,
    input: &Input,
    ty: &Type,
) -> Option<String> {
    let name = &input.name;
    let parameter_type = |parameter: &Parameter| training.step.values.get(parameter.input).map(|value| &value.ty);
    match input.role {
        InputRole::Parameter => match trained.get(name.as_str()) {
            None => Some(format!("{name:?} is no trained parameter")),
            Some(parameter) => {
                let expected = parameter_type(parameter)?;
                (expected != ty).then(|| format!("{name:?} has the type {expected} in the step, found {ty}"))
            }
        },
        InputRole::GradientSum => {
            let split = name.strip_prefix("grad.").and_then(|rest| rest.rsplit_once('.'));
            let found = split.and_then(|(name, k)| Some((*trained.get(name)?, k.parse::<usize>().ok()?)));
            match found.filter(|(parameter, k)| *k < parameter.contributions.len()) {
                None => Some(format!("{name:?} is the name of no contribution")),
                Some((parameter, _)) => {
                    let expected = parameter_type(parameter)?;
                    (expected.shape != ty.shape).then(|| format!("{name:?} sums {expected}, found {ty}"))
                }
            }
        }
        InputRole::State => {
            let owner = name.rsplit_once('.').and_then(|(owner, _)| trained.get(owner));
            owner.is_none().then(|| format!("{name:?} is not named `<parameter>.<state>` after a trained parameter"))
        }
        InputRole::Scalar => match SCALARS.iter().find(|(scalar, _)| scalar == name) {
            None => Some(format!("the host sets lr, step and count only, found {name:?}")),
            Some((_, dtype)) => (ty.dtype != *dtype).then(|| format!("{name:?} is of type {dtype}[], found {ty}")),
        },
        InputRole::Data | InputRole::Label | InputRole::Buffer => {
            Some(format!("an update takes no input of role {}, found {name:?}", spelling(&InputRole::ALL, input.role)))
        }
    }
}

/// V20.
fn outputs(update: &Graph, findings: &mut Findings) {
    let is_updated = |input: &&Input| matches!(input.role, InputRole::Parameter | InputRole::State);
    let mut missing: BTreeMap<&str, &Input> =
        update.inputs.iter().filter(is_updated).map(|input| (input.name.as_str(), input)).collect();
    for (i, output) in update.outputs.iter().enumerate() {
        let input = missing.remove(output.name.as_str());
        if let Some(message) = wrong_output(update, output, input) {
            findings.add(Rule::V20, Entity::Output(i), message);
        }
    }
    for name in missing.keys() {
        findings.add(Rule::V20, Entity::Graph, format!("{name:?} is taken but not given out"));
    }
}

fn wrong_output(update: &Graph, output: &Output, input: Option<&Input>) -> Option<String> {
    let name = &output.name;
    if output.role != OutputRole::Updated {
        return Some(format!("{name:?} has the role {}, expected updated", spelling(&OutputRole::ALL, output.role)));
    }
    let Some(input) = input else {
        return Some(format!("{name:?} is the name of no parameter or state that the update takes"));
    };
    let (expected, found) = (update.ty(input.value), update.ty(output.value));
    (expected != found).then(|| format!("{name:?} has the type {expected}, its update {found}"))
}

/// V21. Nodes belong together where one reads the other or both read one input that is no scalar.
fn nodes(update: &Graph, findings: &mut Findings) {
    let mut groups = UnionFind::new(update.values.len());
    for node in update.nodes.values() {
        let shared = |value: &&ValueId| update.input_of(**value).is_some_and(|input| input.role == InputRole::Scalar);
        let mut members = node.inputs.iter().filter(|value| !shared(value)).chain(&node.outputs);
        if let Some(first) = members.next() {
            for member in members {
                groups.union(first.index(), member.index());
            }
        }
    }
    let mut owners: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for input in update.inputs.iter().filter(|input| input.role == InputRole::Parameter) {
        owners.entry(groups.find(input.value.index())).or_default().push(&input.name);
    }
    for (id, node) in update.nodes.iter() {
        let Some(member) = node.outputs.first() else { continue };
        match owners.get(&groups.find(member.index())).map(Vec::as_slice) {
            Some([_]) => {}
            Some(names) => {
                findings.add(Rule::V21, Entity::Node(id), format!("{id} serves several parameters: {names:?}"));
            }
            None => findings.add(Rule::V21, Entity::Node(id), format!("{id} serves no parameter")),
        }
    }
}
