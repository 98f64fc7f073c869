//! Elementwise operators on known values, rounded as the element type rounds.

use crate::onnx::constant::{Const, Data, MAX_ELEMENTS, broadcast, positions, round, wrap};
use trainc_ir::op::Elementwise as E;
use trainc_ir::{DType, Op, Type};

/// The operator on known operands.
pub(in crate::onnx) fn elementwise(op: &E, inputs: &[&Const]) -> Result<Option<Const>, String> {
    let types: Vec<&Type> = inputs.iter().map(|input| &input.ty).collect();
    let ty = Op::from(op.clone()).infer(&types)?.remove(0);
    let cores: Vec<&[u64]> = inputs.iter().map(|input| input.core.as_slice()).collect();
    let core = broadcast(&cores)?;
    if core.iter().product::<u64>() > MAX_ELEMENTS {
        return Ok(None);
    }
    let walk = |input: &Const| positions(&core, &input.strides()).collect::<Vec<usize>>();
    let data = match inputs {
        [x] => unary(op, ty.dtype, x),
        [a, b] => binary(op, ty.dtype, (a, &walk(a)), (b, &walk(b))),
        [condition, a, b] if *op == E::Select => {
            let chosen = walk(condition).into_iter().zip(walk(a).into_iter().zip(walk(b)));
            let condition = &condition.data;
            Some(match (&a.data, &b.data) {
                (Data::Int(a), Data::Int(b)) => {
                    Data::Int(chosen.map(|(c, (i, j))| if condition.int(c) != 0 { a[i] } else { b[j] }).collect())
                }
                (Data::Float(a), Data::Float(b)) => {
                    Data::Float(chosen.map(|(c, (i, j))| if condition.int(c) != 0 { a[i] } else { b[j] }).collect())
                }
                (Data::Int(_), Data::Float(_)) | (Data::Float(_), Data::Int(_)) => return Ok(None),
            })
        }
        _ => None,
    };
    Ok(data.map(|data| Const::new(ty, core, data)))
}

fn unary(op: &E, dtype: DType, x: &Const) -> Option<Data> {
    if let E::Cast { to } = op {
        return Some(cast(*to, &x.data));
    }
    match &x.data {
        Data::Int(values) => {
            let of = |f: fn(i64) -> i64| Some(Data::Int(values.iter().map(|&v| wrap(dtype, f(v))).collect()));
            match op {
                E::Neg => of(i64::wrapping_neg),
                E::Abs => of(i64::wrapping_abs),
                E::Sign => of(i64::signum),
                E::Not => of(|v| i64::from(v == 0)),
                _ => None,
            }
        }
        Data::Float(values) => {
            let of = |f: fn(f64) -> f64| Some(Data::Float(values.iter().map(|&v| round(dtype, f(v))).collect()));
            match op {
                E::Neg => of(|v| -v),
                E::Abs => of(f64::abs),
                E::Sign => of(|v| {
                    if v > 0.0 {
                        1.0
                    } else if v < 0.0 {
                        -1.0
                    } else {
                        v
                    }
                }),
                E::Sqrt => of(f64::sqrt),
                E::Reciprocal => of(|v| 1.0 / v),
                E::Floor => of(f64::floor),
                E::Ceil => of(f64::ceil),
                E::Round => of(f64::round_ties_even),
                E::Relu => of(|v| if v > 0.0 || v.is_nan() { v } else { 0.0 }),
                E::IsNan => Some(Data::Int(values.iter().map(|v| i64::from(v.is_nan())).collect())),
                _ => None,
            }
        }
    }
}

fn cast(to: DType, data: &Data) -> Data {
    match (data, to.is_float()) {
        (Data::Int(values), false) => Data::Int(values.iter().map(|&v| wrap(to, v)).collect()),
        (Data::Int(values), true) if to == DType::F32 => {
            Data::Float(values.iter().map(|&v| f64::from(v as f32)).collect())
        }
        (Data::Int(values), true) => Data::Float(values.iter().map(|&v| round(to, v as f64)).collect()),
        (Data::Float(values), true) => Data::Float(values.iter().map(|&v| round(to, v)).collect()),
        (Data::Float(values), false) if to == DType::Bool => {
            Data::Int(values.iter().map(|&v| i64::from(v != 0.0)).collect())
        }
        (Data::Float(values), false) => Data::Int(values.iter().map(|&v| wrap(to, v as i64)).collect()),
    }
}

type Walked<'a> = (&'a Const, &'a [usize]);

fn binary(op: &E, dtype: DType, a: Walked<'_>, b: Walked<'_>) -> Option<Data> {
    let pairs = a.1.iter().zip(b.1);
    match (&a.0.data, &b.0.data) {
        (Data::Int(x), Data::Int(y)) => {
            let f = integer(op)?;
            pairs.map(|(&i, &j)| f(x[i], y[j]).map(|v| wrap(dtype, v))).collect::<Option<_>>().map(Data::Int)
        }
        (Data::Float(x), Data::Float(y)) => {
            if let Some(f) = comparison(op) {
                return Some(Data::Int(pairs.map(|(&i, &j)| i64::from(f(x[i], y[j]))).collect()));
            }
            let f = float(op)?;
            pairs.map(|(&i, &j)| f(x[i], y[j]).map(|v| round(dtype, v))).collect::<Option<_>>().map(Data::Float)
        }
        (Data::Int(_), Data::Float(_)) | (Data::Float(_), Data::Int(_)) => None,
    }
}

