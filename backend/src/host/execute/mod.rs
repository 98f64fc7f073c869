//! Runs one operator of the IR on byte slices: finds the kernel for its family, attributes and element types.

mod attention;
mod batch_norm;
mod contraction;
mod convolution;
mod creation;
mod elementwise;
mod indexing;
mod loss;
mod movement;
mod normalization;
mod optimizer;
mod pooling;
mod random;
mod reduction;
mod widen;

#[cfg(test)]
mod gradient_tests;
#[cfg(test)]
mod value_tests;

use super::bytes::{Plain, view, view_mut};
use super::kernels::IndexOutOfRange;
use std::fmt;
use trainc_ir::op::{Elementwise, Opaque, Optimizer};
use trainc_ir::{DType, Op, Type};

/// What an operator needs to know of the run besides its operands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Seed of the run.
    pub seed: u64,
    /// Number of the step.
    pub step: u32,
    /// Added to the sites of random operators.
    pub site: u64,
    /// Number of the micro-batch in the global batch.
    pub micro_batch: u64,
}

/// Why an operator did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An index operand, or a label, is out of range.
    Index {
        /// The index.
        index: i64,
        /// Length of what it indexes.
        len: usize,
    },
    /// The operator is unknown.
    Opaque(String),
    /// The operator is not defined for this element type.
    Type {
        /// Its spelling.
        op: &'static str,
        /// The element type.
        dtype: DType,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index { index, len } => write!(f, "index {index} is out of range, expected 0 to {len} - 1"),
            Self::Opaque(name) => write!(f, "the operator `{name}` is unknown and cannot be executed"),
            Self::Type { op, dtype } => write!(f, "`{op}` is not defined for {dtype}"),
        }
    }
}

impl std::error::Error for Fault {}

impl From<IndexOutOfRange> for Fault {
    fn from(error: IndexOutOfRange) -> Self {
        Self::Index { index: error.index, len: error.len }
    }
}

/// An operand: its type and its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Arg<'a> {
    /// The type.
    pub(crate) ty: &'a Type,
    /// The bytes, aligned for the element type.
    pub(crate) bytes: &'a [u8],
}

/// A result: its type and where its bytes go.
pub(crate) struct Out<'a> {
    /// The type.
    pub(crate) ty: &'a Type,
    /// The bytes, aligned for the element type.
    pub(crate) bytes: &'a mut [u8],
}

impl<'a> Arg<'a> {
    /// The elements.
    fn get<T: Plain>(&self) -> &'a [T] {
        view(self.bytes)
    }

    /// The shape.
    fn shape(&self) -> Vec<usize> {
        shape(self.ty)
    }
}

impl Out<'_> {
    /// The elements.
    fn get<T: Plain>(&mut self) -> &mut [T] {
        view_mut(self.bytes)
    }

    /// The shape.
    fn shape(&self) -> Vec<usize> {
        shape(self.ty)
    }
}

/// Static dimensions as sizes in memory.
fn shape(ty: &Type) -> Vec<usize> {
    ty.shape.iter().map(|&dim| dim as usize).collect()
}

/// Runs `op`. For every pair of [`Op::in_place`], the result's bytes already hold the operand, whose own bytes are ignored.
///
/// # Errors
/// See [`Fault`].
pub(crate) fn execute(op: &Op, context: Context, inputs: &[Arg<'_>], outputs: &mut [Out<'_>]) -> Result<(), Fault> {
    if widen::applies(op, inputs, outputs) {
        return widen::execute(op, context, inputs, outputs);
    }
    match op {
        Op::Elementwise(op) => elementwise::execute(op, inputs, &mut outputs[0]),
        Op::Contraction(op) => contraction::execute(op, inputs, &mut outputs[0]),
        Op::Convolution(op) => convolution::execute(op, inputs, &mut outputs[0]),
        Op::Pooling(op) => pooling::execute(op, inputs, &mut outputs[0]),
        Op::BatchNorm(op) => batch_norm::execute(op, inputs, outputs),
        Op::Reduction(op) => reduction::execute(op, inputs, outputs),
        Op::Normalization(op) => normalization::execute(op, inputs, outputs),
        Op::Attention(op) => attention::execute(op, inputs, outputs),
        Op::Indexing(op) => indexing::execute(op, inputs, &mut outputs[0]),
        Op::Movement(op) => movement::execute(op, inputs, outputs),
        Op::Creation(op) => creation::execute(op, &mut outputs[0]),
        Op::Random(op) => random::execute(op, context, inputs, &mut outputs[0]),
        Op::Loss(op) => loss::execute(op, inputs, outputs),
        Op::Optimizer(op) => optimizer::execute(op, inputs, outputs),
        Op::Opaque(Opaque::Opaque { name, types: _ }) => Err(Fault::Opaque(name.clone())),
    }
}

