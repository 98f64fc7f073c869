//! Gather and scatter.

use super::{Arg, Fault, Out, indices, with_float, with_size};
use crate::host::kernels::gather::{gather, gather_elements, scatter_add, scatter_add_elements};
use crate::host::kernels::scan::AxisView;
use trainc_ir::op::Indexing;

/// Whether the operator adds, rather than only copying elements.
pub(super) fn adds(op: &Indexing) -> bool {
    match op {
        Indexing::Gather { axis: _ } | Indexing::GatherElements { axis: _ } => false,
        Indexing::GatherGrad { axis: _, len: _ } | Indexing::GatherElementsGrad { axis: _, len: _ } => true,
    }
}

/// Runs a gather or its gradient.
pub(super) fn execute(op: &Indexing, inputs: &[Arg<'_>], out: &mut Out<'_>) -> Result<(), Fault> {
    match op {
        Indexing::Gather { axis } => {
            let [x, at] = [inputs[0], inputs[1]];
            let view = AxisView::new(&x.shape(), *axis as usize);
            with_size!(x.ty.dtype, T => gather::<T>(x.get(), view, &indices(&at), out.get())?);
        }
        Indexing::GatherGrad { axis, len: _ } => {
            let [at, dy] = [inputs[0], inputs[1]];
            let view = AxisView::new(&out.shape(), *axis as usize);
            with_float!(op, dy.ty.dtype, T => scatter_add::<T>(dy.get(), view, &indices(&at), out.get())?);
        }
        Indexing::GatherElements { axis } => {
            let [x, at] = [inputs[0], inputs[1]];
            let view = AxisView::new(&at.shape(), *axis as usize);
            let len = x.shape()[*axis as usize];
            with_size!(x.ty.dtype, T => gather_elements::<T>(x.get(), len, view, &indices(&at), out.get())?);
        }
        Indexing::GatherElementsGrad { axis, len } => {
            let [at, dy] = [inputs[0], inputs[1]];
            let view = AxisView::new(&at.shape(), *axis as usize);
            let at = indices(&at);
            with_float!(op, dy.ty.dtype, T => {
                scatter_add_elements::<T>(dy.get(), *len as usize, view, &at, out.get())?;
            });
        }
    }
    Ok(())
}
