//! Host kernels: pure functions over slices, one file per family of operations.
//!
//! Every kernel checks nothing about shapes that the graph verifier already guarantees, except by `debug_assert!` and by
//! slice bounds. No kernel's result depends on the number of threads: work is cut into pieces whose boundaries follow from
//! the shape alone, and sums have one fixed order.

mod float;
mod parallel;
mod vector;
mod walk;
mod window;

pub(crate) mod attention;
pub(crate) mod batch_norm;
pub(crate) mod binary;
pub(crate) mod cast;
pub(crate) mod convolution;
pub(crate) mod gather;
pub(crate) mod loss;
pub(crate) mod matmul;
pub(crate) mod movement;
pub(crate) mod norm;
pub(crate) mod optimizer;
pub(crate) mod pooling;
pub(crate) mod random;
pub(crate) mod reduce;
pub(crate) mod rope;
pub(crate) mod scan;
pub(crate) mod softmax;
pub(crate) mod unary;
pub(crate) mod unary_grad;

pub(crate) use float::Float;
pub(crate) use gather::IndexOutOfRange;
pub(crate) use window::Windows;