/// Whether the operator computes in the element type, so that half floats are widened around it.
fn computes(op: &Op) -> bool {
    match op {
        Op::Elementwise(Elementwise::Cast { to: _ } | Elementwise::Select) => false,
        Op::Optimizer(Optimizer::Accumulate) | Op::Elementwise(_) | Op::Contraction(_) | Op::Reduction(_) => true,
        Op::Normalization(_) | Op::Attention(_) | Op::Random(_) | Op::Loss(_) | Op::Optimizer(_) => true,
        Op::Convolution(_) | Op::Pooling(_) | Op::BatchNorm(_) => true,
        Op::Indexing(op) => indexing::adds(op),
        Op::Movement(_) | Op::Creation(_) | Op::Opaque(_) => false,
    }
}

/// Runs the body with `T` as the float type, or reports that the operator has no kernel for it.
macro_rules! with_float {
    ($op:expr, $dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            trainc_ir::DType::F32 => {
                type $t = f32;
                $body
            }
            trainc_ir::DType::F64 => {
                type $t = f64;
                $body
            }
            dtype @ (trainc_ir::DType::Bool
            | trainc_ir::DType::U8
            | trainc_ir::DType::I8
            | trainc_ir::DType::I32
            | trainc_ir::DType::I64
            | trainc_ir::DType::F16
            | trainc_ir::DType::BF16) => return Err(super::Fault::Type { op: $op.spelling(), dtype }),
        }
    };
}
use with_float;

/// Runs the body with `T` as the numeric type (bools as bytes), half floats excepted.
macro_rules! with_number {
    ($op:expr, $dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            trainc_ir::DType::F32 => {
                type $t = f32;
                $body
            }
            trainc_ir::DType::F64 => {
                type $t = f64;
                $body
            }
            trainc_ir::DType::Bool | trainc_ir::DType::U8 => {
                type $t = u8;
                $body
            }
            trainc_ir::DType::I8 => {
                type $t = i8;
                $body
            }
            trainc_ir::DType::I32 => {
                type $t = i32;
                $body
            }
            trainc_ir::DType::I64 => {
                type $t = i64;
                $body
            }
            dtype @ (trainc_ir::DType::F16 | trainc_ir::DType::BF16) => {
                return Err(super::Fault::Type { op: $op.spelling(), dtype });
            }
        }
    };
}
use with_number;

/// Runs the body with `T` as an unsigned type of the element's size.
macro_rules! with_size {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype.bytes() {
            1 => {
                type $t = u8;
                $body
            }
            2 => {
                type $t = u16;
                $body
            }
            4 => {
                type $t = u32;
                $body
            }
            _ => {
                type $t = u64;
                $body
            }
        }
    };
}
use with_size;

/// Runs the body with `T` as the element type itself (bools as bytes).
macro_rules! with_element {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            trainc_ir::DType::F16 => {
                type $t = half::f16;
                $body
            }
            trainc_ir::DType::BF16 => {
                type $t = half::bf16;
                $body
            }
            trainc_ir::DType::F32 => {
                type $t = f32;
                $body
            }
            trainc_ir::DType::F64 => {
                type $t = f64;
                $body
            }
            trainc_ir::DType::Bool | trainc_ir::DType::U8 => {
                type $t = u8;
                $body
            }
            trainc_ir::DType::I8 => {
                type $t = i8;
                $body
            }
            trainc_ir::DType::I32 => {
                type $t = i32;
                $body
            }
            trainc_ir::DType::I64 => {
                type $t = i64;
                $body
            }
        }
    };
}
use with_element;

/// An index operand as 64-bit integers.
fn indices<'a>(arg: &Arg<'a>) -> std::borrow::Cow<'a, [i64]> {
    if arg.ty.dtype == DType::I64 {
        return std::borrow::Cow::Borrowed(arg.get());
    }
    let mut wide = vec![0; arg.ty.elements() as usize];
    with_element!(arg.ty.dtype, T => super::kernels::cast::cast::<T, i64>(arg.get(), &mut wide));
    std::borrow::Cow::Owned(wide)
}
