//! Rules of roles: V11 inputs, V12 outputs.

use super::error::{Entity, Findings, Rule};
use crate::graph::{Graph, InputRole, OutputRole};
use crate::ty::{DType, Type};

pub(super) fn check(graph: &Graph, findings: &mut Findings) {
    inputs(graph, findings);
    outputs(graph, findings);
}

/// V11.
fn inputs(graph: &Graph, findings: &mut Findings) {
    for (i, input) in graph.inputs.iter().enumerate() {
        let Some(value) = graph.values.get(input.value) else { continue };
        let expected = match input.role {
            InputRole::Scalar if value.ty.rank() != 0 => "a scalar has rank 0",
            InputRole::GradientSum if !value.ty.dtype.is_float() => "a gradient sum is of a float type",
            InputRole::Data | InputRole::Label | InputRole::Parameter | InputRole::Buffer | InputRole::State => {
                continue;
            }
            InputRole::GradientSum | InputRole::Scalar => continue,
        };
        findings.add(Rule::V11, Entity::Input(i), format!("{expected}, found {:?} of type {}", input.name, value.ty));
    }
}

/// V12.
fn outputs(graph: &Graph, findings: &mut Findings) {
    let mut losses = [None; 2];
    for (i, output) in graph.outputs.iter().enumerate() {
        let at = Entity::Output(i);
        if let Some(value) = graph.values.get(output.value)
            && let Some(expected) = wrong_type(output.role, &value.ty)
        {
            findings.add(Rule::V12, at, format!("{expected}, found {:?} of type {}", output.name, value.ty));
        }
        let (slot, what) = match output.role {
            OutputRole::LossSum => (&mut losses[0], "loss sum"),
            OutputRole::LossCount => (&mut losses[1], "loss count"),
            OutputRole::Prediction | OutputRole::Gradient | OutputRole::Updated => continue,
        };
        match *slot {
            Some(first) => findings.add(Rule::V12, at, format!("output {first} is already the {what}")),
            None => *slot = Some(i),
        }
    }
}

fn wrong_type(role: OutputRole, ty: &Type) -> Option<&'static str> {
    let scalar = ty.rank() == 0;
    match role {
        OutputRole::LossSum if !scalar || !ty.dtype.is_float() => Some("a loss sum is a float scalar"),
        OutputRole::LossCount if !scalar || ty.dtype != DType::I64 => Some("a loss count is an i64 scalar"),
        OutputRole::Gradient if !ty.dtype.is_float() => Some("a gradient is of a float type"),
        OutputRole::Prediction | OutputRole::Updated => None,
        OutputRole::LossSum | OutputRole::LossCount | OutputRole::Gradient => None,
    }
}
