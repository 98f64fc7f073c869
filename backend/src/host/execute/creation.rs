//! Constants.

use super::{Fault, Out};
use trainc_ir::op::{Creation, LiteralData};

/// Writes a constant.
pub(super) fn execute(op: &Creation, out: &mut Out<'_>) -> Result<(), Fault> {
    let Creation::Constant { value } = op;
    match &value.data {
        LiteralData::Dense(bytes) => out.bytes.copy_from_slice(bytes),
        LiteralData::Splat(element) => {
            out.bytes.chunks_exact_mut(element.len()).for_each(|e| e.copy_from_slice(element));
        }
    }
    Ok(())
}
