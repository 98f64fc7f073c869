//! Identities of elementwise operators.

use super::Rewriter;
use crate::transform::view;
use trainc_ir::op::{Elementwise, Literal, Movement};
use trainc_ir::{DType, Type, ValueId};

pub(super) fn simplify(r: &mut Rewriter, op: &Elementwise, inputs: &mut [ValueId]) -> Option<ValueId> {
    use Elementwise as E;
    peel(r, op, inputs);
    shrink(r, op, inputs);
    order(r, op, inputs);
    let result = op.infer_one(r, inputs);
    let uniform = |r: &Rewriter, i: usize| view::uniform(r.graph(), inputs[i]);
    let inner = |r: &Rewriter, op: &E| view::elementwise(r.graph(), inputs[0], op).map(|operands| operands[0]);
    match op {
        E::Neg => inner(r, &E::Neg),
        E::Not => inner(r, &E::Not),
        E::Add | E::Sub if uniform(r, 1) == Some(0.0) => same_type(r, inputs[0], &result),
        E::Mul | E::Div if uniform(r, 1) == Some(1.0) => same_type(r, inputs[0], &result),
        E::Div => {
            // Only a power of two has an exact reciprocal.
            let divisor = uniform(r, 1).filter(|_| result.dtype.is_float())?;
            let exact = divisor.is_normal() && divisor.to_bits().trailing_zeros() >= 52 && (1.0 / divisor).is_normal();
            let factor = exact.then(|| scalar(r, result.dtype, 1.0 / divisor))?;
            Some(r.one(E::Mul, &[inputs[0], factor]))
        }
        E::Pow => match uniform(r, 1)? {
            1.0 => same_type(r, inputs[0], &result),
            2.0 if result == *r.ty(inputs[0]) => Some(r.one(E::Mul, &[inputs[0], inputs[0]])),
            0.5 if result == *r.ty(inputs[0]) && result.dtype.is_float() => Some(r.one(E::Sqrt, &[inputs[0]])),
            _ => None,
        },
        E::And if uniform(r, 1) == Some(1.0) => same_type(r, inputs[0], &result),
        E::Or | E::Xor if uniform(r, 1) == Some(0.0) => same_type(r, inputs[0], &result),
        E::Max | E::Min if inputs[0] == inputs[1] => Some(inputs[0]),
        E::Select => match uniform(r, 0) {
            Some(condition) => {
                let chosen = if condition != 0.0 { inputs[1] } else { inputs[2] };
                Some(spread(r, chosen, &result))
            }
            None if inputs[1] == inputs[2] => Some(spread(r, inputs[1], &result)),
            None => None,
        },
        E::Cast { to } => {
            let from = r.ty(inputs[0]).dtype;
            if from == *to {
                return Some(inputs[0]);
            }
            let (source, middle) = inner_cast(r, inputs[0])?;
            (middle == from && holds(middle, r.ty(source).dtype))
                .then(|| if r.ty(source).dtype == *to { source } else { r.one(E::Cast { to: *to }, &[source]) })
        }
        E::Abs | E::Sign | E::Exp | E::Log | E::Sqrt | E::Rsqrt | E::Reciprocal | E::Sin | E::Cos | E::Tanh => None,
        E::Sigmoid | E::Erf | E::Relu | E::Gelu { form: _ } | E::Silu | E::Softplus | E::Floor | E::Ceil => None,
        E::Round | E::IsNan | E::TanhGrad | E::SigmoidGrad | E::ReluGrad | E::GeluGrad { form: _ } => None,
        E::SiluGrad | E::Add | E::Sub | E::Mul | E::Max | E::Min | E::Mod | E::And | E::Or | E::Xor => None,
        E::Eq | E::Ne | E::Lt | E::Le | E::Gt | E::Ge => None,
    }
}

trait InferOne {
    fn infer_one(&self, r: &Rewriter, inputs: &[ValueId]) -> Type;
}

impl InferOne for Elementwise {
    fn infer_one(&self, r: &Rewriter, inputs: &[ValueId]) -> Type {
        let op = trainc_ir::Op::from(self.clone());
        op.infer(&r.graph().types(inputs)).expect("operands keep their types").swap_remove(0)
    }
}

/// The value, where nothing is broadcast.
fn same_type(r: &Rewriter, value: ValueId, ty: &Type) -> Option<ValueId> {
    (r.ty(value) == ty).then_some(value)
}

