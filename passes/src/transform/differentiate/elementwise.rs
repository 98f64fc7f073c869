//! Gradient rules of elementwise operators.
//!
//! Where a function has a kink the rules agree with PyTorch: `relu` and `abs` have slope 0 at 0; where the operands of
//! `max` and `min` are equal, each gets half of the gradient; `pow` has slope 0 where the exponent is 0.

use super::backward::{Backward, Blocked, Gradients, Site};
use trainc_ir::op::{Creation, Elementwise};
use trainc_ir::{Op, ValueId};

pub(super) fn gradient(op: &Elementwise, at: &Site, b: &mut Backward) -> Gradients {
    let g = at.grad()?;
    at.each(b, |b, operand| local(op, at, operand, g, b))
}

/// The gradient of one operand in the shape of the result.
fn local(
    op: &Elementwise,
    at: &Site,
    operand: usize,
    g: ValueId,
    b: &mut Backward,
) -> Result<Option<ValueId>, Blocked> {
    use Elementwise as E;
    let (x, y) = (at.node.inputs[0], at.node.outputs[0]);
    let gradient = match op {
        E::Neg => b.neg(g),
        E::Abs => {
            let sign = b.node(E::Sign, &[x]);
            b.mul(g, sign)
        }
        E::Exp => b.mul(g, y),
        E::Log => b.div(g, x),
        E::Sqrt => {
            let half = b.scale(g, 0.5);
            b.div(half, y)
        }
        E::Rsqrt => {
            let square = b.mul(y, y);
            let cube = b.mul(square, y);
            let half = b.scale(g, -0.5);
            b.mul(half, cube)
        }
        E::Reciprocal => {
            let square = b.mul(y, y);
            let minus = b.neg(g);
            b.mul(minus, square)
        }
        E::Sin => {
            let cos = b.node(E::Cos, &[x]);
            b.mul(g, cos)
        }
        E::Cos => {
            let sin = b.node(E::Sin, &[x]);
            let minus = b.neg(g);
            b.mul(minus, sin)
        }
        E::Erf => {
            let square = b.mul(x, x);
            let minus = b.neg(square);
            let exp = b.node(E::Exp, &[minus]);
            let scaled = b.scale(exp, std::f64::consts::FRAC_2_SQRT_PI);
            b.mul(g, scaled)
        }
        E::Softplus => {
            let sigmoid = b.node(E::Sigmoid, &[x]);
            b.mul(g, sigmoid)
        }
        E::Tanh => b.node(E::TanhGrad, &[y, g]),
        E::Sigmoid => b.node(E::SigmoidGrad, &[y, g]),
        E::Relu => b.node(E::ReluGrad, &[x, g]),
        E::Gelu { form } => b.node(E::GeluGrad { form: *form }, &[x, g]),
        E::Silu => b.node(E::SiluGrad, &[x, g]),
        E::Add => g,
        E::Sub if operand == 0 => g,
        E::Sub => b.neg(g),
        E::Mul => b.mul(g, at.node.inputs[1 - operand]),
        E::Div if operand == 0 => b.div(g, at.node.inputs[1]),
        E::Div => {
            let scaled = b.mul(g, y);
            let quotient = b.div(scaled, at.node.inputs[1]);
            b.neg(quotient)
        }
        E::Pow if operand == 0 => pow_base(at, g, b),
        E::Pow => pow_exponent(at, g, b),
        E::Max | E::Min => {
            let (this, other) = (at.node.inputs[operand], at.node.inputs[1 - operand]);
            let zero = b.scalar(g, 0.0);
            let wins = if matches!(op, E::Max) { E::Gt } else { E::Lt };
            let wins = b.node(wins, &[this, other]);
            let alone = b.select(wins, g, zero);
            let ties = b.node(E::Eq, &[this, other]);
            let half = b.scale(g, 0.5);
            b.select(ties, half, alone)
        }
        E::Mod if operand == 0 => g,
        E::Mod => {
            let quotient = b.div(x, at.node.inputs[1]);
            let floor = b.node(E::Floor, &[quotient]);
            let scaled = b.mul(g, floor);
            b.neg(scaled)
        }
        E::Select => {
            let zero = b.scalar(g, 0.0);
            match operand {
                1 => b.select(x, g, zero),
                _ => b.select(x, zero, g),
            }
        }
        E::Cast { to: _ } => b.cast(g, b.ty(x).dtype),
        E::Sign | E::Floor | E::Ceil | E::Round => return Ok(None),
        E::Not | E::IsNan | E::And | E::Or | E::Xor | E::Eq | E::Ne | E::Lt | E::Le | E::Gt | E::Ge => return Ok(None),
        E::TanhGrad | E::SigmoidGrad | E::ReluGrad | E::GeluGrad { form: _ } | E::SiluGrad => {
            return Err(super::SECOND.to_owned());
        }
    };
    Ok(Some(gradient))
}

/// The one number that all elements of a constant have.
fn uniform(value: ValueId, b: &Backward) -> Option<f64> {
    match b.graph().producer_op(value)? {
        Op::Creation(Creation::Constant { value }) => value.uniform_f64(),
        Op::Elementwise(_) | Op::Contraction(_) | Op::Reduction(_) | Op::Normalization(_) | Op::Attention(_) => None,
        Op::Convolution(_) | Op::Pooling(_) | Op::BatchNorm(_) => None,
        Op::Indexing(_) | Op::Movement(_) | Op::Random(_) | Op::Loss(_) | Op::Optimizer(_) | Op::Opaque(_) => None,
    }
}

fn pow_base(at: &Site, g: ValueId, b: &mut Backward) -> ValueId {
    let (x, exponent) = (at.node.inputs[0], at.node.inputs[1]);
    match uniform(exponent, b) {
        Some(2.0) => {
            let scaled = b.scale(g, 2.0);
            b.mul(scaled, x)
        }
        Some(3.0) => {
            let square = b.mul(x, x);
            let scaled = b.scale(g, 3.0);
            b.mul(scaled, square)
        }
        uniform => {
            let one = b.scalar(exponent, 1.0);
            let lower = b.node(Elementwise::Sub, &[exponent, one]);
            let power = b.node(Elementwise::Pow, &[x, lower]);
            let slope = b.mul(exponent, power);
            let gradient = b.mul(g, slope);
            if uniform.is_some_and(|e| e != 0.0) {
                return gradient;
            }
            let zero = b.scalar(g, 0.0);
            let constant = b.node(Elementwise::Eq, &[exponent, zero]);
            b.select(constant, zero, gradient)
        }
    }
}

fn pow_exponent(at: &Site, g: ValueId, b: &mut Backward) -> ValueId {
    let (x, exponent, y) = (at.node.inputs[0], at.node.inputs[1], at.node.outputs[0]);
    let zero = b.scalar(g, 0.0);
    let log = b.node(Elementwise::Log, &[x]);
    let slope = b.mul(y, log);
    let gradient = b.mul(g, slope);
    let at_zero = b.node(Elementwise::Eq, &[x, zero]);
    let flat = b.node(Elementwise::Ge, &[exponent, zero]);
    let flat = b.node(Elementwise::And, &[at_zero, flat]);
    b.select(flat, zero, gradient)
}
