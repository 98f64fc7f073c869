//! Half floats on the host: operands are widened to single precision, the kernel runs, results are rounded back.

use super::{Arg, Context, Fault, Out, computes, execute as run};
use crate::host::Tensor;
use crate::host::bytes::{view, view_mut};
use crate::host::kernels::cast::cast;
use half::{bf16, f16};
use trainc_ir::{DType, Op};

fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// Whether the operator computes on half floats.
pub(super) fn applies(op: &Op, inputs: &[Arg<'_>], outputs: &[Out<'_>]) -> bool {
    computes(op) && (inputs.iter().any(|x| is_half(x.ty.dtype)) || outputs.iter().any(|x| is_half(x.ty.dtype)))
}

/// Runs the operator in single precision.
pub(super) fn execute(op: &Op, context: Context, inputs: &[Arg<'_>], outputs: &mut [Out<'_>]) -> Result<(), Fault> {
    let wide_inputs: Vec<Option<Tensor>> = inputs.iter().map(|x| widen(x.ty, x.bytes)).collect();
    let mut wide_outputs: Vec<Option<Tensor>> = outputs.iter().map(|x| widen(x.ty, x.bytes)).collect();
    let args: Vec<Arg<'_>> = inputs
        .iter()
        .zip(&wide_inputs)
        .map(|(&x, wide)| match wide {
            Some(wide) => Arg { ty: wide.ty(), bytes: wide.bytes() },
            None => x,
        })
        .collect();
    let types: Vec<_> = wide_outputs.iter().map(|wide| wide.as_ref().map(|wide| wide.ty().clone())).collect();
    {
        let mut outs: Vec<Out<'_>> = outputs
            .iter_mut()
            .zip(&mut wide_outputs)
            .zip(&types)
            .map(|((out, wide), ty)| match (wide, ty) {
                (Some(wide), Some(ty)) => Out { ty, bytes: wide.bytes_mut() },
                (Some(_), None) | (None, _) => Out { ty: out.ty, bytes: out.bytes },
            })
            .collect();
        run(op, context, &args, &mut outs)?;
    }
    for (out, wide) in outputs.iter_mut().zip(&wide_outputs) {
        if let Some(wide) = wide {
            let wide = wide.elements::<f32>();
            if out.ty.dtype == DType::F16 {
                cast::<f32, f16>(wide, view_mut(out.bytes));
            } else {
                cast::<f32, bf16>(wide, view_mut(out.bytes));
            }
        }
    }
    Ok(())
}

/// A half tensor in single precision, or `None` for any other. Bytes that an in-place operand left empty become zeros.
fn widen(ty: &trainc_ir::Type, bytes: &[u8]) -> Option<Tensor> {
    if !is_half(ty.dtype) {
        return None;
    }
    let mut wide = Tensor::zeros(ty.with_dtype(DType::F32));
    if !bytes.is_empty() {
        if ty.dtype == DType::F16 {
            cast::<f16, f32>(view(bytes), wide.elements_mut());
        } else {
            cast::<bf16, f32>(view(bytes), wide.elements_mut());
        }
    }
    Some(wide)
}
