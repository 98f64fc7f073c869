//! The intermediate representations of trainc.

pub mod id;
mod diag;
mod ty;

pub use diag::{Diagnostic, Diagnostics, Label, Place, Severity};
pub use ty::{DType, Shape, Type};
