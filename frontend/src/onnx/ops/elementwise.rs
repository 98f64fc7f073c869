//! Elementwise operators: arithmetic, comparison, logic, activations, casts.

use super::Rule;
use crate::onnx::call::{Call, Fail, Operand, Results};
use crate::onnx::code;
use crate::onnx::constant::Const;
use crate::onnx::emit::number_of;
use crate::onnx::lower::Lower;
use trainc_ir::DType;
use trainc_ir::op::{Elementwise as E, GeluForm};

pub(super) fn rule(op: &str) -> Option<Rule> {
    macro_rules! direct {
        ($($op:ident)|*) => { |lower, call| fixed(lower, call, $(E::$op)|*) };
    }
    Some(match op {
        "Neg" => direct!(Neg),
        "Abs" => direct!(Abs),
        "Sign" => direct!(Sign),
        "Exp" => direct!(Exp),
        "Log" => direct!(Log),
        "Sqrt" => direct!(Sqrt),
        "Reciprocal" => direct!(Reciprocal),
        "Sin" => direct!(Sin),
        "Cos" => direct!(Cos),
        "Tanh" => direct!(Tanh),
        "Sigmoid" => direct!(Sigmoid),
        "Erf" => direct!(Erf),
        "Relu" => direct!(Relu),
        "Softplus" => direct!(Softplus),
        "Floor" => direct!(Floor),
        "Ceil" => direct!(Ceil),
        "Round" => direct!(Round),
        "Not" => direct!(Not),
        "IsNaN" => direct!(IsNan),
        "Add" => direct!(Add),
        "Sub" => direct!(Sub),
        "Mul" => direct!(Mul),
        "Div" => direct!(Div),
        "And" => direct!(And),
        "Or" => direct!(Or),
        "Xor" => direct!(Xor),
        "Equal" => direct!(Eq),
        "Less" => direct!(Lt),
        "LessOrEqual" => direct!(Le),
        "Greater" => direct!(Gt),
        "GreaterOrEqual" => direct!(Ge),
        "Where" => direct!(Select),
        "Gelu" => gelu,
        "Pow" => pow,
        "Mod" => modulo,
        "Max" => |lower, call| variadic(lower, call, &E::Max),
        "Min" => |lower, call| variadic(lower, call, &E::Min),
        "Sum" => |lower, call| variadic(lower, call, &E::Add),
        "Mean" => mean,
        "Clip" => clip,
        "Cast" => cast,
        "CastLike" => cast_like,
        "IsInf" => is_inf,
        "LeakyRelu" => leaky_relu,
        "PRelu" => prelu,
        "Elu" => elu,
        "Selu" => selu,
        "Celu" => celu,
        "HardSigmoid" => hard_sigmoid,
        "HardSwish" => hard_swish,
        "Softsign" => softsign,
        "Mish" => mish,
        "Swish" => swish,
        "ThresholdedRelu" => thresholded_relu,
        _ => return None,
    })
}

fn fixed(lower: &mut Lower<'_>, call: &Call<'_>, op: E) -> Results {
    let inputs = (0..op.arity()).map(|slot| call.input(slot)).collect::<Result<Vec<_>, _>>()?;
    Ok(vec![lower.elementwise(op, &inputs)?])
}

fn variadic(lower: &mut Lower<'_>, call: &Call<'_>, op: &E) -> Results {
    let inputs = call.all_inputs()?;
    let mut result = inputs[0].clone();
    for input in &inputs[1..] {
        result = lower.elementwise(op.clone(), &[&result, input])?;
    }
    Ok(vec![result])
}

fn mean(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let sum = variadic(lower, call, &E::Add)?.remove(0);
    Ok(vec![lower.with_number(E::Mul, &sum, 1.0 / call.inputs.len() as f64)?])
}

fn gelu(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let form = match call.string("approximate", "none")?.as_str() {
        "none" => GeluForm::Erf,
        "tanh" => GeluForm::Tanh,
        other => return Err(Fail::new(code::BAD_ATTRIBUTE, format!("its attribute `approximate` is `{other}`"))),
    };
    fixed(lower, call, E::Gelu { form })
}

/// The exponent may have another type than the base, whose type the result has.
fn pow(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let base = call.input(0)?;
    let dtype = lower.ty(base).dtype;
    let exponent = lower.cast(call.input(1)?, dtype)?;
    if exponent.known().and_then(Const::uniform_f64) == Some(0.5) && dtype.is_float() {
        let shape = lower.shape(&exponent);
        let root = lower.elementwise(E::Sqrt, &[base])?;
        let wide = crate::onnx::constant::broadcast(&[&lower.shape(&root), &shape])?;
        return Ok(vec![lower.broadcast(&root, &wide)?]);
    }
    Ok(vec![lower.elementwise(E::Pow, &[base, &exponent])?])
}

fn modulo(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let (a, b) = (call.input(0)?, call.input(1)?);
    if !call.flag("fmod", false)? {
        return Ok(vec![lower.elementwise(E::Mod, &[a, b])?]);
    }
    // The remainder with the sign of the dividend: that of the magnitudes, signed.
    let (size_a, size_b) = (lower.elementwise(E::Abs, &[a])?, lower.elementwise(E::Abs, &[b])?);
    let rest = lower.elementwise(E::Mod, &[&size_a, &size_b])?;
    let sign = lower.elementwise(E::Sign, &[a])?;
    Ok(vec![lower.elementwise(E::Mul, &[&sign, &rest])?])
}

