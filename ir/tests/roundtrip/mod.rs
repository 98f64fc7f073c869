//! What the round trip tests share.

pub(crate) mod generate;
