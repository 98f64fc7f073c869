//! Matrix products.

use super::{Arg, Fault, Out, with_float};
use crate::host::kernels::matmul::{Transposes, matmul};
use trainc_ir::op::Contraction;

/// Runs a matrix product.
pub(super) fn execute(op: &Contraction, inputs: &[Arg<'_>], out: &mut Out<'_>) -> Result<(), Fault> {
    let Contraction::MatMul { transpose_a, transpose_b } = op;
    let transposes = Transposes { a: *transpose_a, b: *transpose_b };
    let [a, b] = [inputs[0], inputs[1]];
    let shape = out.shape();
    with_float!(op, out.ty.dtype, T => {
        matmul::<T>((a.get(), &a.shape()), (b.get(), &b.shape()), (out.get(), &shape), transposes, 1.0);
    });
    Ok(())
}
