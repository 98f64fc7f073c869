//! Data movement and lookups on constants.

use super::tensor::{Data, Tensor, strides, walk};
use trainc_ir::Type;
use trainc_ir::op::{Indexing, Movement};

/// The results, or `None` where they are not evaluated or one would have more than `limit` elements.
pub(super) fn evaluate(op: &Movement, inputs: &[&Tensor], types: &[Type], limit: u64) -> Option<Vec<Tensor>> {
    let (x, ty) = (*inputs.first()?, types.first()?.clone());
    if ty.elements() == 0 {
        return None;
    }
    let one = match op {
        Movement::Reshape { shape: _ } => reshape(x, ty, limit)?,
        Movement::Broadcast { shape: _ } => {
            let mut stored = vec![1; ty.rank() - x.stored.len()];
            stored.extend(&x.stored);
            Tensor { ty, stored, data: x.data.clone() }
        }
        Movement::Transpose { perm } => {
            let stored: Vec<u64> = perm.iter().map(|&p| x.stored[p as usize]).collect();
            let steps = strides(&x.stored, &x.stored);
            let steps: Vec<usize> = perm.iter().map(|&p| steps[p as usize]).collect();
            let data = x.data.pick(walk(&stored, &steps));
            Tensor { ty, stored, data }
        }
        Movement::Slice { starts, ends: _, steps } => slice(x, ty, starts, steps),
        Movement::Split { axis, sizes } => {
            let mut start = 0;
            let mut parts = Vec::new();
            for (&size, ty) in sizes.iter().zip(types) {
                if size == 0 {
                    return None;
                }
                let mut starts = vec![0; ty.rank()];
                starts[*axis as usize] = start;
                start += size as i64;
                parts.push(slice(x, ty.clone(), &starts, &vec![1; ty.rank()]));
            }
            return Some(parts);
        }
        Movement::Concat { axis } => concat(*axis as usize, inputs, ty, limit)?,
        Movement::Pad { low: _, high: _, value: _ } => return None,
        Movement::SliceGrad { shape: _, starts: _, ends: _, steps: _ } => return None,
    };
    Some(vec![one])
}

fn reshape(x: &Tensor, ty: Type, limit: u64) -> Option<Tensor> {
    // Only dimensions of 1 come or go: the other axes keep their storage.
    let solid = |shape: &[u64]| (0..shape.len()).filter(|&i| shape[i] != 1).collect::<Vec<_>>();
    let (from, to) = (solid(&x.ty.shape), solid(&ty.shape));
    let same = from.len() == to.len() && from.iter().zip(&to).all(|(&a, &b)| x.ty.shape[a] == ty.shape[b]);
    if same || x.stored.iter().all(|&d| d == 1) {
        let mut stored = vec![1; ty.rank()];
        if same {
            for (a, b) in from.into_iter().zip(to) {
                stored[b] = x.stored[a];
            }
        }
        return Some(Tensor { ty, stored, data: x.data.clone() });
    }
    if x.ty.elements() > limit {
        return None;
    }
    let full = x.expanded(&x.ty.shape);
    let stored = ty.shape.clone();
    Tensor::new(ty, stored, full.data)
}

fn slice(x: &Tensor, ty: Type, starts: &[i64], steps: &[i64]) -> Tensor {
    let mut positions = vec![0i64];
    let strides = strides(&x.stored, &x.stored);
    let mut stored = Vec::new();
    for axis in 0..ty.rank() {
        let n = if x.stored[axis] == 1 { 1 } else { ty.shape[axis] };
        stored.push(n);
        let start = if x.stored[axis] == 1 { 0 } else { starts[axis] };
        let along = |i: u64| (start + i as i64 * steps[axis]) * strides[axis] as i64;
        positions = positions.into_iter().flat_map(|p| (0..n).map(move |i| p + along(i))).collect();
    }
    let data = x.data.pick(positions.into_iter().map(|p| p as usize));
    Tensor::new(ty, stored, data).expect("empty results are not evaluated")
}

