//! The rules of kernels and segments, apart from where their bytes lie (P4, P5).

use super::error::{Errors, PlanPlace, PlanRule};
use super::structure::bytes;
use crate::op::{Creation, LiteralData, Op};
use crate::plan::{Access, Kernel, KernelCall, Operand, Plan, Segment};
use crate::ty::Type;

pub(super) fn kernels(plan: &Plan, errors: &mut Errors) {
    for (id, kernel) in plan.kernels.iter() {
        if let Err(message) = kernel_types(kernel) {
            let spelling = kernel.op.spelling();
            errors.push(PlanRule::Kernels, PlanPlace::Kernel(id), format!("`{spelling}`: {message}"));
        }
    }
}

fn kernel_types(kernel: &Kernel) -> Result<(), String> {
    match &kernel.op {
        Op::Opaque(_) => return Err("an opaque operator cannot be executed".to_owned()),
        Op::Creation(Creation::Constant { value }) => {
            let (found, expected) = match &value.data {
                LiteralData::Splat(data) => (data.len(), Some(value.ty.dtype.bytes())),
                LiteralData::Dense(data) => (data.len(), bytes(&value.ty)),
            };
            if expected != Some(found as u64) {
                return Err(format!("a constant of type {} cannot have {found} bytes of data", value.ty));
            }
        }
        Op::Elementwise(_) | Op::Contraction(_) | Op::Reduction(_) | Op::Normalization(_) | Op::Attention(_) => {}
        Op::Indexing(_) | Op::Movement(_) | Op::Random(_) | Op::Loss(_) | Op::Optimizer(_) => {}
        Op::Convolution(_) | Op::Pooling(_) | Op::BatchNorm(_) => {}
    }
    let inputs: Vec<&Type> = kernel.inputs.iter().collect();
    let inferred = kernel.op.infer(&inputs)?;
    if inferred != kernel.outputs {
        return Err(format!("expected results {}, found {}", list(&inferred), list(&kernel.outputs)));
    }
    Ok(())
}

fn list(types: &[Type]) -> String {
    let texts: Vec<_> = types.iter().map(Type::to_string).collect();
    format!("({})", texts.join(", "))
}

pub(super) fn segments(plan: &Plan, errors: &mut Errors) {
    for (id, segment) in plan.segments.iter() {
        let mut written = vec![false; segment.formals.len()];
        for (position, call) in segment.body.iter().enumerate() {
            let mut push = |message: String| {
                errors.push(PlanRule::Segments, PlanPlace::Segment(id, Some(position)), message);
            };
            let kernel = &plan.kernels[call.kernel];
            if let Err(message) = operands(segment, call, kernel) {
                push(message);
            }
            for operand in &call.inputs {
                if let Operand::Formal(index) = *operand {
                    let index = index as usize;
                    if segment.formals[index].access == Access::Write && !written[index] {
                        push(format!("{operand} is declared as written before it is read, but is read here first"));
                    }
                }
            }
            for operand in &call.outputs {
                if let Operand::Formal(index) = *operand {
                    let index = index as usize;
                    written[index] = true;
                    if segment.formals[index].access == Access::Read {
                        push(format!("{operand} is declared as read only, but is written here"));
                    }
                }
            }
        }
        for (index, formal) in segment.formals.iter().enumerate() {
            if formal.access == Access::Write && !written[index] {
                let message =
                    format!("{} is declared as written, but no kernel writes it", Operand::Formal(index as u32));
                errors.push(PlanRule::Segments, PlanPlace::Segment(id, None), message);
            }
        }
    }
}

fn operands(segment: &Segment, call: &KernelCall, kernel: &Kernel) -> Result<(), String> {
    let sides = [("operands", &call.inputs, &kernel.inputs), ("results", &call.outputs, &kernel.outputs)];
    for (what, found, expected) in sides {
        if found.len() != expected.len() {
            let (kernel, n) = (call.kernel, expected.len());
            return Err(format!("kernel {kernel} has {n} {what}, found {}", found.len()));
        }
        for (operand, ty) in found.iter().zip(expected) {
            let held = match *operand {
                Operand::Formal(index) => &segment.formals[index as usize].ty,
                Operand::Local(index) => &segment.locals[index as usize],
            };
            if !same_bytes(held, ty) {
                return Err(format!("{operand}: expected the bytes of {ty}, found {held}"));
            }
        }
    }
    Ok(())
}

/// Whether two types are the same bytes under two shapes.
pub(super) fn same_bytes(a: &Type, b: &Type) -> bool {
    a.dtype == b.dtype && bytes(a) == bytes(b)
}
