//! Reductions and scans.

use super::{Arg, Fault, Out, with_number};
use crate::host::kernels::reduce::{Max, Min, Product, Sum, reduce};
use crate::host::kernels::scan::{AxisView, Running, argmax, cumsum, topk};
use trainc_ir::op::{ReduceKind, Reduction};

/// Runs a reduction or scan.
pub(super) fn execute(op: &Reduction, inputs: &[Arg<'_>], outputs: &mut [Out<'_>]) -> Result<(), Fault> {
    let x = inputs[0];
    let shape = x.shape();
    match op {
        Reduction::Reduce { kind, axes, keep: _ } => {
            let axes: Vec<usize> = axes.iter().map(|&axis| axis as usize).collect();
            let n: usize = axes.iter().map(|&axis| shape[axis]).product();
            with_number!(op, x.ty.dtype, T => {
                let (x, out) = (x.get::<T>(), outputs[0].get::<T>());
                match kind {
                    ReduceKind::Sum => reduce::<T, Sum<T>>(x, &shape, &axes, out, |x| x),
                    ReduceKind::Mean => reduce::<T, Sum<T>>(x, &shape, &axes, out, |x| x / n as T),
                    ReduceKind::Max => reduce::<T, Max<T>>(x, &shape, &axes, out, |x| x),
                    ReduceKind::Min => reduce::<T, Min<T>>(x, &shape, &axes, out, |x| x),
                    ReduceKind::Prod => reduce::<T, Product<T>>(x, &shape, &axes, out, |x| x),
                }
            });
        }
        Reduction::ArgMax { axis } => {
            let view = AxisView::new(&shape, *axis as usize);
            with_number!(op, x.ty.dtype, T => argmax::<T>(x.get(), view, outputs[0].get()));
        }
        Reduction::CumSum { axis, exclusive, reverse } => {
            let view = AxisView::new(&shape, *axis as usize);
            let running = Running { exclusive: *exclusive, reverse: *reverse };
            with_number!(op, x.ty.dtype, T => cumsum::<T>(x.get(), view, running, outputs[0].get()));
        }
        Reduction::TopK { k } => {
            let view = AxisView::new(&shape, shape.len() - 1);
            let [values, indices] = outputs else { unreachable!("top-k has two results by its type rule") };
            with_number!(op, x.ty.dtype, T => topk::<T>(x.get(), view, *k as usize, values.get(), indices.get()));
        }
    }
    Ok(())
}
