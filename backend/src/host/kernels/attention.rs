//! Scaled dot-product attention, forward and backward, a tile of query rows at a time.
//!
//! The backward pass recomputes the probabilities of a tile from the saved log-sum-exp of its rows, so that no kernel ever
//! holds more than `TILE x keys` scores per lane of its workspace.

mod mask;

pub(crate) use mask::mask_backward;

use super::float::Float;
use super::matmul::{Matrix, Store, product};
use super::parallel::Shared;
use super::softmax::softmax_row;
use super::walk::broadcast_strides;
use gemm::Parallelism;
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

/// Query rows whose scores are held at once.
const TILE: usize = 64;
/// Pieces that the heads are cut into; each piece has its own part of the workspace.
const LANES: usize = 16;

/// Sizes and options of one attention call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attention {
    /// Samples.
    pub(crate) batch: usize,
    /// Query heads.
    pub(crate) heads: usize,
    /// Key and value heads; divides `heads`.
    pub(crate) kv_heads: usize,
    /// Query positions.
    pub(crate) queries: usize,
    /// Key positions.
    pub(crate) keys: usize,
    /// Width of a query and of a key.
    pub(crate) width: usize,
    /// Width of a value and of the output.
    pub(crate) value_width: usize,
    /// Factor on the scores.
    pub(crate) scale: f64,
    /// Query `s` sees key `t` where `t <= s + offset`; `None` sees every key.
    pub(crate) causal_offset: Option<isize>,
}

/// What is added to the scores: elements and shape, broadcastable to [batch, heads, queries, keys].
pub(crate) type Mask<'a, T> = Option<(&'a [T], &'a [usize])>;

/// The operands of attention: [batch, heads, queries, width], [batch, kv_heads, keys, width], [.., value_width].
#[derive(Clone, Copy)]
pub(crate) struct Operands<'a, T> {
    /// Queries.
    pub(crate) q: &'a [T],
    /// Keys.
    pub(crate) k: &'a [T],
    /// Values.
    pub(crate) v: &'a [T],
    /// Additive mask.
    pub(crate) mask: Mask<'a, T>,
}

impl Attention {
    /// Elements of workspace that [`forward`] needs.
    pub(crate) fn forward_workspace(&self) -> usize {
        (self.batch * self.heads).min(LANES) * 2 * TILE.min(self.queries) * self.keys
    }

    /// Elements of workspace that [`backward`] needs.
    pub(crate) fn backward_workspace(&self) -> usize {
        (self.batch * self.kv_heads).min(LANES) * 2 * TILE.min(self.queries) * self.keys
    }

    /// Keys that any query of rows `..end` sees.
    fn visible(&self, end: usize) -> usize {
        match self.causal_offset {
            Some(offset) => (end as isize + offset).clamp(0, self.keys as isize) as usize,
            None => self.keys,
        }
    }

    /// Scores of query rows `first..first + rows` of one head against the keys `..visible`, scaled and masked.
    fn scores<T: Float>(
        &self,
        x: Operands<'_, T>,
        head: Head,
        (first, rows, visible): (usize, usize, usize),
        out: &mut [T],
    ) {
        let q = &x.q[(head.query * self.queries + first) * self.width..][..rows * self.width];
        let k = &x.k[head.kv * self.keys * self.width..][..visible * self.width];
        let operands = (Matrix::new(q, self.width, false), Matrix::new(k, self.width, true));
        let scale = T::of(self.scale);
        product((rows, visible, self.width), out, visible, operands, (scale, Store::Replace), Parallelism::None);
        if let Some((mask, shape)) = x.mask {
            let full = [self.batch, self.heads, self.queries, self.keys];
            let strides = broadcast_strides(shape, &full);
            let base = head.sample as isize * strides[0] + head.head as isize * strides[1];
            for (i, row) in out.chunks_exact_mut(visible).take(rows).enumerate() {
                let at = base + (first + i) as isize * strides[2];
                for (t, score) in row.iter_mut().enumerate() {
                    *score += mask[(at + t as isize * strides[3]) as usize];
                }
            }
        }
        if self.causal_offset.is_some() {
            for (i, row) in out.chunks_exact_mut(visible).take(rows).enumerate() {
                row[self.visible(first + i + 1).min(visible)..].fill(T::NEG_INFINITY);
            }
        }
    }
}

