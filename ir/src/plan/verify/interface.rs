//! The rule that a plan's names are the training graph's: inputs, parameters and holders, outputs (P10).

use super::error::{Errors, PlanPlace, PlanRule};
use crate::graph::{Graph, Input, InputRole};
use crate::plan::{BufferId, BufferKind, Plan, ProgramId};
use crate::training::TrainingGraph;
use std::collections::{BTreeMap, BTreeSet};

/// The names that the plan's outputs may have.
pub(super) const LOSSES: [&str; 2] = ["loss_sum", "loss_count"];

type Holding = (ProgramId, BufferId);

pub(super) fn interface(plan: &Plan, training: &TrainingGraph, errors: &mut Errors) {
    inputs(plan, training, errors);
    let step = by_name(&training.step);
    let update = by_name(&training.update);
    let mut holders: BTreeMap<&str, BTreeSet<Holding>> = BTreeMap::new();
    for (id, program) in plan.programs.iter() {
        let mut held = BTreeSet::new();
        for (buffer, entry) in program.buffers.iter() {
            let mut push = |message| errors.push(PlanRule::Interface, PlanPlace::Buffer(id, buffer), message);
            let (graph, inputs, roles): (_, _, &[InputRole]) = match entry.kind {
                BufferKind::Parameter => (&training.step, &step, &[InputRole::Parameter, InputRole::Buffer]),
                BufferKind::State => (&training.update, &update, &[InputRole::State]),
                BufferKind::Gradient | BufferKind::Scalar | BufferKind::Data => continue,
                BufferKind::Saved | BufferKind::Boundary => continue,
            };
            let name = entry.name.as_str();
            if !held.insert((entry.kind, name)) {
                push(format!("`{name}` is held twice by one program"));
            }
            match inputs.get(name) {
                Some(input) if roles.contains(&input.role) => {
                    let expected = graph.ty(input.value);
                    if *expected != entry.ty {
                        push(format!("`{name}`: expected {expected}, found {}", entry.ty));
                    }
                }
                Some(_) | None => push(format!("the training graph has no parameter or state `{name}`")),
            }
            if entry.kind == BufferKind::Parameter {
                holders.entry(name).or_default().insert((id, buffer));
            }
        }
    }
    parameters(plan, training, &holders, errors);
    outputs(plan, errors);
}

fn by_name(graph: &Graph) -> BTreeMap<&str, &Input> {
    graph.inputs.iter().map(|input| (input.name.as_str(), input)).collect()
}

fn inputs(plan: &Plan, training: &TrainingGraph, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for (id, input) in plan.inputs.iter() {
        let mut push = |message| errors.push(PlanRule::Interface, PlanPlace::Input(id), message);
        if !names.insert(input.name.as_str()) {
            push(format!("`{}` is listed twice", input.name));
        }
        let found = |graph: &Graph| graph.input(&input.name).map(|known| (known.role, graph.ty(known.value).clone()));
        let expected = match input.role {
            InputRole::Data | InputRole::Label => found(&training.step),
            InputRole::Scalar => found(&training.update).or_else(|| found(&training.step)),
            InputRole::Parameter | InputRole::Buffer | InputRole::State | InputRole::GradientSum => {
                push(format!("`{}`: expected data, labels or a scalar", input.name));
                continue;
            }
        };
        if expected.as_ref() != Some(&(input.role, input.ty.clone())) {
            push(match expected {
                Some((role, ty)) => {
                    format!("`{}`: expected {role:?} of {ty}, found {:?} of {}", input.name, input.role, input.ty)
                }
                None => format!("the training graph has no input `{}`", input.name),
            });
        }
    }
}

fn parameters(plan: &Plan, training: &TrainingGraph, holders: &BTreeMap<&str, BTreeSet<Holding>>, errors: &mut Errors) {
    let trained: BTreeSet<&str> = {
        let trained = training.parameters.values().filter(|parameter| !parameter.contributions.is_empty());
        trained.map(|parameter| parameter.name.as_str()).collect()
    };
    let nobody = BTreeSet::new();
    let mut listed = BTreeSet::new();
    for (position, parameter) in plan.parameters.iter().enumerate() {
        let mut push = |message| errors.push(PlanRule::Interface, PlanPlace::Parameter(position), message);
        let name = parameter.name.as_str();
        if !listed.insert(name) {
            push(format!("`{name}` is listed twice"));
        }
        let expected = training.step.input(name).filter(|input| is_weight(input));
        let Some(expected) = expected.map(|input| training.step.ty(input.value)) else {
            push(format!("the training graph has no parameter `{name}`"));
            continue;
        };
        if *expected != parameter.ty {
            push(format!("`{name}`: expected {expected}, found {}", parameter.ty));
        }
        if parameter.trained != trained.contains(name) {
            let word = |trained| if trained { "trained" } else { "not trained" };
            push(format!("`{name}` is {}, found {}", word(!parameter.trained), word(parameter.trained)));
        }
        if parameter.trained && parameter.holders.is_empty() {
            push(format!("`{name}` is trained, but no program holds it"));
        }
        let found: BTreeSet<Holding> = parameter.holders.iter().map(|holder| (holder.program, holder.buffer)).collect();
        let expected = holders.get(name).unwrap_or(&nobody);
        if found.len() != parameter.holders.len() || found != *expected {
            push(format!("`{name}`: expected the holders {}, found {}", names(expected), names(&found)));
        }
    }
    let missing = training.step.inputs.iter().filter(|input| {
        let name = input.name.as_str();
        is_weight(input) && (trained.contains(name) || holders.contains_key(name)) && !listed.contains(name)
    });
    for input in missing {
        let message = format!("the parameter `{}` is not listed", input.name);
        errors.push(PlanRule::Interface, PlanPlace::Plan, message);
    }
}

fn is_weight(input: &Input) -> bool {
    matches!(input.role, InputRole::Parameter | InputRole::Buffer)
}

fn names(holders: &BTreeSet<Holding>) -> String {
    let names: Vec<_> = holders.iter().map(|(program, buffer)| format!("{program}.{buffer}")).collect();
    format!("[{}]", names.join(", "))
}

fn outputs(plan: &Plan, errors: &mut Errors) {
    let mut missing: BTreeSet<&str> = LOSSES.into_iter().collect();
    for (id, program) in plan.programs.iter() {
        let mut seen = BTreeSet::new();
        for output in &program.outputs {
            let name = output.name.as_str();
            missing.remove(name);
            let mut push = |message| errors.push(PlanRule::Interface, PlanPlace::Program(id), message);
            if !LOSSES.contains(&name) {
                push(format!("expected an output `loss_sum` or `loss_count`, found `{name}`"));
            }
            if !seen.insert(name) {
                push(format!("the output `{name}` is given twice"));
            }
            if program.buffers[output.buffer].offsets.len() != 1 {
                push(format!("the output `{name}` must be a buffer with one slot"));
            }
        }
    }
    for name in missing {
        errors.push(PlanRule::Interface, PlanPlace::Plan, format!("no program gives the output `{name}`"));
    }
}
