//! Elementwise operators.

use super::{Arg, Fault, Out, with_element, with_float, with_number, with_size};
use crate::host::kernels::unary::{map, map2};
use crate::host::kernels::{Float, binary, cast, unary, unary_grad};
use trainc_ir::DType;
use trainc_ir::op::{Elementwise, GeluForm};

/// Runs an elementwise operator.
pub(super) fn execute(op: &Elementwise, inputs: &[Arg<'_>], out: &mut Out<'_>) -> Result<(), Fault> {
    use Elementwise as E;
    match op {
        E::Neg | E::Abs | E::Sign => sign(op, &inputs[0], out),
        E::Exp | E::Log | E::Sqrt | E::Rsqrt | E::Reciprocal | E::Sin | E::Cos | E::Tanh | E::Sigmoid => {
            with_float!(op, out.ty.dtype, T => function::<T>(op, inputs[0].get(), out.get()));
            Ok(())
        }
        E::Erf | E::Relu | E::Gelu { form: _ } | E::Silu | E::Softplus | E::Floor | E::Ceil | E::Round => {
            with_float!(op, out.ty.dtype, T => function::<T>(op, inputs[0].get(), out.get()));
            Ok(())
        }
        E::Not => {
            map(inputs[0].get::<u8>(), out.get(), |x| u8::from(x == 0));
            Ok(())
        }
        E::IsNan => {
            with_float!(op, inputs[0].ty.dtype, T => map(inputs[0].get::<T>(), out.get(), |x| u8::from(x.is_nan())));
            Ok(())
        }
        E::TanhGrad | E::SigmoidGrad | E::ReluGrad | E::GeluGrad { form: _ } | E::SiluGrad => {
            let [x, dy] = [inputs[0], inputs[1]];
            with_float!(op, out.ty.dtype, T => gradient::<T>(op, x.get(), dy.get(), out.get()));
            Ok(())
        }
        E::Add | E::Sub | E::Mul | E::Div | E::Pow | E::Max | E::Min | E::Mod => arithmetic(op, inputs, out),
        E::And | E::Or | E::Xor => {
            let f: fn(u8, u8) -> u8 = match op {
                E::And => |a, b| u8::from(a != 0 && b != 0),
                E::Or => |a, b| u8::from(a != 0 || b != 0),
                _ => |a, b| u8::from((a != 0) != (b != 0)),
            };
            zip::<u8, u8>(inputs, out, f);
            Ok(())
        }
        E::Eq | E::Ne | E::Lt | E::Le | E::Gt | E::Ge => {
            with_number!(op, inputs[0].ty.dtype, T => compare::<T>(op, inputs, out));
            Ok(())
        }
        E::Select => {
            let [condition, a, b] = [inputs[0], inputs[1], inputs[2]];
            let shape = out.shape();
            with_size!(out.ty.dtype, T => binary::select::<T>(
                (condition.get(), &condition.shape()),
                (a.get(), &a.shape()),
                (b.get(), &b.shape()),
                out.get(),
                &shape,
            ));
            Ok(())
        }
        E::Cast { to } => {
            let x = inputs[0];
            if *to == DType::Bool {
                with_element!(x.ty.dtype, A => cast::to_bool::<A>(x.get(), out.get()));
            } else {
                with_element!(x.ty.dtype, A => with_element!(*to, B => cast::cast::<A, B>(x.get(), out.get())));
            }
            Ok(())
        }
    }
}

/// Runs `f` over two operands, broadcast.
fn zip<A: super::Plain, O: super::Plain>(inputs: &[Arg<'_>], out: &mut Out<'_>, f: impl Fn(A, A) -> O + Sync) {
    let shape = out.shape();
    let [a, b] = [inputs[0], inputs[1]];
    binary::zip((a.get(), &a.shape()), (b.get(), &b.shape()), out.get(), &shape, f);
}

fn sign(op: &Elementwise, x: &Arg<'_>, out: &mut Out<'_>) -> Result<(), Fault> {
    use Elementwise as E;
    macro_rules! integer {
        ($t:ty) => {
            match op {
                E::Neg => map(x.get(), out.get(), <$t>::wrapping_neg),
                E::Abs => map(x.get(), out.get(), <$t>::wrapping_abs),
                _ => map(x.get(), out.get(), <$t>::signum),
            }
        };
    }
    match out.ty.dtype {
        DType::I8 => integer!(i8),
        DType::I32 => integer!(i32),
        DType::I64 => integer!(i64),
        DType::Bool | DType::U8 => match op {
            E::Neg => map(x.get(), out.get(), u8::wrapping_neg),
            E::Abs => map(x.get(), out.get(), |x: u8| x),
            _ => map(x.get(), out.get(), |x: u8| x.min(1)),
        },
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => {
            with_float!(op, out.ty.dtype, T => match op {
                E::Neg => map(x.get(), out.get(), |x: T| -x),
                E::Abs => map(x.get(), out.get(), |x: T| Float::abs(x)),
                _ => map(x.get(), out.get(), unary::sign::<T>),
            });
        }
    }
    Ok(())
}

fn function<T: Float>(op: &Elementwise, x: &[T], out: &mut [T]) {
    use Elementwise as E;
    match op {
        E::Exp => map(x, out, T::exp),
        E::Log => map(x, out, T::log),
        E::Sqrt => map(x, out, T::sqrt),
        E::Rsqrt => map(x, out, unary::rsqrt),
        E::Reciprocal => map(x, out, |x| T::ONE / x),
        E::Sin => map(x, out, T::sin),
        E::Cos => map(x, out, T::cos),
        E::Tanh => map(x, out, T::tanh),
        E::Sigmoid => map(x, out, unary::sigmoid),
        E::Erf => map(x, out, T::erf),
        E::Relu => map(x, out, unary::relu),
        E::Gelu { form: GeluForm::Erf } => map(x, out, unary::gelu_erf),
        E::Gelu { form: GeluForm::Tanh } => map(x, out, unary::gelu_tanh),
        E::Gelu { form: GeluForm::Quick } => map(x, out, unary::gelu_quick),
        E::Silu => map(x, out, unary::silu),
        E::Softplus => map(x, out, unary::softplus),
        E::Floor => map(x, out, T::floor),
        E::Ceil => map(x, out, T::ceil),
        E::Round => map(x, out, T::round),
        E::Neg | E::Abs | E::Sign | E::Not | E::IsNan | E::Cast { to: _ } | E::Select => not_here(op),
        E::TanhGrad | E::SigmoidGrad | E::ReluGrad | E::GeluGrad { form: _ } | E::SiluGrad => not_here(op),
        E::Add | E::Sub | E::Mul | E::Div | E::Pow | E::Max | E::Min | E::Mod => not_here(op),
        E::And | E::Or | E::Xor | E::Eq | E::Ne | E::Lt | E::Le | E::Gt | E::Ge => not_here(op),
    }
}

fn gradient<T: Float>(op: &Elementwise, x: &[T], dy: &[T], out: &mut [T]) {
    use Elementwise as E;
    match op {
        E::TanhGrad => map2(x, dy, out, unary_grad::tanh_from_output),
        E::SigmoidGrad => map2(x, dy, out, unary_grad::sigmoid_from_output),
        E::ReluGrad => map2(x, dy, out, unary_grad::relu),
        E::GeluGrad { form: GeluForm::Erf } => map2(x, dy, out, unary_grad::gelu_erf),
        E::GeluGrad { form: GeluForm::Tanh } => map2(x, dy, out, unary_grad::gelu_tanh),
        E::GeluGrad { form: GeluForm::Quick } => map2(x, dy, out, unary_grad::gelu_quick),
        E::SiluGrad => map2(x, dy, out, unary_grad::silu),
        E::Neg | E::Abs | E::Sign | E::Exp | E::Log | E::Sqrt | E::Rsqrt | E::Reciprocal => not_here(op),
        E::Sin | E::Cos | E::Tanh | E::Sigmoid | E::Erf | E::Relu | E::Gelu { form: _ } | E::Silu => not_here(op),
        E::Softplus | E::Floor | E::Ceil | E::Round | E::Not | E::IsNan | E::Cast { to: _ } => not_here(op),
        E::Add | E::Sub | E::Mul | E::Div | E::Pow | E::Max | E::Min | E::Mod | E::Select => not_here(op),
        E::And | E::Or | E::Xor | E::Eq | E::Ne | E::Lt | E::Le | E::Gt | E::Ge => not_here(op),
    }
}

/// The dispatch in [`execute`] sends every operator to the function that knows it.
fn not_here(op: &Elementwise) -> ! {
    unreachable!("`{}` has a function of its own", op.spelling())
}

fn arithmetic(op: &Elementwise, inputs: &[Arg<'_>], out: &mut Out<'_>) -> Result<(), Fault> {
    use Elementwise as E;
    macro_rules! integer {
        ($t:ty) => {
            match op {
                E::Add => zip(inputs, out, <$t>::wrapping_add),
                E::Sub => zip(inputs, out, <$t>::wrapping_sub),
                E::Mul => zip(inputs, out, <$t>::wrapping_mul),
                E::Div => zip(inputs, out, |a: $t, b: $t| a.checked_div(b).unwrap_or(0)),
                E::Pow => zip(inputs, out, |a: $t, b: $t| a.wrapping_pow(u32::try_from(b).unwrap_or(0))),
                E::Max => zip(inputs, out, <$t>::max),
                E::Min => zip(inputs, out, <$t>::min),
                _ => zip(inputs, out, |a: $t, b: $t| {
                    let r = a.checked_rem(b).unwrap_or(0);
                    #[allow(unused_comparisons, reason = "the macro serves unsigned types too")]
                    if r != 0 && (r < 0) != (b < 0) { r.wrapping_add(b) } else { r }
                }),
            }
        };
    }
    match out.ty.dtype {
        DType::Bool | DType::U8 => integer!(u8),
        DType::I8 => integer!(i8),
        DType::I32 => integer!(i32),
        DType::I64 => integer!(i64),
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => {
            with_float!(op, out.ty.dtype, T => match op {
                E::Add => zip(inputs, out, |a: T, b| a + b),
                E::Sub => zip(inputs, out, |a: T, b| a - b),
                E::Mul => zip(inputs, out, |a: T, b| a * b),
                E::Div => zip(inputs, out, |a: T, b| a / b),
                E::Pow => zip(inputs, out, binary::pow::<T>),
                E::Max => zip(inputs, out, <T as Float>::maximum),
                E::Min => zip(inputs, out, <T as Float>::minimum),
                _ => zip(inputs, out, binary::floor_mod::<T>),
            });
        }
    }
    Ok(())
}

fn compare<T: super::Plain + PartialOrd>(op: &Elementwise, inputs: &[Arg<'_>], out: &mut Out<'_>) {
    use Elementwise as E;
    match op {
        E::Eq => zip(inputs, out, |a: T, b| u8::from(a == b)),
        E::Ne => zip(inputs, out, |a: T, b| u8::from(a != b)),
        E::Lt => zip(inputs, out, |a: T, b| u8::from(a < b)),
        E::Le => zip(inputs, out, |a: T, b| u8::from(a <= b)),
        E::Gt => zip(inputs, out, |a: T, b| u8::from(a > b)),
        _ => zip(inputs, out, |a: T, b| u8::from(a >= b)),
    }
}
