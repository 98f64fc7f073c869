//! The host device: every operation of the IR on CPU memory, with results that do not depend on the number of threads.

mod bytes;
mod execute;
mod interpret;
mod kernels;
mod tensor;

pub use execute::{Context, Fault};
pub use interpret::{InterpretError, interpret};
pub use tensor::Tensor;

pub(crate) use bytes::Storage;
pub(crate) use execute::{Arg, Out, execute};
pub(crate) use kernels::random::{Site, normal};
