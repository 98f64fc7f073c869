//! Rearrangements and lookups on known values.

use crate::onnx::constant::{Const, Data, MAX_ELEMENTS, positions};
use trainc_ir::Type;

/// The elements under another shape with as many elements.
pub(in crate::onnx) fn reshape(x: &Const, shape: &[u64]) -> Option<Const> {
    let ty = Type::new(x.ty.dtype, shape);
    if x.is_uniform() {
        return Some(Const::splat(ty, x));
    }
    let wide = |dims: &[u64]| dims.iter().copied().filter(|&dim| dim != 1).collect::<Vec<_>>();
    if wide(shape) == wide(&x.ty.shape) {
        let mut stored = x.core.iter().zip(&x.ty.shape).filter(|&(_, &dim)| dim != 1).map(|(&stored, _)| stored);
        let core = shape.iter().map(|&dim| if dim == 1 { Some(1) } else { stored.next() }).collect::<Option<_>>()?;
        return Some(Const { ty, core, data: x.data.clone() });
    }
    if ty.checked_elements()? > MAX_ELEMENTS {
        return None;
    }
    let data = x.data_as(&x.ty.shape);
    Some(Const::new(ty, shape.to_vec(), data))
}

/// Axes in another order.
pub(in crate::onnx) fn transpose(x: &Const, perm: &[usize]) -> Const {
    let (own, of) = (x.strides(), |dims: &[u64]| perm.iter().map(|&axis| dims[axis]).collect::<Vec<_>>());
    let steps: Vec<usize> = perm.iter().map(|&axis| own[axis]).collect();
    let core = of(&x.core);
    let data = x.data.pick(positions(&core, &steps));
    Const { ty: Type::new(x.ty.dtype, of(&x.ty.shape)), core, data }
}

/// The value broadcast to a shape that it broadcasts to.
pub(in crate::onnx) fn broadcast_to(x: &Const, shape: &[u64]) -> Const {
    let ty = Type::new(x.ty.dtype, shape);
    if shape.contains(&0) {
        return Const { ty, core: shape.to_vec(), data: x.data.pick(0..0) };
    }
    let mut core = vec![1; shape.len() - x.core.len()];
    core.extend(&x.core);
    Const { ty, core, data: x.data.clone() }
}

/// Elements `start, start + step, ..` before `end` per axis; the bounds lie within the shape.
pub(in crate::onnx) fn slice(x: &Const, starts: &[i64], steps: &[i64], shape: &[u64]) -> Const {
    let ty = Type::new(x.ty.dtype, shape);
    if shape.contains(&0) {
        return Const { ty, core: shape.to_vec(), data: x.data.pick(0..0) };
    }
    let own = x.strides();
    let core: Vec<u64> = x.core.iter().zip(shape).map(|(&stored, &dim)| if stored == 1 { 1 } else { dim }).collect();
    let axes = 0..core.len();
    let first: i64 = axes.clone().map(|axis| starts[axis] * own[axis] as i64).sum();
    let walk: Vec<i64> = axes.map(|axis| steps[axis] * own[axis] as i64).collect();
    let taken = signed_positions(&core, &walk, first);
    Const::new(ty, core, x.data.pick(taken.into_iter()))
}

fn signed_positions(core: &[u64], steps: &[i64], first: i64) -> Vec<usize> {
    let mut at = vec![first];
    for (&dim, &step) in core.iter().zip(steps) {
        at = at.iter().flat_map(|&base| (0..dim).map(move |i| base + step * i as i64)).collect();
    }
    at.into_iter().map(|at| usize::try_from(at).expect("slice bounds lie within the shape")).collect()
}

/// Operands one after the other along an axis; their types fit together.
pub(in crate::onnx) fn concat(parts: &[&Const], axis: usize) -> Option<Const> {
    let mut shape = parts[0].ty.shape.clone();
    shape[axis] = parts.iter().map(|part| part.ty.shape[axis]).sum();
    let mut core = vec![1; shape.len()];
    for part in parts {
        for (slot, &stored) in core.iter_mut().zip(&part.core) {
            *slot = stored.max(*slot);
        }
    }
    if shape.iter().enumerate().any(|(i, &dim)| i != axis && dim == 0) {
        core.clone_from(&shape);
    }
    core[axis] = shape[axis];
    if core.iter().product::<u64>() > MAX_ELEMENTS {
        return None;
    }
    let outer: u64 = core[..axis].iter().product();
    let pieces: Vec<(Data, usize)> = parts
        .iter()
        .map(|part| {
            let mut own = core.clone();
            own[axis] = part.ty.shape[axis];
            let block = own[axis..].iter().product::<u64>();
            (part.data_as(&own), usize::try_from(block).expect("bounded by MAX_ELEMENTS"))
        })
        .collect();
    let mut ints = Vec::new();
    let mut floats = Vec::new();
    for i in 0..usize::try_from(outer).ok()? {
        for (data, block) in &pieces {
            match data {
                Data::Int(values) => ints.extend_from_slice(&values[i * block..(i + 1) * block]),
                Data::Float(values) => floats.extend_from_slice(&values[i * block..(i + 1) * block]),
            }
        }
    }
    let dtype = parts[0].ty.dtype;
    let data = if dtype.is_float() { Data::Float(floats) } else { Data::Int(ints) };
    Some(Const::new(Type::new(dtype, shape), core, data))
}