fn integer(op: &E) -> Option<fn(i64, i64) -> Option<i64>> {
    Some(match op {
        E::Add => |a, b| Some(a.wrapping_add(b)),
        E::Sub => |a, b| Some(a.wrapping_sub(b)),
        E::Mul => |a, b| Some(a.wrapping_mul(b)),
        E::Div => |a, b| if b == 0 { None } else { Some(a.wrapping_div(b)) },
        E::Mod => |a, b| if b == 0 { None } else { Some((a.wrapping_rem(b) + b).wrapping_rem(b)) },
        E::Pow => |a, b| u32::try_from(b).ok().map(|b| a.wrapping_pow(b)),
        E::Max => |a, b| Some(a.max(b)),
        E::Min => |a, b| Some(a.min(b)),
        E::And => |a, b| Some(a & b),
        E::Or => |a, b| Some(a | b),
        E::Xor => |a, b| Some(a ^ b),
        E::Eq => |a, b| Some(i64::from(a == b)),
        E::Ne => |a, b| Some(i64::from(a != b)),
        E::Lt => |a, b| Some(i64::from(a < b)),
        E::Le => |a, b| Some(i64::from(a <= b)),
        E::Gt => |a, b| Some(i64::from(a > b)),
        E::Ge => |a, b| Some(i64::from(a >= b)),
        _ => return None,
    })
}

fn comparison(op: &E) -> Option<fn(f64, f64) -> bool> {
    Some(match op {
        E::Eq => |a, b| a == b,
        E::Ne => |a, b| a != b,
        E::Lt => |a, b| a < b,
        E::Le => |a, b| a <= b,
        E::Gt => |a, b| a > b,
        E::Ge => |a, b| a >= b,
        _ => return None,
    })
}

/// Operators whose result is the exact one rounded once; rounding to a narrower type afterwards does no harm.
fn float(op: &E) -> Option<fn(f64, f64) -> Option<f64>> {
    Some(match op {
        E::Add => |a, b| Some(a + b),
        E::Sub => |a, b| Some(a - b),
        E::Mul => |a, b| Some(a * b),
        E::Div => |a, b| Some(a / b),
        E::Max => |a, b| if a.is_nan() || b.is_nan() { Some(f64::NAN) } else { Some(a.max(b)) },
        E::Min => |a, b| if a.is_nan() || b.is_nan() { Some(f64::NAN) } else { Some(a.min(b)) },
        E::Pow => |a, b| match b {
            0.5 => Some(a.sqrt()),
            1.0 => Some(a),
            2.0 => Some(a * a),
            -1.0 => Some(1.0 / a),
            _ => None,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ints(values: &[i64]) -> Const {
        Const::vector(values.to_vec())
    }

    fn on(op: &E, inputs: &[&Const]) -> Const {
        elementwise(op, inputs).unwrap().unwrap()
    }

    /// Truths by hand from the ONNX operator descriptions.
    #[test]
    fn integers_follow_onnx() {
        assert_eq!(on(&E::Div, &[&ints(&[-7, 7]), &ints(&[2, -2])]).ints(), [-3, -3]);
        assert_eq!(on(&E::Mod, &[&ints(&[-7, 7]), &ints(&[3, -3])]).ints(), [2, -2]);
        assert!(elementwise(&E::Div, &[&ints(&[1]), &ints(&[0])]).unwrap().is_none());
        let wide = Const::scalar_int(DType::I64, 300);
        assert_eq!(on(&E::Cast { to: DType::U8 }, &[&wide]).ints(), [44]);
    }

    #[test]
    fn floats_round_to_their_type() {
        let third = on(&E::Div, &[&Const::scalar_float(DType::F32, 1.0), &Const::scalar_float(DType::F32, 3.0)]);
        assert_eq!(third.uniform_f64(), Some(f64::from(1.0f32 / 3.0f32)));
        assert!(elementwise(&E::Exp, &[&third]).unwrap().is_none());
        assert_eq!(on(&E::Cast { to: DType::I64 }, &[&Const::scalar_float(DType::F32, -1.7)]).ints(), [-1]);
    }

    #[test]
    fn a_causal_mask_is_worked_out_once_for_all_samples() {
        let row = Const::new(Type::new(DType::I64, [1, 3]), vec![1, 3], Data::Int(vec![0, 1, 2]));
        let column = Const::new(Type::new(DType::I64, [8, 3, 1]), vec![1, 3, 1], Data::Int(vec![0, 1, 2]));
        let mask = on(&E::Le, &[&row, &column]);
        assert_eq!(mask.ty, Type::new(DType::Bool, [8, 3, 3]));
        assert_eq!(mask.core, [1, 3, 3]);
        assert_eq!(mask.data, Data::Int(vec![1, 0, 0, 1, 1, 0, 1, 1, 1]));
    }
}
