//! Kernels and segments: what is computed, apart from where its bytes lie.

use super::KernelId;
use crate::op::Op;
use crate::training::Phase;
use crate::ty::Type;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// An operator at fixed types.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Kernel {
    /// The operator.
    #[serde(flatten)]
    pub op: Op,
    /// Types of the operands.
    pub inputs: Vec<Type>,
    /// Types of the results.
    pub outputs: Vec<Type>,
}

/// A straight-line run of kernels on one stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Name for people: block class and phase.
    pub name: String,
    /// When it runs.
    pub phase: Phase,
    /// Formal parameters.
    pub formals: Vec<Formal>,
    /// Types of the local buffers, which live during a call only.
    pub locals: Vec<Type>,
    /// The kernels in order.
    pub body: Vec<KernelCall>,
}

/// A formal parameter of a segment: a buffer of this size.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Formal {
    /// Type of the bytes passed; kernels may see them under another shape of the same size.
    #[serde(rename = "type")]
    pub ty: Type,
    /// What the segment does with it.
    pub access: Access,
}

/// How a segment uses a formal parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Reads it only.
    Read,
    /// Writes it wholly before reading it.
    Write,
    /// Reads what was there and writes it.
    Update,
}

/// One kernel of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelCall {
    /// The kernel.
    pub kernel: KernelId,
    /// Operands.
    pub inputs: Vec<Operand>,
    /// Results.
    pub outputs: Vec<Operand>,
}

/// A buffer as a segment sees it; `a3` is formal 3, `l4` local 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operand {
    /// A formal parameter.
    Formal(u32),
    /// A local.
    Local(u32),
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Formal(i) => write!(f, "a{i}"),
            Self::Local(i) => write!(f, "l{i}"),
        }
    }
}

impl FromStr for Operand {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let bad = || format!("expected an operand like `a0` or `l0`, found `{s}`");
        let number = |digits: &str| digits.parse().map_err(|_| bad());
        if let Some(digits) = s.strip_prefix('a') {
            return number(digits).map(Self::Formal);
        }
        number(s.strip_prefix('l').ok_or_else(bad)?).map(Self::Local)
    }
}

/// Serializes a type by its spelling.
macro_rules! serde_as_text {
    ($($ty:ty),*) => {$(
        impl Serialize for $ty {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $ty {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
pub(crate) use serde_as_text;

serde_as_text!(Operand);
