//! Strided walks over several operands at once: broadcasting and any data movement reduce to a few merged loops.

/// Row-major strides of a shape, in elements.
pub(super) fn strides(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as isize;
    }
    strides
}

/// Strides that read an operand of shape `from` as if it had shape `to` (NumPy's rule: aligned at the last axis).
pub(super) fn broadcast_strides(from: &[usize], to: &[usize]) -> Vec<isize> {
    let lead = to.len() - from.len();
    let own = strides(from);
    (0..to.len()).map(|axis| if axis < lead || from[axis - lead] == 1 { 0 } else { own[axis - lead] }).collect()
}

/// Loops over a shape with the strides of `N` operands, neighbouring axes merged where every operand allows it.
pub(super) struct Walk<const N: usize> {
    /// Extents, outermost first; never empty.
    pub(super) dims: Vec<usize>,
    /// Strides of each operand, by axis.
    pub(super) strides: Vec<[isize; N]>,
}

impl<const N: usize> Walk<N> {
    /// Merges the axes of `shape`, where operand `i` moves by `operands[i][axis]` elements per step.
    pub(super) fn new(shape: &[usize], operands: [&[isize]; N]) -> Self {
        let mut dims: Vec<usize> = Vec::with_capacity(shape.len());
        let mut strides: Vec<[isize; N]> = Vec::with_capacity(shape.len());
        for (axis, &dim) in shape.iter().enumerate() {
            if dim == 1 {
                continue;
            }
            let step = std::array::from_fn(|i| operands[i][axis]);
            let merges =
                strides.last().is_some_and(|outer: &[isize; N]| (0..N).all(|i| outer[i] == step[i] * dim as isize));
            if merges {
                let last = dims.len() - 1;
                dims[last] *= dim;
                strides[last] = step;
            } else {
                dims.push(dim);
                strides.push(step);
            }
        }
        if dims.is_empty() {
            dims.push(1);
            strides.push([0; N]);
        }
        Self { dims, strides }
    }

    /// Extent of the innermost loop.
    pub(super) fn inner(&self) -> usize {
        self.dims[self.dims.len() - 1]
    }

    /// Strides of the innermost loop.
    pub(super) fn inner_strides(&self) -> [isize; N] {
        self.strides[self.dims.len() - 1]
    }

    /// Number of innermost loops.
    pub(super) fn outer(&self) -> usize {
        self.dims[..self.dims.len() - 1].iter().product()
    }

    /// Calls `body(i, offsets)` for the innermost loops `first..first + count`, in order.
    pub(super) fn visit(&self, first: usize, count: usize, mut body: impl FnMut(usize, [isize; N])) {
        let outer_axes = self.dims.len() - 1;
        let mut index = vec![0; outer_axes];
        let mut offsets = [0isize; N];
        let mut rest = first;
        for axis in (0..outer_axes).rev() {
            index[axis] = rest % self.dims[axis];
            rest /= self.dims[axis];
            step(&mut offsets, &self.strides[axis], index[axis] as isize);
        }
        for i in first..first + count {
            body(i, offsets);
            for axis in (0..outer_axes).rev() {
                index[axis] += 1;
                step(&mut offsets, &self.strides[axis], 1);
                if index[axis] < self.dims[axis] {
                    break;
                }
                index[axis] = 0;
                step(&mut offsets, &self.strides[axis], -(self.dims[axis] as isize));
            }
        }
    }
}

/// Moves every operand by `count` steps of its stride.
fn step<const N: usize>(offsets: &mut [isize; N], strides: &[isize; N], count: isize) {
    for (offset, stride) in offsets.iter_mut().zip(strides) {
        *offset += stride * count;
    }
}

#[cfg(test)]
mod tests {
    use super::{Walk, broadcast_strides, strides};

    #[test]
    fn equal_contiguous_operands_merge_into_one_loop() {
        let own = strides(&[2, 3, 4]);
        let walk = Walk::new(&[2, 3, 4], [&own, &own]);
        assert_eq!(walk.dims, [24]);
        assert_eq!(walk.inner_strides(), [1, 1]);
    }

    #[test]
    fn trailing_broadcast_keeps_one_outer_loop() {
        let own = strides(&[2, 3, 4]);
        let bias = broadcast_strides(&[4], &[2, 3, 4]);
        assert_eq!(bias, [0, 0, 1]);
        let walk = Walk::new(&[2, 3, 4], [&own, &bias]);
        assert_eq!(walk.dims, [6, 4]);
        let mut seen = Vec::new();
        walk.visit(4, 2, |i, offsets| seen.push((i, offsets)));
        assert_eq!(seen, [(4, [16, 0]), (5, [20, 0])]);
    }
}
