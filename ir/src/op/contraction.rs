//! Matrix products.

use super::attr::family;
use super::rule;
use crate::ty::Type;

family! {
    /// Sums of products over a shared dimension.
    pub enum Contraction {
        /// `op(a) @ op(b)` over the last two dimensions: `[.., m, k] x [.., k, n] -> [.., m, n]`.
        /// Leading dimensions are equal, or `b` has rank 2 and serves every leading position of `a`.
        MatMul = "matmul" {
            /// `a` is stored as `[.., k, m]`; only when `b` has the rank of `a`.
            transpose_a: bool,
            /// `b` is stored as `[.., n, k]`.
            transpose_b: bool,
        },
    }
}

impl Contraction {
    pub(crate) fn infer(&self, inputs: &[&Type]) -> Result<Vec<Type>, String> {
        let Self::MatMul { transpose_a, transpose_b } = self;
        rule::arity(inputs, 2)?;
        let (a, b) = (inputs[0], inputs[1]);
        rule::float(a, 0)?;
        rule::same_dtype(a, b)?;
        rule::rank_at_least(a, 0, 2)?;
        rule::rank_at_least(b, 1, 2)?;
        let (lead_a, [r, c]) = split2(&a.shape);
        let (lead_b, [s, t]) = split2(&b.shape);
        let (m, k) = if *transpose_a { (c, r) } else { (r, c) };
        let (kb, n) = if *transpose_b { (t, s) } else { (s, t) };
        if lead_a != lead_b && (!lead_b.is_empty() || *transpose_a) {
            return Err(format!("leading dimensions of {a} and {b} must be equal (or the second of rank 2)"));
        }
        if k != kb {
            return Err(format!("contracted dimensions differ: {k} of {a} against {kb} of {b}"));
        }
        let mut shape = lead_a.to_vec();
        shape.extend([m, n]);
        Ok(vec![Type::new(a.dtype, shape)])
    }

    /// Multiplications and additions: `2 m k n` per leading position.
    pub(crate) fn flops(&self, inputs: &[&Type], outputs: &[&Type]) -> u64 {
        let Self::MatMul { transpose_a, transpose_b: _ } = self;
        let a = &inputs[0].shape;
        let k = if *transpose_a { a[a.len() - 2] } else { a[a.len() - 1] };
        2 * outputs[0].elements() * k
    }
}

fn split2(shape: &[u64]) -> (&[u64], [u64; 2]) {
    let (lead, last) = shape.split_at(shape.len() - 2);
    (lead, [last[0], last[1]])
}
