//! Data movement: transposes, broadcasts, slices, concatenation, padding. Elements are only copied.

use super::parallel::{self, Shared};
use super::walk::{Walk, broadcast_strides, strides};

/// A strided window into a slice: element `i` of an axis is `strides[axis] * i` away from `offset`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Position of the first element.
    pub(crate) offset: usize,
    /// Elements from one position of each axis to the next.
    pub(crate) strides: Vec<isize>,
}

impl Window {
    /// All of a row-major tensor.
    pub(crate) fn whole(shape: &[usize]) -> Self {
        Self { offset: 0, strides: strides(shape) }
    }

    /// A tensor of shape `from` read as shape `to`.
    pub(crate) fn broadcast(from: &[usize], to: &[usize]) -> Self {
        Self { offset: 0, strides: broadcast_strides(from, to) }
    }

    /// A tensor of shape `from` with its axes in the order `permutation`.
    pub(crate) fn transposed(from: &[usize], permutation: &[usize]) -> Self {
        let own = strides(from);
        Self { offset: 0, strides: permutation.iter().map(|&axis| own[axis]).collect() }
    }

    /// The part of a tensor of shape `from` that begins at `starts` and advances by `steps`, which may be negative.
    pub(crate) fn slice(from: &[usize], starts: &[usize], steps: &[isize]) -> Self {
        let own = strides(from);
        let offset = own.iter().zip(starts).map(|(&stride, &start)| stride as usize * start).sum();
        Self { offset, strides: own.iter().zip(steps).map(|(stride, step)| stride * step).collect() }
    }
}

/// Side of the square tiles of a transpose.
const TILE: usize = 16;
/// Rows of tiles' axis that one task of a transpose owns.
const STRIPE: usize = 64;

/// Copies every element of `shape` from one window to another; the places written are distinct.
pub(crate) fn copy<T: Copy + Send + Sync>(src: &[T], from: &Window, out: &mut [T], to: &Window, shape: &[usize]) {
    if shape.contains(&0) {
        return;
    }
    let mut walk = Walk::new(shape, [&to.strides, &from.strides]);
    let last = walk.dims.len() - 1;
    // An outer axis along which the source is contiguous makes this a transpose.
    let tiled = match walk.strides[last] {
        [1, s] if s != 1 && s != 0 => (0..last).find(|&axis| walk.strides[axis][1] == 1),
        _ => None,
    };
    let out = Shared::new(out);
    let Some(axis) = tiled else {
        let inner = walk.inner();
        let steps = walk.inner_strides();
        let (outer, per_piece) = (walk.outer(), parallel::rows_per_piece(inner));
        parallel::indices(outer.div_ceil(per_piece), per_piece * inner, |piece| {
            let first = piece * per_piece;
            walk.visit(first, per_piece.min(outer - first), |_, [o, i]| {
                let (o, i) = (to.offset as isize + o, from.offset as isize + i);
                line(src, i, &out, o, inner, steps);
            });
        });
        return;
    };
    // The walk's order does not matter to a copy: put the two axes of the transpose last.
    let (dim, step) = (walk.dims.remove(axis), walk.strides.remove(axis));
    walk.dims.insert(last - 1, dim);
    walk.strides.insert(last - 1, step);
    let (cols, col_step) = (walk.dims[last], walk.strides[last][1]);
    let outer_walk = Walk { dims: walk.dims[..last].to_vec(), strides: walk.strides[..last].to_vec() };
    let stripes = dim.div_ceil(STRIPE);
    parallel::indices(outer_walk.outer() * stripes, STRIPE * cols, |task| {
        let (plane, first) = (task / stripes, task % stripes * STRIPE);
        let end = (first + STRIPE).min(dim);
        outer_walk.visit(plane, 1, |_, [o, i]| {
            let (o, i) = (to.offset as isize + o, from.offset as isize + i);
            for col in (0..cols).step_by(TILE) {
                let width = TILE.min(cols - col);
                for row in first..end {
                    let at = o + row as isize * step[0] + col as isize;
                    // SAFETY: windows write distinct places, so rows of the plane do not overlap.
                    let out = unsafe { out.range(at as usize, width) };
                    let at = i + row as isize + col as isize * col_step;
                    for (j, out) in out.iter_mut().enumerate() {
                        *out = src[(at + j as isize * col_step) as usize];
                    }
                }
            }
        });
    });
}