/// One query head of one sample, and the key/value head it uses.
#[derive(Clone, Copy)]
struct Head {
    sample: usize,
    head: usize,
    query: usize,
    kv: usize,
}

impl Head {
    fn new(attention: &Attention, query: usize) -> Self {
        let (sample, head) = (query / attention.heads, query % attention.heads);
        let group = attention.heads / attention.kv_heads;
        Self { sample, head, query, kv: sample * attention.kv_heads + head / group }
    }
}

/// `out = softmax(scale * q k^T + mask) v`, and `lse`, the log-sum-exp of each row of scores; a row that sees no key is zero.
pub(crate) fn forward<T: Float>(
    attention: &Attention,
    x: Operands<'_, T>,
    out: &mut [T],
    lse: &mut [T],
    workspace: &mut [T],
) {
    let Attention { queries, value_width, keys, .. } = *attention;
    let tile = TILE.min(queries);
    let (out, lse) = (Shared::new(out), Shared::new(lse));
    lanes(attention.batch * attention.heads, workspace, 2 * tile * keys, |query, workspace| {
        let head = Head::new(attention, query);
        let (scores, probabilities) = workspace.split_at_mut(tile * keys);
        for first in (0..queries).step_by(tile.max(1)) {
            let rows = tile.min(queries - first);
            let visible = attention.visible(first + rows);
            let at = query * queries + first;
            // SAFETY: each head writes its own rows.
            let (out, lse) = unsafe { (out.range(at * value_width, rows * value_width), lse.range(at, rows)) };
            if visible == 0 {
                out.fill(T::ZERO);
                lse.fill(T::NEG_INFINITY);
                continue;
            }
            attention.scores(x, head, (first, rows, visible), scores);
            for (i, lse) in lse.iter_mut().enumerate() {
                let row = i * visible..(i + 1) * visible;
                *lse = softmax_row(&scores[row.clone()], &mut probabilities[row]);
            }
            let v = &x.v[head.kv * keys * value_width..][..visible * value_width];
            let operands = (Matrix::new(probabilities, visible, false), Matrix::new(v, value_width, false));
            let sizes = (rows, value_width, visible);
            product(sizes, out, value_width, operands, (T::ONE, Store::Replace), Parallelism::None);
        }
    });
}

/// What the forward pass produced and the incoming gradient.
#[derive(Clone, Copy)]
pub(crate) struct Saved<'a, T> {
    /// Output of the forward pass.
    pub(crate) out: &'a [T],
    /// Log-sum-exp of each row of scores.
    pub(crate) lse: &'a [T],
    /// Gradient of the output.
    pub(crate) dout: &'a [T],
}