fn clip(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let mut result = call.input(0)?.clone();
    let dtype = lower.ty(&result).dtype;
    for (slot, name, op) in [(1, "min", E::Max), (2, "max", E::Min)] {
        let bound = match call.optional(slot) {
            Some(bound) => Some(bound.clone()),
            None if call.has(name) => Some(number_of(dtype, call.float(name, 0.0)?)),
            None => None,
        };
        if let Some(bound) = bound {
            result = if dtype.is_float() && bound.known().is_some() {
                // At a bound that is a number PyTorch's gradient is 0; at one that is computed, both share it.
                let beyond = if op == E::Max { E::Le } else { E::Ge };
                let beyond = lower.elementwise(beyond, &[&result, &bound])?;
                lower.elementwise(E::Select, &[&beyond, &bound, &result])?
            } else {
                lower.elementwise(op, &[&result, &bound])?
            };
        }
    }
    Ok(vec![result])
}

fn cast(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let to = call.dtype("to")?.ok_or_else(|| Fail::new(code::BAD_ATTRIBUTE, "its attribute `to` is missing"))?;
    Ok(vec![lower.cast(call.input(0)?, to)?])
}

fn cast_like(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let to = lower.ty(call.input(1)?).dtype;
    Ok(vec![lower.cast(call.input(0)?, to)?])
}

fn is_inf(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let (positive, negative) = (call.flag("detect_positive", true)?, call.flag("detect_negative", true)?);
    let tested = if positive && negative { lower.elementwise(E::Abs, &[x])? } else { x.clone() };
    let infinity = if positive { f64::INFINITY } else { f64::NEG_INFINITY };
    if !positive && !negative {
        return Err(Fail::form("it detects neither infinity"));
    }
    Ok(vec![lower.with_number(E::Eq, &tested, infinity)?])
}

/// `x > 0 ? x : below(x)`.
fn above_zero(lower: &mut Lower<'_>, x: &Operand, below: &Operand) -> Results {
    let condition = lower.with_number(E::Gt, x, 0.0)?;
    Ok(vec![lower.elementwise(E::Select, &[&condition, x, below])?])
}

fn leaky_relu(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let below = lower.with_number(E::Mul, x, call.float("alpha", 0.01)?)?;
    above_zero(lower, x, &below)
}

fn prelu(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let below = lower.elementwise(E::Mul, &[x, call.input(1)?])?;
    above_zero(lower, x, &below)
}

/// `scale * (e^(x / width) - 1)`.
fn exponential_below(lower: &mut Lower<'_>, x: &Operand, scale: f64, width: f64) -> Result<Operand, Fail> {
    let narrowed = if width == 1.0 { x.clone() } else { lower.with_number(E::Div, x, width)? };
    let power = lower.elementwise(E::Exp, &[&narrowed])?;
    let less = lower.with_number(E::Sub, &power, 1.0)?;
    lower.with_number(E::Mul, &less, scale)
}

fn elu(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let below = exponential_below(lower, x, call.float("alpha", 1.0)?, 1.0)?;
    above_zero(lower, x, &below)
}

fn celu(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let alpha = call.float("alpha", 1.0)?;
    let below = exponential_below(lower, x, alpha, alpha)?;
    above_zero(lower, x, &below)
}

fn selu(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let below = exponential_below(lower, x, call.float("alpha", 1.673_263_2)?, 1.0)?;
    let inner = above_zero(lower, x, &below)?.remove(0);
    Ok(vec![lower.with_number(E::Mul, &inner, call.float("gamma", 1.050_701)?)?])
}

/// `max(0, min(1, alpha x + beta))`.
fn hard_gate(lower: &mut Lower<'_>, x: &Operand, alpha: f64, beta: f64) -> Result<Operand, Fail> {
    let scaled = lower.with_number(E::Mul, x, alpha)?;
    let shifted = lower.with_number(E::Add, &scaled, beta)?;
    let below_one = lower.with_number(E::Min, &shifted, 1.0)?;
    lower.with_number(E::Max, &below_one, 0.0)
}

fn hard_sigmoid(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    Ok(vec![hard_gate(lower, call.input(0)?, call.float("alpha", 0.2)?, call.float("beta", 0.5)?)?])
}

fn hard_swish(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let gate = hard_gate(lower, x, 1.0 / 6.0, 0.5)?;
    Ok(vec![lower.elementwise(E::Mul, &[x, &gate])?])
}

fn softsign(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let size = lower.elementwise(E::Abs, &[x])?;
    let more = lower.with_number(E::Add, &size, 1.0)?;
    Ok(vec![lower.elementwise(E::Div, &[x, &more])?])
}

fn mish(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let soft = lower.elementwise(E::Softplus, &[x])?;
    let gate = lower.elementwise(E::Tanh, &[&soft])?;
    Ok(vec![lower.elementwise(E::Mul, &[x, &gate])?])
}

fn swish(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let alpha = call.float("alpha", 1.0)?;
    if alpha == 1.0 {
        return Ok(vec![lower.elementwise(E::Silu, &[x])?]);
    }
    let scaled = lower.with_number(E::Mul, x, alpha)?;
    let gate = lower.elementwise(E::Sigmoid, &[&scaled])?;
    Ok(vec![lower.elementwise(E::Mul, &[x, &gate])?])
}

fn thresholded_relu(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let x = call.input(0)?;
    let condition = lower.with_number(E::Gt, x, call.float("alpha", 1.0)?)?;
    let zero = number_of(lower.ty(x).dtype, 0.0);
    Ok(vec![lower.elementwise(E::Select, &[&condition, x, &zero])?])
}

/// Whether a flag that is known at compile time is set.
pub(super) fn is_true(operand: Option<&Operand>) -> Option<bool> {
    match operand {
        None => Some(false),
        Some(operand) => operand.known().filter(|known| known.ty.dtype == DType::Bool)?.uniform_int().map(|v| v != 0),
    }
}