/// Copies one innermost loop.
fn line<T: Copy>(src: &[T], i: isize, out: &Shared<T>, o: isize, n: usize, [o_step, i_step]: [isize; 2]) {
    if o_step == 1 {
        // SAFETY: windows write distinct places, so lines do not overlap.
        let out = unsafe { out.range(o as usize, n) };
        match i_step {
            1 => out.copy_from_slice(&src[i as usize..i as usize + n]),
            0 => out.fill(src[i as usize]),
            _ => {
                for (j, out) in out.iter_mut().enumerate() {
                    *out = src[(i + j as isize * i_step) as usize];
                }
            }
        }
        return;
    }
    for j in 0..n as isize {
        // SAFETY: as above.
        let out = unsafe { out.range((o + j * o_step) as usize, 1) };
        out[0] = src[(i + j * i_step) as usize];
    }
}

/// Copies `src` into `out` where axis `axis` begins at `start`: concatenation is one such copy per operand.
pub(crate) fn place<T: Copy + Send + Sync>(
    src: &[T],
    shape: &[usize],
    out: &mut [T],
    out_shape: &[usize],
    (axis, start): (usize, usize),
) {
    let mut starts = vec![0; shape.len()];
    starts[axis] = start;
    let to = Window::slice(out_shape, &starts, &vec![1; shape.len()]);
    copy(src, &Window::whole(shape), out, &to, shape);
}

/// Surrounds `src` with `value`: `before` elements in front of each axis, and as many behind as `out_shape` leaves.
pub(crate) fn pad<T: Copy + Send + Sync>(
    src: &[T],
    shape: &[usize],
    value: T,
    before: &[usize],
    out: &mut [T],
    out_shape: &[usize],
) {
    parallel::pieces(out, parallel::PIECE, |_, piece| piece.fill(value));
    let to = Window::slice(out_shape, before, &vec![1; shape.len()]);
    copy(src, &Window::whole(shape), out, &to, shape);
}

#[cfg(test)]
mod tests {
    use super::{Window, copy, pad, place};

    #[test]
    fn every_permutation_matches_index_arithmetic() {
        let shape = [3usize, 70, 5, 33];
        let n: usize = shape.iter().product();
        let x: Vec<u32> = (0..n as u32).collect();
        for code in 0..256usize {
            let p: [usize; 4] = std::array::from_fn(|i| code >> (2 * i) & 3);
            if (0..4).any(|axis| !p.contains(&axis)) {
                continue;
            }
            let out_shape = p.map(|axis| shape[axis]);
            let mut out = vec![0; n];
            copy(&x, &Window::transposed(&shape, &p), &mut out, &Window::whole(&out_shape), &out_shape);
            for (i, &got) in out.iter().enumerate() {
                let (mut index, mut rest) = ([0; 4], i);
                for axis in (0..4).rev() {
                    index[p[axis]] = rest % out_shape[axis];
                    rest /= out_shape[axis];
                }
                let want = ((index[0] * shape[1] + index[1]) * shape[2] + index[2]) * shape[3] + index[3];
                assert_eq!(got as usize, want, "{p:?} at {i}");
            }
        }
    }

    #[test]
    fn slices_take_steps_both_ways() {
        let x: Vec<u8> = (0..20).collect();
        let mut out = [0; 6];
        let window = Window::slice(&[4, 5], &[3, 1], &[-2, 1]);
        copy(&x, &window, &mut out, &Window::whole(&[2, 3]), &[2, 3]);
        assert_eq!(out, [16, 17, 18, 6, 7, 8]);
        let mut back = [0; 20];
        copy(&out, &Window::whole(&[2, 3]), &mut back, &window, &[2, 3]);
        assert_eq!(back[15..], [0, 16, 17, 18, 0]);
    }

    #[test]
    fn broadcast_concatenate_pad() {
        let mut out = [0; 6];
        copy(&[1, 2], &Window::broadcast(&[2, 1], &[2, 3]), &mut out, &Window::whole(&[2, 3]), &[2, 3]);
        assert_eq!(out, [1, 1, 1, 2, 2, 2]);
        place(&[7, 8], &[2, 1], &mut out, &[2, 3], (1, 1));
        assert_eq!(out, [1, 7, 1, 2, 8, 2]);
        let mut padded = [0; 12];
        pad(&[1, 2], &[1, 2], 9, &[1, 1], &mut padded, &[3, 4]);
        assert_eq!(padded, [9, 9, 9, 9, 9, 1, 2, 9, 9, 9, 9, 9]);
    }
}
