//! Elementwise operators on constants. Functions whose last digit depends on the machine's libm are left to the device.

use super::tensor::{Data, Tensor, strides, walk};
use trainc_ir::op::Elementwise;
use trainc_ir::{DType, Type};

/// The result, or `None` where the operator is not evaluated or the result would have more than `limit` elements.
pub(super) fn evaluate(op: &Elementwise, inputs: &[&Tensor], ty: Type, limit: u64) -> Option<Tensor> {
    let mut stored = vec![1; ty.rank()];
    for input in inputs {
        let lead = stored.len() - input.stored.len();
        for (slot, &dim) in stored[lead..].iter_mut().zip(&input.stored) {
            *slot = dim.max(*slot);
        }
    }
    if stored.iter().product::<u64>() > limit {
        return None;
    }
    let spread: Vec<Data> =
        inputs.iter().map(|input| input.data.pick(walk(&stored, &strides(&input.stored, &stored)))).collect();
    let data = match &spread[..] {
        [x] => unary(op, x, inputs[0].ty.dtype, ty.dtype)?,
        [a, b] => binary(op, a, b, ty.dtype)?,
        [condition, a, b] => select(op, condition, a, b)?,
        _ => return None,
    };
    Tensor::new(ty, stored, data)
}

fn unary(op: &Elementwise, x: &Data, from: DType, to: DType) -> Option<Data> {
    use Elementwise as E;
    if matches!(op, E::Cast { to: _ }) {
        return Some(cast(x, from, to));
    }
    Some(match x {
        Data::Ints(x) => {
            let f: fn(i64) -> i64 = match op {
                E::Neg => i64::wrapping_neg,
                E::Abs => i64::wrapping_abs,
                E::Sign => i64::signum,
                E::Not => |v| 1 - v,
                _ => return None,
            };
            Data::ints(x.iter().map(|&v| wrap(to, f(v))).collect())
        }
        Data::Floats(x) => {
            let f: fn(f64) -> f64 = match op {
                E::Neg => |v| -v,
                E::Abs => f64::abs,
                E::Sign => |v| if v == 0.0 || v.is_nan() { v } else { v.signum() },
                E::Sqrt => f64::sqrt,
                E::Rsqrt => |v| 1.0 / v.sqrt(),
                E::Reciprocal => f64::recip,
                E::Relu => |v| if v > 0.0 || v.is_nan() { v } else { 0.0 },
                E::Floor => f64::floor,
                E::Ceil => f64::ceil,
                E::Round => f64::round_ties_even,
                E::IsNan => return Some(Data::ints(x.iter().map(|v| i64::from(v.is_nan())).collect())),
                _ => return None,
            };
            Data::floats(to, x.iter().map(|&v| f(v)))
        }
    })
}

fn cast(x: &Data, from: DType, to: DType) -> Data {
    match (x, to) {
        (Data::Ints(x), DType::Bool) => Data::ints(x.iter().map(|&v| i64::from(v != 0)).collect()),
        (Data::Floats(x), DType::Bool) => Data::ints(x.iter().map(|&v| i64::from(v != 0.0)).collect()),
        (Data::Ints(x), _) if to.is_float() => Data::floats(to, x.iter().map(|&v| v as f64)),
        (Data::Ints(x), _) => Data::ints(x.iter().map(|&v| wrap(to, v)).collect()),
        (Data::Floats(x), _) if to.is_float() && from != to => Data::floats(to, x.iter().copied()),
        (Data::Floats(_), _) if to.is_float() => x.clone(),
        (Data::Floats(x), _) => Data::ints(x.iter().map(|&v| wrap(to, v as i64)).collect()),
    }
}

/// The integer in the range of its type.
fn wrap(dtype: DType, value: i64) -> i64 {
    match dtype {
        DType::U8 => i64::from(value as u8),
        DType::I8 => i64::from(value as i8),
        DType::I32 => i64::from(value as i32),
        DType::Bool | DType::I64 | DType::F16 | DType::BF16 | DType::F32 | DType::F64 => value,
    }
}

fn binary(op: &Elementwise, a: &Data, b: &Data, to: DType) -> Option<Data> {
    match (a, b) {
        (Data::Ints(a), Data::Ints(b)) => {
            let values: Option<Vec<i64>> = a.iter().zip(b.iter()).map(|(&a, &b)| integers(op, a, b)).collect();
            Some(Data::ints(values?.into_iter().map(|v| wrap(to, v)).collect()))
        }
        (Data::Floats(a), Data::Floats(b)) => {
            let pairs = || a.iter().copied().zip(b.iter().copied());
            if to == DType::Bool {
                return pairs().map(|(a, b)| comparison(op, a, b)).collect::<Option<_>>().map(Data::ints);
            }
            let values: Option<Vec<f64>> = pairs().map(|(a, b)| floats(op, a, b)).collect();
            Some(Data::floats(to, values?))
        }
        (Data::Ints(_), Data::Floats(_)) | (Data::Floats(_), Data::Ints(_)) => None,
    }
}

fn integers(op: &Elementwise, a: i64, b: i64) -> Option<i64> {
    use Elementwise as E;
    Some(match op {
        E::Add => a.wrapping_add(b),
        E::Sub => a.wrapping_sub(b),
        E::Mul => a.wrapping_mul(b),
        E::Div => a.checked_div(b)?,
        E::Mod => {
            let r = a.checked_rem(b)?;
            if r != 0 && (r < 0) != (b < 0) { r + b } else { r }
        }
        E::Pow => a.checked_pow(u32::try_from(b).ok()?)?,
        E::Max => a.max(b),
        E::Min => a.min(b),
        E::And => a & b,
        E::Or => a | b,
        E::Xor => a ^ b,
        _ => return comparison(op, a, b),
    })
}

fn comparison<T: PartialOrd + Copy>(op: &Elementwise, a: T, b: T) -> Option<i64> {
    use Elementwise as E;
    let holds = match op {
        E::Eq => a == b,
        E::Ne => a != b,
        E::Lt => a < b,
        E::Le => a <= b,
        E::Gt => a > b,
        E::Ge => a >= b,
        _ => return None,
    };
    Some(i64::from(holds))
}

fn floats(op: &Elementwise, a: f64, b: f64) -> Option<f64> {
    use Elementwise as E;
    Some(match op {
        E::Add => a + b,
        E::Sub => a - b,
        E::Mul => a * b,
        E::Div => a / b,
        E::Max if !a.is_nan() && !b.is_nan() => a.max(b),
        E::Min if !a.is_nan() && !b.is_nan() => a.min(b),
        E::Pow if b == 2.0 => a * a,
        E::Pow if b == 1.0 => a,
        E::Pow if b == 0.5 && a >= 0.0 => a.sqrt(),
        E::Pow if b == -1.0 => 1.0 / a,
        _ => return None,
    })
}

fn select(op: &Elementwise, condition: &Data, a: &Data, b: &Data) -> Option<Data> {
    let (Elementwise::Select, Data::Ints(c)) = (op, condition) else { return None };
    Some(match (a, b) {
        (Data::Ints(a), Data::Ints(b)) => {
            Data::ints((0..c.len()).map(|i| if c[i] != 0 { a[i] } else { b[i] }).collect())
        }
        (Data::Floats(a), Data::Floats(b)) => {
            let chosen = (0..c.len()).map(|i| if c[i] != 0 { a[i] } else { b[i] });
            Data::Floats(std::rc::Rc::new(chosen.collect()))
        }
        (Data::Ints(_), Data::Floats(_)) | (Data::Floats(_), Data::Ints(_)) => return None,
    })
}
