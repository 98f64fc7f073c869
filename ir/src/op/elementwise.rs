//! Elementwise operators, their gradients, comparison, selection and casts.

use super::attr::{family, words};
use super::rule;
use crate::ty::{DType, Type};

words! {
    /// Which formula of the Gaussian error linear unit.
    pub enum GeluForm {
        /// `x/2 (1 + erf(x/sqrt 2))`.
        Erf = "erf",
        /// `x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`.
        Tanh = "tanh",
        /// `x sigmoid(1.702 x)`.
        Quick = "quick",
    }
}

family! {
    /// One output element from the input elements at the same (broadcast) position.
    pub enum Elementwise {
        /// `-x`.
        Neg = "neg",
        /// `|x|`; its gradient at 0 is 0.
        Abs = "abs",
        /// -1, 0 or 1.
        Sign = "sign",
        /// `e^x`.
        Exp = "exp",
        /// Natural logarithm.
        Log = "log",
        /// Square root.
        Sqrt = "sqrt",
        /// `1/sqrt x`.
        Rsqrt = "rsqrt",
        /// `1/x`.
        Reciprocal = "reciprocal",
        /// Sine.
        Sin = "sin",
        /// Cosine.
        Cos = "cos",
        /// Hyperbolic tangent.
        Tanh = "tanh",
        /// `1/(1 + e^-x)`.
        Sigmoid = "sigmoid",
        /// Error function.
        Erf = "erf",
        /// `max(x, 0)`; its gradient at 0 is 0.
        Relu = "relu",
        /// Gaussian error linear unit.
        Gelu = "gelu" {
            /// The formula.
            form: GeluForm,
        },
        /// `x sigmoid(x)`.
        Silu = "silu",
        /// `log(1 + e^x)`.
        Softplus = "softplus",
        /// Largest whole number not above x.
        Floor = "floor",
        /// Smallest whole number not below x.
        Ceil = "ceil",
        /// Nearest whole number, halves to even.
        Round = "round",
        /// Logical not of bools.
        Not = "not",
        /// Whether x is not a number.
        IsNan = "is_nan",
        /// `(y, dy) -> dx` for `y = tanh x`.
        TanhGrad = "tanh_grad",
        /// `(y, dy) -> dx` for `y = sigmoid x`.
        SigmoidGrad = "sigmoid_grad",
        /// `(x, dy) -> dx` for relu.
        ReluGrad = "relu_grad",
        /// `(x, dy) -> dx` for gelu.
        GeluGrad = "gelu_grad" {
            /// The formula.
            form: GeluForm,
        },
        /// `(x, dy) -> dx` for silu.
        SiluGrad = "silu_grad",
        /// `a + b`, broadcast as numpy does, as all of the next ones.
        Add = "add",
        /// `a - b`.
        Sub = "sub",
        /// `a * b`.
        Mul = "mul",
        /// `a / b`; integers truncate.
        Div = "div",
        /// `a ^ b`.
        Pow = "pow",
        /// Larger of the two.
        Max = "max",
        /// Smaller of the two.
        Min = "min",
        /// Remainder with the sign of the divisor.
        Mod = "mod",
        /// Logical and of bools.
        And = "and",
        /// Logical or of bools.
        Or = "or",
        /// Logical exclusive or of bools.
        Xor = "xor",
        /// `a = b`, a bool, as all of the next ones.
        Eq = "eq",
        /// `a != b`.
        Ne = "ne",
        /// `a < b`.
        Lt = "lt",
        /// `a <= b`.
        Le = "le",
        /// `a > b`.
        Gt = "gt",
        /// `a >= b`.
        Ge = "ge",
        /// `(condition, a, b) -> condition ? a : b`, broadcast.
        Select = "select",
        /// Conversion to another element type; floats to integers truncate toward zero.
        Cast = "cast" {
            /// The element type.
            to: DType,
        },
    }
}

impl Elementwise {
    /// Number of operands.
    pub fn arity(&self) -> usize {
        use Elementwise as E;
        match self {
            E::Neg | E::Abs | E::Sign | E::Exp | E::Log | E::Sqrt | E::Rsqrt | E::Reciprocal | E::Sin | E::Cos => 1,
            E::Tanh | E::Sigmoid | E::Erf | E::Relu | E::Gelu { form: _ } | E::Silu | E::Softplus => 1,
            E::Floor | E::Ceil | E::Round | E::Not | E::IsNan | E::Cast { to: _ } => 1,
            E::TanhGrad | E::SigmoidGrad | E::ReluGrad | E::GeluGrad { form: _ } | E::SiluGrad => 2,
            E::Add | E::Sub | E::Mul | E::Div | E::Pow | E::Max | E::Min | E::Mod | E::And | E::Or | E::Xor => 2,
            E::Eq | E::Ne | E::Lt | E::Le | E::Gt | E::Ge => 2,
            E::Select => 3,
        }
    }

    /// Type rule: operands broadcast to one shape; element types agree.
    pub(crate) fn infer(&self, inputs: &[&Type]) -> Result<Vec<Type>, String> {
        use Elementwise as E;
        rule::arity(inputs, self.arity())?;
        let x = inputs[0];
        let ty = match self {
            E::Neg | E::Abs | E::Sign => {
                rule::numeric(x, 0)?;
                x.clone()
            }
            E::Exp | E::Log | E::Sqrt | E::Rsqrt | E::Reciprocal | E::Sin | E::Cos | E::Tanh | E::Sigmoid => {
                rule::float(x, 0)?;
                x.clone()
            }
            E::Erf | E::Relu | E::Gelu { form: _ } | E::Silu | E::Softplus | E::Floor | E::Ceil | E::Round => {
                rule::float(x, 0)?;
                x.clone()
            }
            E::Not => {
                rule::dtype(x, 0, DType::Bool)?;
                x.clone()
            }
            E::IsNan => {
                rule::float(x, 0)?;
                x.with_dtype(DType::Bool)
            }
            E::Cast { to } => x.with_dtype(*to),
            E::TanhGrad | E::SigmoidGrad | E::ReluGrad | E::GeluGrad { form: _ } | E::SiluGrad => {
                rule::float(x, 0)?;
                rule::same(x, inputs[1])?;
                x.clone()
            }
            E::Add | E::Sub | E::Mul | E::Div | E::Pow | E::Max | E::Min | E::Mod => {
                rule::numeric(x, 0)?;
                rule::same_dtype(x, inputs[1])?;
                Type::new(x.dtype, rule::broadcast(&[&x.shape, &inputs[1].shape])?)
            }
            E::And | E::Or | E::Xor => {
                rule::dtype(x, 0, DType::Bool)?;
                rule::dtype(inputs[1], 1, DType::Bool)?;
                Type::new(DType::Bool, rule::broadcast(&[&x.shape, &inputs[1].shape])?)
            }
            E::Eq | E::Ne | E::Lt | E::Le | E::Gt | E::Ge => {
                rule::same_dtype(x, inputs[1])?;
                Type::new(DType::Bool, rule::broadcast(&[&x.shape, &inputs[1].shape])?)
            }
            E::Select => {
                rule::dtype(x, 0, DType::Bool)?;
                rule::same_dtype(inputs[1], inputs[2])?;
                Type::new(inputs[1].dtype, rule::broadcast(&[&x.shape, &inputs[1].shape, &inputs[2].shape])?)
            }
        };
        Ok(vec![ty])
    }
}
