//! Lookups by index and the additions that are their gradients. Negative indices count from the end.

use super::attr::family;
use super::rule;
use crate::ty::Type;

family! {
    /// Reads and writes at computed positions.
    pub enum Indexing {
        /// `(x, indices) -> y`: slices of `x` along an axis; the axis is replaced by the shape of the indices.
        Gather = "gather" {
            /// The axis.
            axis: u64,
        },
        /// `(indices, dy) -> dx`: adds every slice of `dy` at its index, in ascending order of position.
        GatherGrad = "gather_grad" {
            /// The axis.
            axis: u64,
            /// Length of the axis in `x`.
            len: u64,
        },
        /// `(x, indices) -> y`: `y[i] = x` at `indices[i]` along the axis, elementwise in the other axes
        /// (`torch.gather`).
        GatherElements = "gather_elements" {
            /// The axis.
            axis: u64,
        },
        /// `(indices, dy) -> dx`: adds every element of `dy` at its index.
        GatherElementsGrad = "gather_elements_grad" {
            /// The axis.
            axis: u64,
            /// Length of the axis in `x`.
            len: u64,
        },
    }
}

impl Indexing {
    pub(crate) fn infer(&self, inputs: &[&Type]) -> Result<Vec<Type>, String> {
        rule::arity(inputs, 2)?;
        let (a, b) = (inputs[0], inputs[1]);
        match self {
            Self::Gather { axis } => {
                rule::integer(b, 1)?;
                let axis = rule::axis(*axis, a)?;
                let mut shape = a.shape[..axis].to_vec();
                shape.extend(&b.shape);
                shape.extend(&a.shape[axis + 1..]);
                Ok(vec![Type::new(a.dtype, shape)])
            }
            Self::GatherGrad { axis, len } => {
                rule::integer(a, 0)?;
                rule::float(b, 1)?;
                let axis = usize::try_from(*axis).unwrap_or(usize::MAX);
                let end = axis.saturating_add(a.rank());
                if end > b.rank() || b.shape[axis..end] != a.shape {
                    return Err(format!("the gradient {b} does not hold the indices {a} at axis {axis}"));
                }
                let mut shape = b.shape[..axis].to_vec();
                shape.push(*len);
                shape.extend(&b.shape[end..]);
                Ok(vec![Type::new(b.dtype, shape)])
            }
            Self::GatherElements { axis } => {
                rule::integer(b, 1)?;
                let axis = rule::axis(*axis, a)?;
                let fits = |(i, (x, y)): (usize, (&u64, &u64))| i == axis || x == y;
                if a.rank() != b.rank() || !a.shape.iter().zip(&b.shape).enumerate().all(fits) {
                    return Err(format!("indices {b} must equal {a} in every axis but {axis}"));
                }
                Ok(vec![Type::new(a.dtype, b.shape.clone())])
            }
            Self::GatherElementsGrad { axis, len } => {
                rule::integer(a, 0)?;
                rule::float(b, 1)?;
                let axis = rule::axis(*axis, b)?;
                if a.shape != b.shape {
                    return Err(format!("indices {a} and gradient {b} must have one shape"));
                }
                let mut shape = b.shape.clone();
                shape[axis] = *len;
                Ok(vec![Type::new(b.dtype, shape)])
            }
        }
    }
}