/// Slices of `x` along an axis at known indices, all of which are in range.
pub(in crate::onnx) fn gather(x: &Const, indices: &Const, axis: usize) -> Option<Const> {
    let around = |own: &[u64], middle: &[u64]| [&own[..axis], middle, &own[axis + 1..]].concat();
    let ty = Type::new(x.ty.dtype, around(&x.ty.shape, &indices.ty.shape));
    let (taken, steps) = if x.core[axis] == 1 {
        (vec![1; indices.core.len()], vec![0; indices.core.len()])
    } else {
        (indices.core.clone(), indices.strides())
    };
    let core = around(&x.core, &taken);
    if core.iter().product::<u64>() > MAX_ELEMENTS {
        return None;
    }
    let (own, dim) = (x.strides(), i64::try_from(x.ty.shape[axis]).ok()?);
    let rank = indices.core.len();
    let which = [vec![0; axis], steps, vec![0; core.len() - axis - rank]].concat();
    let rest = [&own[..axis], &vec![0; rank][..], &own[axis + 1..]].concat();
    let at = positions(&core, &which).zip(positions(&core, &rest)).map(|(index, base)| {
        let index = indices.data.int(index);
        let index = if index < 0 { index + dim } else { index };
        base + own[axis] * usize::try_from(index).expect("indices are in range")
    });
    Some(Const::new(ty, core.clone(), x.data.pick(at)))
}

/// `y[i] = x[indices[i]]` where the last axis of the indices holds coordinates, all of which are in range.
pub(in crate::onnx) fn gather_nd(x: &Const, indices: &Const) -> Option<Const> {
    let (lead, last) = indices.ty.shape.split_at(indices.ty.rank() - 1);
    let n_coordinates = usize::try_from(last[0]).ok()?;
    let ty = Type::new(x.ty.dtype, [lead, &x.ty.shape[n_coordinates..]].concat());
    let stored_lead = &indices.core[..lead.len()];
    let core = [stored_lead, &x.core[n_coordinates..]].concat();
    if core.iter().product::<u64>() > MAX_ELEMENTS {
        return None;
    }
    let (own, index_steps) = (x.strides(), indices.strides());
    let rest = x.ty.rank() - n_coordinates;
    let which = [&index_steps[..lead.len()], &vec![0; rest][..]].concat();
    let tail = [&vec![0; lead.len()][..], &own[n_coordinates..]].concat();
    let at = positions(&core, &which).zip(positions(&core, &tail)).map(|(first, base)| {
        (0..n_coordinates).fold(base, |at, k| {
            let index = indices.data.int(first + k * index_steps[lead.len()]);
            let index = if index < 0 { index + x.ty.shape[k] as i64 } else { index };
            at + own[k] * usize::try_from(index).expect("indices are in range")
        })
    });
    Some(Const::new(ty, core.clone(), x.data.pick(at)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainc_ir::DType;

    fn grid(shape: &[u64]) -> Const {
        let n = shape.iter().product::<u64>() as i64;
        Const::new(Type::new(DType::I64, shape), shape.to_vec(), Data::Int((0..n).collect()))
    }

    /// Truths are numpy's results for `np.arange(6).reshape(2, 3)` and the like.
    #[test]
    fn movements_agree_with_numpy() {
        let x = grid(&[2, 3]);
        assert_eq!(transpose(&x, &[1, 0]).ints(), [0, 3, 1, 4, 2, 5]);
        assert_eq!(reshape(&x, &[3, 2]).unwrap().ints(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(slice(&x, &[0, 2], &[1, -2], &[2, 2]).ints(), [2, 0, 5, 3]);
        assert_eq!(concat(&[&x, &grid(&[2, 1])], 1).unwrap().ints(), [0, 1, 2, 0, 3, 4, 5, 1]);
        assert_eq!(concat(&[&Const::vector(vec![]), &Const::vector(vec![4])], 0).unwrap().ints(), [4]);
        assert_eq!(gather(&x, &Const::vector(vec![-1, 0]), 1).unwrap().ints(), [2, 0, 5, 3]);
    }

    #[test]
    fn collapsed_axes_stay_collapsed() {
        let wide = broadcast_to(&grid(&[1, 3]), &[1 << 40, 3]);
        assert_eq!(reshape(&wide, &[1 << 40, 1, 3]).unwrap().core, [1, 1, 3]);
        assert_eq!(transpose(&wide, &[1, 0]).core, [3, 1]);
        assert_eq!(slice(&wide, &[5, 1], &[1, 1], &[9, 2]).core, [1, 2]);
        assert!(reshape(&wide, &[3 << 40]).is_none());
    }

    #[test]
    fn gather_nd_takes_coordinates() {
        let indices = Const::new(Type::new(DType::I64, [2, 2]), vec![2, 2], Data::Int(vec![0, 2, 1, -3]));
        assert_eq!(gather_nd(&grid(&[2, 3]), &indices).unwrap().ints(), [2, 3]);
        let rows = Const::new(Type::new(DType::I64, [1, 1]), vec![1, 1], Data::Int(vec![1]));
        assert_eq!(gather_nd(&grid(&[2, 3]), &rows).unwrap().ints(), [3, 4, 5]);
    }
}
