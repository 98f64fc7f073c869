//! Reductions and running sums of known values.

use crate::onnx::constant::{Const, Data, MAX_ELEMENTS, positions, wrap};
use trainc_ir::op::{ReduceKind, Reduction};
use trainc_ir::{Op, Type};

/// Reduces integer values; float sums stay in the graph, where their order is defined.
pub(in crate::onnx) fn reduce(kind: ReduceKind, x: &Const, axes: &[u64], keep: bool) -> Result<Option<Const>, String> {
    let op = Op::from(Reduction::Reduce { kind, axes: axes.to_vec(), keep });
    let ty = op.infer(&[&x.ty])?.remove(0);
    let Data::Int(values) = &x.data else { return Ok(None) };
    if x.ty.checked_elements().is_none_or(|n| n > MAX_ELEMENTS) || kind == ReduceKind::Mean || x.ty.elements() == 0 {
        return Ok(None);
    }
    let mut kept = x.ty.shape.clone();
    for &axis in axes {
        kept[usize::try_from(axis).map_err(|_| "axis out of range")?] = 1;
    }
    let n_out = usize::try_from(kept.iter().product::<u64>()).map_err(|_| "too large")?;
    let start = match kind {
        ReduceKind::Sum | ReduceKind::Mean => 0,
        ReduceKind::Prod => 1,
        ReduceKind::Max => i64::MIN,
        ReduceKind::Min => i64::MAX,
    };
    let mut out = vec![start; n_out];
    let into = positions(&x.ty.shape, &crate::onnx::constant::strides(&kept));
    for (from, to) in positions(&x.ty.shape, &x.strides()).zip(into) {
        let value = values[from];
        out[to] = match kind {
            ReduceKind::Sum | ReduceKind::Mean => out[to].wrapping_add(value),
            ReduceKind::Prod => out[to].wrapping_mul(value),
            ReduceKind::Max => out[to].max(value),
            ReduceKind::Min => out[to].min(value),
        };
    }
    let data = Data::Int(out.into_iter().map(|value| wrap(ty.dtype, value)).collect());
    let core = ty.shape.clone();
    Ok(Some(Const::new(ty, core, data)))
}

/// Running sums of integer values along an axis.
pub(in crate::onnx) fn cumsum(x: &Const, axis: usize, exclusive: bool, reverse: bool) -> Option<Const> {
    let Data::Int(_) = x.data else { return None };
    let mut core = x.core.clone();
    core[axis] = x.ty.shape[axis];
    if core.iter().product::<u64>() > MAX_ELEMENTS {
        return None;
    }
    let Data::Int(mut values) = x.data_as(&core) else { return None };
    let length = usize::try_from(core[axis]).ok()?;
    let inner = usize::try_from(core[axis + 1..].iter().product::<u64>()).ok()?;
    for block in values.chunks_mut((length * inner).max(1)) {
        for column in 0..inner {
            let mut total = 0i64;
            for step in 0..length {
                let row = if reverse { length - 1 - step } else { step };
                let slot = &mut block[row * inner + column];
                let own = *slot;
                *slot = if exclusive { total } else { total.wrapping_add(own) };
                total = total.wrapping_add(own);
            }
        }
    }
    let data = Data::Int(values.into_iter().map(|value| wrap(x.ty.dtype, value)).collect());
    Some(Const::new(Type::new(x.ty.dtype, x.ty.shape.clone()), core, data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainc_ir::DType;

    fn grid() -> Const {
        Const::new(Type::new(DType::I64, [2, 3]), vec![2, 3], Data::Int(vec![1, 2, 3, 4, 5, 6]))
    }

    /// Truths are numpy's sum, prod and cumsum.
    #[test]
    fn reductions_agree_with_numpy() {
        let of = |kind, axes: &[u64]| reduce(kind, &grid(), axes, false).unwrap().unwrap().ints();
        assert_eq!(of(ReduceKind::Sum, &[0]), [5, 7, 9]);
        assert_eq!(of(ReduceKind::Prod, &[1]), [6, 120]);
        assert_eq!(of(ReduceKind::Max, &[0, 1]), [6]);
        assert_eq!(cumsum(&grid(), 1, false, false).unwrap().ints(), [1, 3, 6, 4, 9, 15]);
        assert_eq!(cumsum(&grid(), 0, true, false).unwrap().ints(), [0, 0, 0, 1, 2, 3]);
        assert_eq!(cumsum(&grid(), 1, false, true).unwrap().ints(), [6, 5, 3, 15, 11, 6]);
    }
}