/// Gradients of the queries, keys and values; query heads that share a key head add up in ascending order.
pub(crate) fn backward<T: Float>(
    attention: &Attention,
    x: Operands<'_, T>,
    saved: Saved<'_, T>,
    (dq, dk, dv): (&mut [T], &mut [T], &mut [T]),
    workspace: &mut [T],
) {
    let Attention { queries, keys, width, value_width, .. } = *attention;
    let group = attention.heads / attention.kv_heads;
    let tile = TILE.min(queries);
    let (dq, dk, dv) = (Shared::new(dq), Shared::new(dk), Shared::new(dv));
    lanes(attention.batch * attention.kv_heads, workspace, 2 * tile * keys, |kv, workspace| {
        let (p, ds) = workspace.split_at_mut(tile * keys);
        // SAFETY: each key head writes its own keys and values, and the queries of its own group.
        let (dk, dv) = unsafe {
            (dk.range(kv * keys * width, keys * width), dv.range(kv * keys * value_width, keys * value_width))
        };
        dk.fill(T::ZERO);
        dv.fill(T::ZERO);
        let k = Matrix::new(&x.k[kv * keys * width..][..keys * width], width, false);
        let v = &x.v[kv * keys * value_width..][..keys * value_width];
        for query in kv * group..(kv + 1) * group {
            let head = Head::new(attention, query);
            debug_assert_eq!(head.kv, kv);
            for first in (0..queries).step_by(tile.max(1)) {
                let rows = tile.min(queries - first);
                let visible = attention.visible(first + rows);
                let at = query * queries + first;
                // SAFETY: as above.
                let dq = unsafe { dq.range(at * width, rows * width) };
                if visible == 0 {
                    dq.fill(T::ZERO);
                    continue;
                }
                attention.scores(x, head, (first, rows, visible), p);
                let out = &saved.out[at * value_width..][..rows * value_width];
                let dout = &saved.dout[at * value_width..][..rows * value_width];
                let dout_matrix = Matrix::new(dout, value_width, false);
                let sizes = (rows, visible, value_width);
                let operands = (dout_matrix, Matrix::new(v, value_width, true));
                product(sizes, ds, visible, operands, (T::ONE, Store::Replace), Parallelism::None);
                let lse = &saved.lse[at..at + rows];
                score_grads((p, ds), lse, (out, dout), visible, value_width);
                let (scale, one) = (T::of(attention.scale), T::ONE);
                let operands = (Matrix::new(p, visible, true), dout_matrix);
                product((visible, value_width, rows), dv, value_width, operands, (one, Store::Add), Parallelism::None);
                let operands = (Matrix::new(ds, visible, false), k);
                product((rows, width, visible), dq, width, operands, (scale, Store::Replace), Parallelism::None);
                let q = Matrix::new(&x.q[at * width..][..rows * width], width, false);
                let operands = (Matrix::new(ds, visible, true), q);
                product((visible, width, rows), dk, width, operands, (scale, Store::Add), Parallelism::None);
            }
        }
    });
}

/// Turns scores into probabilities, and gradients of probabilities into gradients of scores.
fn score_grads<T: Float>(
    (p, ds): (&mut [T], &mut [T]),
    lse: &[T],
    (out, dout): (&[T], &[T]),
    visible: usize,
    value_width: usize,
) {
    for (i, &lse) in lse.iter().enumerate() {
        let row = i * visible..(i + 1) * visible;
        let (p, ds) = (&mut p[row.clone()], &mut ds[row]);
        if lse == T::NEG_INFINITY {
            p.fill(T::ZERO);
            ds.fill(T::ZERO);
            continue;
        }
        let value_row = i * value_width..(i + 1) * value_width;
        let delta = out[value_row.clone()].iter().zip(&dout[value_row]).fold(T::ZERO, |sum, (&o, &d)| sum + o * d);
        for (p, ds) in p.iter_mut().zip(ds) {
            *p = (*p - lse).exp();
            *ds = *p * (*ds - delta);
        }
    }
}

