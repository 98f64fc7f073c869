//! Reductions and scans along axes.

use super::attr::{family, words};
use super::rule;
use crate::ty::{DType, Type};

words! {
    /// What a reduction computes.
    pub enum ReduceKind {
        /// Sum.
        Sum = "sum",
        /// Arithmetic mean.
        Mean = "mean",
        /// Largest element.
        Max = "max",
        /// Smallest element.
        Min = "min",
        /// Product.
        Prod = "prod",
    }
}

family! {
    /// Many elements to one, or running totals.
    pub enum Reduction {
        /// Reduces the axes.
        Reduce = "reduce" {
            /// What is computed.
            kind: ReduceKind,
            /// Axes, ascending, without repetition.
            axes: Vec<u64>,
            /// Whether a reduced axis stays as a dimension of 1.
            keep: bool,
        },
        /// Index of the largest element along an axis (the first of equals), an i64; the axis is dropped.
        ArgMax = "argmax" {
            /// The axis.
            axis: u64,
        },
        /// Running sum along an axis.
        CumSum = "cumsum" {
            /// The axis.
            axis: u64,
            /// Leave out the element itself.
            exclusive: bool,
            /// From the end.
            reverse: bool,
        },
        /// `(values, indices)` of the `k` largest elements along the last axis, in falling order, the first of equals
        /// first; indices are i64.
        TopK = "topk" {
            /// How many.
            k: u64,
        },
    }
}

impl Reduction {
    pub(crate) fn infer(&self, inputs: &[&Type]) -> Result<Vec<Type>, String> {
        rule::arity(inputs, 1)?;
        let x = inputs[0];
        rule::numeric(x, 0)?;
        match self {
            Self::Reduce { kind: _, axes, keep } => {
                let mut reduced = vec![false; x.rank()];
                let mut last = None;
                for &axis in axes {
                    reduced[rule::axis(axis, x)?] = true;
                    if last >= Some(axis) {
                        return Err(format!("axes must ascend without repetition, found {axes:?}"));
                    }
                    last = Some(axis);
                }
                let dims = x.shape.iter().zip(reduced);
                let shape: Vec<u64> = if *keep {
                    dims.map(|(&d, gone)| if gone { 1 } else { d }).collect()
                } else {
                    dims.filter(|(_, gone)| !gone).map(|(&d, _)| d).collect()
                };
                Ok(vec![Type::new(x.dtype, shape)])
            }
            Self::ArgMax { axis } => {
                let axis = rule::axis(*axis, x)?;
                let mut shape = x.shape.clone();
                shape.remove(axis);
                Ok(vec![Type::new(DType::I64, shape)])
            }
            Self::CumSum { axis, exclusive: _, reverse: _ } => {
                rule::axis(*axis, x)?;
                Ok(vec![x.clone()])
            }
            Self::TopK { k } => {
                rule::rank_at_least(x, 0, 1)?;
                let mut shape = x.shape.clone();
                let last = shape.last_mut().expect("rank is at least 1");
                if *k > *last {
                    return Err(format!("k = {k} exceeds the last dimension of {x}"));
                }
                *last = *k;
                Ok(vec![Type::new(x.dtype, shape.clone()), Type::new(DType::I64, shape)])
            }
        }
    }
}
