//! Gradient rule of dropout: the same mask on the gradient.

use super::backward::{Backward, Gradients, Site};
use trainc_ir::op::Random;

pub(super) fn gradient(op: &Random, at: &Site, b: &mut Backward) -> Gradients {
    let g = at.grad()?;
    match *op {
        Random::Dropout { p, site } => at.each(b, |b, _| Ok(Some(b.node(Random::DropoutGrad { p, site }, &[g])))),
        Random::DropoutGrad { p: _, site: _ } => Err(super::SECOND.to_owned()),
    }
}