/// Runs `body(item, part)` for every item; consecutive items share a lane and its part of the workspace.
fn lanes<T: Send>(n_items: usize, workspace: &mut [T], part: usize, body: impl Fn(usize, &mut [T]) + Sync) {
    let n_lanes = n_items.min(LANES);
    let workspace = Shared::new(workspace);
    (0..n_lanes).into_par_iter().for_each(|lane| {
        // SAFETY: each lane owns its part of the workspace.
        let part = unsafe { workspace.range(lane * part, part) };
        for item in lane * n_items / n_lanes..(lane + 1) * n_items / n_lanes {
            body(item, part);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{Attention, Float, Operands, Saved, backward, forward, mask_backward};

    const BASE: Attention = Attention {
        batch: 2,
        heads: 4,
        kv_heads: 2,
        queries: 5,
        keys: 7,
        width: 3,
        value_width: 2,
        scale: 0.6,
        causal_offset: None,
    };

    fn values<T: Float>(n: usize, k: usize) -> Vec<T> {
        (0..n).map(|i| T::of(((i * k) % 29) as f64 * 0.1 - 1.4)).collect()
    }

    struct Case {
        attention: Attention,
        q: Vec<f64>,
        k: Vec<f64>,
        v: Vec<f64>,
        mask: Option<(Vec<f64>, Vec<usize>)>,
    }

    impl Case {
        fn new(attention: Attention, mask: Option<Vec<usize>>) -> Self {
            let a = attention;
            let kv = a.batch * a.kv_heads * a.keys;
            Self {
                attention,
                q: values(a.batch * a.heads * a.queries * a.width, 7),
                k: values(kv * a.width, 11),
                v: values(kv * a.value_width, 13),
                mask: mask.map(|shape| (values(shape.iter().product(), 5), shape)),
            }
        }

        fn operands(&self) -> Operands<'_, f64> {
            let mask = self.mask.as_ref().map(|(m, shape)| (m.as_slice(), shape.as_slice()));
            Operands { q: &self.q, k: &self.k, v: &self.v, mask }
        }

        fn run(&self) -> (Vec<f64>, Vec<f64>) {
            let a = &self.attention;
            let rows = a.batch * a.heads * a.queries;
            let (mut out, mut lse) = (vec![0.0; rows * a.value_width], vec![0.0; rows]);
            let mut workspace = vec![f64::NAN; a.forward_workspace()];
            forward(a, self.operands(), &mut out, &mut lse, &mut workspace);
            (out, lse)
        }

        /// The truth: the definition, element by element.
        fn naive(&self) -> Vec<f64> {
            let a = &self.attention;
            let mut out = Vec::new();
            for row in 0..a.batch * a.heads * a.queries {
                let (b, h, s) = (row / a.queries / a.heads, row / a.queries % a.heads, row % a.queries);
                let kv = b * a.kv_heads + h / (a.heads / a.kv_heads);
                let weights: Vec<f64> = (0..a.keys)
                    .map(|t| {
                        if a.causal_offset.is_some_and(|offset| t as isize > s as isize + offset) {
                            return 0.0;
                        }
                        let dot: f64 = (0..a.width)
                            .map(|d| self.q[row * a.width + d] * self.k[(kv * a.keys + t) * a.width + d])
                            .sum();
                        let mask = self.mask.as_ref().map_or(0.0, |(m, shape)| {
                            let at = |i: usize, x: usize| if shape[i] == 1 { 0 } else { x };
                            m[((at(0, b) * shape[1] + at(1, h)) * shape[2] + at(2, s)) * shape[3] + at(3, t)]
                        });
                        (a.scale * dot + mask).exp()
                    })
                    .collect();
                let total: f64 = weights.iter().sum();
                for d in 0..a.value_width {
                    let sum: f64 =
                        (0..a.keys).map(|t| weights[t] * self.v[(kv * a.keys + t) * a.value_width + d]).sum();
                    out.push(if total == 0.0 { 0.0 } else { sum / total });
                }
            }
            out
        }
    }

    fn cases() -> Vec<Case> {
        let causal = |offset| Attention { causal_offset: Some(offset), ..BASE };
        vec![
            Case::new(BASE, None),
            Case::new(causal(0), None),
            Case::new(causal(2), Some(vec![1, 1, 5, 7])),
            Case::new(causal(-2), None),
            Case::new(BASE, Some(vec![2, 1, 1, 7])),
            Case::new(
                Attention { queries: 130, keys: 130, causal_offset: Some(0), ..BASE },
                Some(vec![1, 4, 130, 130]),
            ),
        ]
    }

    #[test]
    fn forward_matches_the_definition() {
        for case in cases() {
            let (out, _) = case.run();
            for (got, want) in out.iter().zip(case.naive()) {
                assert!((got - want).abs() < 1e-12, "{got}, expected {want}, {:?}", case.attention);
            }
        }
    }

    #[test]
    fn gradients_match_finite_differences() {
        for mut case in cases() {
            let a = case.attention;
            let (out, lse) = case.run();
            let dout: Vec<f64> = values(out.len(), 17);
            let (mut dq, mut dk, mut dv) =
                (vec![f64::NAN; case.q.len()], vec![f64::NAN; case.k.len()], vec![f64::NAN; case.v.len()]);
            let saved = Saved { out: &out, lse: &lse, dout: &dout };
            let mut workspace = vec![f64::NAN; a.backward_workspace()];
            backward(&a, case.operands(), saved, (&mut dq, &mut dk, &mut dv), &mut workspace);
            let field: [fn(&mut Case) -> &mut Vec<f64>; 3] = [|c| &mut c.q, |c| &mut c.k, |c| &mut c.v];
            for (which, got) in [dq, dk, dv].iter().enumerate() {
                for i in (0..got.len()).step_by(got.len() / 19 + 1) {
                    let h = 1e-6;
                    let value = |case: &mut Case, by: f64| {
                        field[which](case)[i] += by;
                        case.naive().iter().zip(&dout).map(|(o, d)| o * d).sum::<f64>()
                    };
                    let above = value(&mut case, h);
                    let below = value(&mut case, -2.0 * h);
                    value(&mut case, h);
                    let want = (above - below) / (2.0 * h);
                    assert!((got[i] - want).abs() < 1e-6, "{which} {i}: {} expected {want}, {a:?}", got[i]);
                }
            }
        }
    }

    #[test]
    fn gradients_of_masks_match_finite_differences() {
        for mut case in cases() {
            let Some((mask, shape)) = case.mask.clone() else { continue };
            let a = case.attention;
            let (out, lse) = case.run();
            let dout: Vec<f64> = values(out.len(), 17);
            let mut dmask = vec![f64::NAN; mask.len()];
            let saved = Saved { out: &out, lse: &lse, dout: &dout };
            let mut workspace = vec![f64::NAN; a.mask_backward_workspace(&shape)];
            mask_backward(&a, case.operands(), saved, &mut dmask, &mut workspace);
            for i in (0..mask.len()).step_by(mask.len() / 19 + 1) {
                let h = 1e-6;
                let mut value = |by: f64| {
                    case.mask.as_mut().expect("it has a mask").0[i] = mask[i] + by;
                    case.naive().iter().zip(&dout).map(|(o, d)| o * d).sum::<f64>()
                };
                let want = (value(h) - value(-h)) / (2.0 * h);
                value(0.0);
                assert!((dmask[i] - want).abs() < 1e-6, "{i}: {} expected {want}, {a:?} {shape:?}", dmask[i]);
            }
        }
    }

    #[test]
    fn results_do_not_depend_on_the_thread_count() {
        let a = Attention { queries: 100, keys: 100, width: 16, value_width: 16, causal_offset: Some(0), ..BASE };
        let kv = a.batch * a.kv_heads * a.keys * a.width;
        let (q, k, v): (Vec<f32>, Vec<f32>, Vec<f32>) =
            (values(a.batch * a.heads * a.queries * a.width, 7), values(kv, 11), values(kv, 13));
        let x = Operands { q: &q, k: &k, v: &v, mask: None };
        let runs: Vec<Vec<Vec<f32>>> = (1..=4)
            .map(|threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let (mut out, mut lse) = (vec![0.0; q.len()], vec![0.0; q.len() / a.width]);
                let (mut dq, mut dk, mut dv) = (vec![0.0; q.len()], vec![0.0; kv], vec![0.0; kv]);
                pool.install(|| {
                    forward(&a, x, &mut out, &mut lse, &mut vec![0.0; a.forward_workspace()]);
                    let saved = Saved { out: &out, lse: &lse, dout: &q };
                    let grads = (&mut dq[..], &mut dk[..], &mut dv[..]);
                    backward(&a, x, saved, grads, &mut vec![0.0; a.backward_workspace()]);
                });
                vec![out, lse, dq, dk, dv]
            })
            .collect();
        assert!(runs.windows(2).all(|pair| pair[0] == pair[1]));
    }
}