fn concat(axis: usize, inputs: &[&Tensor], ty: Type, limit: u64) -> Option<Tensor> {
    let mut stored = vec![1; ty.rank()];
    for input in inputs {
        for (slot, &dim) in stored.iter_mut().zip(&input.stored) {
            *slot = dim.max(*slot);
        }
    }
    stored[axis] = ty.shape[axis];
    if stored.iter().product::<u64>() > limit {
        return None;
    }
    let outer: u64 = stored[..axis].iter().product();
    let inner: u64 = stored[axis + 1..].iter().product();
    let parts: Vec<Tensor> = inputs
        .iter()
        .filter(|input| input.ty.shape[axis] > 0)
        .map(|input| {
            let mut target = stored.clone();
            target[axis] = input.ty.shape[axis];
            input.expanded(&target)
        })
        .collect();
    let mut ints = Vec::new();
    let mut floats = Vec::new();
    for o in 0..outer as usize {
        for part in &parts {
            let n = (part.stored[axis] * inner) as usize;
            match &part.data {
                Data::Ints(v) => ints.extend(&v[o * n..(o + 1) * n]),
                Data::Floats(v) => floats.extend(&v[o * n..(o + 1) * n]),
            }
        }
    }
    let data = if ty.dtype.is_float() { Data::Floats(std::rc::Rc::new(floats)) } else { Data::ints(ints) };
    Tensor::new(ty, stored, data)
}

/// A lookup, or `None` where it is not evaluated: too large, or an index out of range.
pub(super) fn lookup(op: &Indexing, x: &Tensor, indices: &Tensor, ty: Type, limit: u64) -> Option<Tensor> {
    let Data::Ints(at) = &indices.data else { return None };
    match *op {
        Indexing::Gather { axis } => {
            let axis = axis as usize;
            let mut stored = x.stored[..axis].to_vec();
            stored.extend(&indices.stored);
            stored.extend(&x.stored[axis + 1..]);
            if stored.iter().product::<u64>() > limit {
                return None;
            }
            let rows = rows(at, x.ty.shape[axis])?;
            let stride = strides(&x.stored, &x.stored)[axis];
            let inner: usize = x.stored[axis + 1..].iter().product::<u64>() as usize;
            let outer: usize = x.stored[..axis].iter().product::<u64>() as usize;
            let block = inner * x.stored[axis] as usize;
            let positions = (0..outer)
                .flat_map(|o| rows.iter().map(move |&row| o * block + row * stride))
                .flat_map(|start| start..start + inner);
            let data = x.data.pick(positions);
            Tensor::new(ty, stored, data)
        }
        Indexing::GatherElements { axis } => {
            let axis = axis as usize;
            let mut stored: Vec<u64> = x.stored.iter().zip(&indices.stored).map(|(&a, &b)| a.max(b)).collect();
            stored[axis] = indices.stored[axis];
            if stored.iter().product::<u64>() > limit {
                return None;
            }
            let rows = rows(at, x.ty.shape[axis])?;
            let mut steps = strides(&x.stored, &x.stored);
            let stride = std::mem::take(&mut steps[axis]);
            let base = walk(&stored, &steps);
            let row = walk(&stored, &strides(&indices.stored, &stored));
            let data = x.data.pick(base.zip(row).map(|(base, row)| base + rows[row] * stride));
            Tensor::new(ty, stored, data)
        }
        Indexing::GatherGrad { axis: _, len: _ } | Indexing::GatherElementsGrad { axis: _, len: _ } => None,
    }
}

/// Indices counted from the start, or `None` where one is out of range.
fn rows(indices: &[i64], len: u64) -> Option<Vec<usize>> {
    let len = i64::try_from(len).ok()?;
    let row = |&i: &i64| {
        let i = if i < 0 { i + len } else { i };
        (0..len).contains(&i).then_some(i as usize)
    };
    indices.iter().map(row).collect()
}