/// The value repeated to the shape of `ty`.
fn spread(r: &mut Rewriter, value: ValueId, ty: &Type) -> ValueId {
    if r.ty(value) == ty { value } else { r.one(Movement::Broadcast { shape: ty.shape.clone() }, &[value]) }
}

fn scalar(r: &mut Rewriter, dtype: DType, value: f64) -> ValueId {
    let value = Literal::splat_f64(Type::scalar(dtype), value);
    r.one(trainc_ir::op::Creation::Constant { value }, &[])
}

/// Whether operators of this kind broadcast their operands.
fn broadcasts(op: &Elementwise) -> bool {
    op.arity() > 1 && {
        use Elementwise as E;
        !matches!(op, E::TanhGrad | E::SigmoidGrad | E::ReluGrad | E::GeluGrad { form: _ } | E::SiluGrad)
    }
}

/// Reads through broadcasts, and reshapes that only add leading dimensions of 1, where the result stays the same.
fn peel(r: &mut Rewriter, op: &Elementwise, inputs: &mut [ValueId]) {
    if !broadcasts(op) {
        return;
    }
    let result = op.infer_one(r, inputs);
    for i in 0..inputs.len() {
        let source = match view::movement(r.graph(), inputs[i]) {
            Some((Movement::Broadcast { shape: _ }, source)) => source,
            Some((Movement::Reshape { shape }, source)) => {
                let inner = &r.ty(source).shape;
                let padded = shape.len() > inner.len() && shape.ends_with(inner);
                if !padded || shape[..shape.len() - inner.len()].iter().any(|&d| d != 1) {
                    continue;
                }
                source
            }
            _ => continue,
        };
        let outer = std::mem::replace(&mut inputs[i], source);
        if op.infer_one(r, inputs) == result {
            r.changed = true;
        } else {
            inputs[i] = outer;
        }
    }
}

/// Uniform constants become scalars, where the result stays the same.
fn shrink(r: &mut Rewriter, op: &Elementwise, inputs: &mut [ValueId]) {
    if !broadcasts(op) {
        return;
    }
    let result = op.infer_one(r, inputs);
    for i in 0..inputs.len() {
        let Some(literal) = view::constant(r.graph(), inputs[i]) else { continue };
        if literal.ty.rank() == 0 || literal.uniform_f64().is_none() {
            continue;
        }
        let ty = Type::scalar(literal.ty.dtype);
        let mut types = r.graph().types(inputs);
        types[i] = &ty;
        if trainc_ir::Op::from(op.clone()).infer(&types).is_ok_and(|types| types[0] == result) {
            let element = literal.element(0).expect("uniform constants have elements").to_vec();
            let value = Literal::from_bytes(ty, element).expect("one element");
            inputs[i] = r.one(trainc_ir::op::Creation::Constant { value }, &[]);
            r.changed = true;
        }
    }
}

/// Operands of commutative operators: constants last, before them the smaller ones, else in order of definition.
fn order(r: &mut Rewriter, op: &Elementwise, inputs: &mut [ValueId]) {
    use Elementwise as E;
    if !matches!(op, E::Add | E::Mul | E::Max | E::Min | E::And | E::Or | E::Xor | E::Eq | E::Ne) {
        return;
    }
    let key = |r: &Rewriter, v: ValueId| {
        let constant = view::constant(r.graph(), v).is_some();
        (constant, std::cmp::Reverse(r.ty(v).elements()), v)
    };
    if key(r, inputs[0]) > key(r, inputs[1]) {
        inputs.swap(0, 1);
        r.changed = true;
    }
}

/// The operand and the result type of the cast that defines the value.
fn inner_cast(r: &Rewriter, value: ValueId) -> Option<(ValueId, DType)> {
    let middle = r.ty(value).dtype;
    view::elementwise(r.graph(), value, &Elementwise::Cast { to: middle }).map(|operands| (operands[0], middle))
}

/// Whether every value of `from` is a value of `wide`.
fn holds(wide: DType, from: DType) -> bool {
    let bits = |dtype: DType| match dtype {
        DType::Bool => (1, 0),
        DType::U8 | DType::I8 => (8, 0),
        DType::I32 => (32, 0),
        DType::I64 => (64, 0),
        DType::BF16 => (8, 8),
        DType::F16 => (11, 5),
        DType::F32 => (24, 8),
        DType::F64 => (53, 11),
    };
    let ((w, we), (f, fe)) = (bits(wide), bits(from));
    let signs = !(wide == DType::I8 && from == DType::U8 || wide == DType::U8 && from == DType::I8);
    if wide.is_float() { w >= f && we >= fe } else { !from.is_float() && w >= f && signs }
}
