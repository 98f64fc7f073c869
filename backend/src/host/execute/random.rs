//! Dropout.

use super::{Arg, Context, Fault, Out, with_float};
use crate::host::kernels::random::{Site, dropout};
use trainc_ir::op::Random;

/// Runs dropout or its gradient: the same function of the same mask.
pub(super) fn execute(op: &Random, context: Context, inputs: &[Arg<'_>], out: &mut Out<'_>) -> Result<(), Fault> {
    let (Random::Dropout { p, site } | Random::DropoutGrad { p, site }) = op;
    // Sites are numbered densely from zero, so that 32 bits hold them.
    let site = Site { seed: context.seed, step: context.step, site: (context.site + site) as u32 };
    let first = context.micro_batch * inputs[0].ty.elements();
    with_float!(op, out.ty.dtype, T => dropout::<T>(inputs[0].get(), site, first, p.get(), out.get()));
    Ok(())
}
