//! The gradient of attention's mask.

use super::super::float::Float;
use super::super::matmul::{Matrix, Store, product};
use super::super::parallel::Shared;
use super::super::walk::broadcast_strides;
use super::{Attention, Head, LANES, Operands, Saved, TILE, lanes, score_grads};
use gemm::Parallelism;

impl Attention {
    /// Elements of workspace that [`mask_backward`] needs for a mask of this shape.
    pub(crate) fn mask_backward_workspace(&self, mask: &[usize]) -> usize {
        self.mask_parts(mask).iter().product::<usize>().min(LANES) * 2 * TILE.min(self.queries) * self.keys
    }

    /// How many samples and how many heads have elements of their own in a mask of this shape.
    fn mask_parts(&self, mask: &[usize]) -> [usize; 2] {
        let strides = broadcast_strides(mask, &[self.batch, self.heads, self.queries, self.keys]);
        [if strides[0] == 0 { 1 } else { self.batch }, if strides[1] == 0 { 1 } else { self.heads }]
    }
}

/// The gradient of the mask: that of the scores, summed over what the mask was broadcast along in ascending order of
/// samples, heads and positions.
pub(crate) fn mask_backward<T: Float>(
    attention: &Attention,
    x: Operands<'_, T>,
    saved: Saved<'_, T>,
    dmask: &mut [T],
    workspace: &mut [T],
) {
    let Attention { batch, heads, queries, keys, value_width, .. } = *attention;
    let Some((_, shape)) = x.mask else { return };
    let tile = TILE.min(queries);
    let strides = broadcast_strides(shape, &[batch, heads, queries, keys]);
    let [mask_samples, mask_heads] = attention.mask_parts(shape);
    let part = dmask.len() / (mask_samples * mask_heads).max(1);
    let dmask = Shared::new(dmask);
    lanes(mask_samples * mask_heads, workspace, 2 * tile * keys, |own, workspace| {
        let (p, ds) = workspace.split_at_mut(tile * keys);
        // SAFETY: each sample and head of the mask has a part of its own, in this order.
        let dmask = unsafe { dmask.range(own * part, part) };
        dmask.fill(T::ZERO);
        let (sample, mask_head) = (own / mask_heads, own % mask_heads);
        let samples = if mask_samples == 1 { 0..batch } else { sample..sample + 1 };
        for query in samples.flat_map(|sample| {
            let of_mask = if mask_heads == 1 { 0..heads } else { mask_head..mask_head + 1 };
            of_mask.map(move |head| sample * heads + head)
        }) {
            let head = Head::new(attention, query);
            let v = &x.v[head.kv * keys * value_width..][..keys * value_width];
            for first in (0..queries).step_by(tile.max(1)) {
                let rows = tile.min(queries - first);
                let visible = attention.visible(first + rows);
                if visible == 0 {
                    continue;
                }
                let at = query * queries + first;
                attention.scores(x, head, (first, rows, visible), p);
                let out = &saved.out[at * value_width..][..rows * value_width];
                let dout = &saved.dout[at * value_width..][..rows * value_width];
                let operands = (Matrix::new(dout, value_width, false), Matrix::new(v, value_width, true));
                let sizes = (rows, visible, value_width);
                product(sizes, ds, visible, operands, (T::ONE, Store::Replace), Parallelism::None);
                score_grads((p, ds), &saved.lse[at..at + rows], (out, dout), visible, value_width);
                for (i, row) in ds.chunks_exact(visible).take(rows).enumerate() {
                    let base = (first + i) as isize * strides[2];
                    for (t, &d) in row.iter().enumerate() {
                        dmask[(base + t as isize * strides[3]) as usize] += d;
                    }
                }
            }
        }
    });
}
