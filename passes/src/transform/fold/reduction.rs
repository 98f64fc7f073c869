//! Reductions and scans of constants.

use super::tensor::{Data, Tensor, strides, walk};
use trainc_ir::op::{ReduceKind, Reduction};
use trainc_ir::{DType, Type};

/// The first result, or `None` where it is not evaluated.
pub(super) fn evaluate(op: &Reduction, x: &Tensor, ty: Type, limit: u64) -> Option<Tensor> {
    match op {
        Reduction::Reduce { kind, axes, keep: _ } => reduce(*kind, axes, x, ty, limit),
        Reduction::CumSum { axis, exclusive, reverse } => {
            let axis = *axis as usize;
            let x = x.along(axis);
            let Data::Ints(v) = &x.data else { return None };
            let stride = strides(&x.stored, &x.stored)[axis];
            let n = x.stored[axis] as usize;
            let mut out = v.to_vec();
            for start in (0..v.len()).filter(|i| stride == 0 || (i / stride).is_multiple_of(n)) {
                let mut total = 0i64;
                for i in 0..n {
                    let at = start + stride * if *reverse { n - 1 - i } else { i };
                    out[at] = total;
                    total = total.wrapping_add(v[at]);
                    if !exclusive {
                        out[at] = total;
                    }
                }
            }
            let stored = x.stored.clone();
            Tensor::new(ty, stored, Data::ints(out))
        }
        Reduction::ArgMax { axis: _ } | Reduction::TopK { k: _ } => None,
    }
}

fn reduce(kind: ReduceKind, axes: &[u64], x: &Tensor, ty: Type, limit: u64) -> Option<Tensor> {
    let reduced = |axis: usize| axes.contains(&(axis as u64));
    // Extrema and means of repeated elements are the elements; sums and products count them.
    let counts = matches!(kind, ReduceKind::Sum | ReduceKind::Prod);
    let mut full = vec![1; x.stored.len()];
    for axis in (0..full.len()).filter(|&axis| counts && reduced(axis)) {
        full[axis] = x.ty.shape[axis];
    }
    let size: u64 = x.stored.iter().zip(&full).map(|(&a, &b)| a.max(b)).product();
    if size > limit {
        return None;
    }
    let x = x.expanded(&full);
    let kept: Vec<u64> = (0..x.stored.len()).map(|i| if reduced(i) { 1 } else { x.stored[i] }).collect();
    let slots = kept.iter().product::<u64>() as usize;
    let n = x.stored.iter().product::<u64>() as usize;
    let targets = walk(&x.stored, &strides(&kept, &x.stored));
    let data = match &x.data {
        Data::Ints(v) => {
            let f: fn(i64, i64) -> i64 = match kind {
                ReduceKind::Sum => i64::wrapping_add,
                ReduceKind::Prod => i64::wrapping_mul,
                ReduceKind::Max => i64::max,
                ReduceKind::Min => i64::min,
                ReduceKind::Mean => return None,
            };
            Data::ints(collect(slots, v, targets, f)?)
        }
        Data::Floats(v) => {
            let f: fn(f64, f64) -> f64 = match kind {
                ReduceKind::Sum | ReduceKind::Mean => |a, b| a + b,
                ReduceKind::Prod => |a, b| a * b,
                ReduceKind::Max => f64::max,
                ReduceKind::Min => f64::min,
            };
            if v.iter().any(|v| v.is_nan()) {
                return None;
            }
            let mean = kind == ReduceKind::Mean;
            let divisor = if mean { (n / slots) as f64 } else { 1.0 };
            Data::floats(ty.dtype, collect(slots, v, targets, f)?.into_iter().map(|v| v / divisor))
        }
    };
    if matches!(ty.dtype, DType::U8 | DType::I8 | DType::I32) && counts {
        return None;
    }
    let stored = if ty.rank() == kept.len() {
        kept
    } else {
        (0..kept.len()).filter(|&i| !reduced(i)).map(|i| kept[i]).collect()
    };
    Tensor::new(ty, stored, data)
}

fn collect<T: Copy>(
    slots: usize,
    values: &[T],
    targets: impl Iterator<Item = usize>,
    f: fn(T, T) -> T,
) -> Option<Vec<T>> {
    let mut out: Vec<Option<T>> = vec![None; slots];
    for (&value, target) in values.iter().zip(targets) {
        out[target] = Some(out[target].map_or(value, |total| f(total, value)));
    }
    out.into_iter().collect()
}
