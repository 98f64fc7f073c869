//! Operators worked out at compile time on [`Const`](super::constant::Const) values.
//!
//! Every function gives `None` where the result would be too large, or where its bits would depend on the machine's
//! mathematical library (exponentials, sines): such operators stay in the graph.

mod elementwise;
mod movement;
mod reduction;

pub(super) use elementwise::elementwise;
pub(super) use movement::{broadcast_to, concat, gather, gather_nd, reshape, slice, transpose};
pub(super) use reduction::{cumsum, reduce};
