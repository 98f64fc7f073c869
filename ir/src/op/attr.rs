//! Attributes: the one description of an operator's parameters that the text form, JSON and protobuf share.

use super::literal::Literal;
use crate::ty::DType;
use std::fmt;

/// A real attribute, compared and hashed by its bits so that operators have a total equality.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Real(u64);

impl Real {
    /// Wraps a number.
    pub fn new(value: f64) -> Self {
        Self(value.to_bits())
    }

    /// The number.
    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl From<f64> for Real {
    fn from(value: f64) -> Self {
        Self::new(value)
    }
}

impl fmt::Debug for Real {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.get())
    }
}

/// One attribute value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attr {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A real number; printed as the shortest decimal that reads back to the same bits.
    Real(Real),
    /// A bare word: an element type or the name of a variant.
    Word(String),
    /// Free text, printed in quotes.
    Text(String),
    /// Whole numbers: `[1,2,3]`.
    Ints(Vec<i64>),
    /// Several types: `[f32[2,3],i64[]]`.
    Types(Vec<crate::ty::Type>),
    /// Constant data.
    Literal(Literal),
}

/// Named attributes in declaration order.
pub type Attrs = Vec<(&'static str, Attr)>;

/// A Rust type that has an attribute form.
pub(crate) trait AttrValue: Sized {
    fn to_attr(&self) -> Attr;
    fn from_attr(attr: &Attr) -> Option<Self>;
    /// What a reader should have found, for messages.
    const EXPECTED: &'static str;
}

macro_rules! attr_value {
    ($ty:ty, $expected:literal, $self:ident => $to:expr, $pattern:pat => $from:expr) => {
        impl AttrValue for $ty {
            const EXPECTED: &'static str = $expected;
            fn to_attr(&self) -> Attr {
                let $self = self;
                $to
            }
            fn from_attr(attr: &Attr) -> Option<Self> {
                #[allow(irrefutable_let_patterns, reason = "some forms read every attribute")]
                if let $pattern = attr { $from } else { None }
            }
        }
    };
}

attr_value!(bool, "true or false", v => Attr::Bool(*v), Attr::Bool(b) => Some(*b));
attr_value!(i64, "a whole number", v => Attr::Int(*v), Attr::Int(i) => Some(*i));
attr_value!(u64, "a whole number that is not negative", v => Attr::Int(*v as i64), Attr::Int(i) => u64::try_from(*i).ok());
attr_value!(String, "a quoted text", v => Attr::Text(v.clone()), Attr::Text(t) | Attr::Word(t) => Some(t.clone()));
attr_value!(Literal, "constant data", v => Attr::Literal(v.clone()), Attr::Literal(l) => Some(l.clone()));
attr_value!(DType, "an element type", v => Attr::Word(v.name().to_owned()), Attr::Word(w) => Self::from_name(w));
attr_value!(Vec<i64>, "a list of whole numbers", v => Attr::Ints(v.clone()), Attr::Ints(i) => Some(i.clone()));
attr_value!(
    Vec<crate::ty::Type>,
    "a list of types",
    v => Attr::Types(v.clone()),
    attr => match attr {
        Attr::Types(types) => Some(types.clone()),
        Attr::Ints(ints) if ints.is_empty() => Some(Vec::new()),
        _ => None,
    }
);
attr_value!(
    Vec<u64>,
    "a list of whole numbers that are not negative",
    v => Attr::Ints(v.iter().map(|&d| d as i64).collect()),
    Attr::Ints(i) => i.iter().map(|&d| u64::try_from(d).ok()).collect()
);

impl AttrValue for Real {
    const EXPECTED: &'static str = "a number";
    fn to_attr(&self) -> Attr {
        Attr::Real(*self)
    }
    fn from_attr(attr: &Attr) -> Option<Self> {
        match attr {
            Attr::Real(r) => Some(*r),
            Attr::Int(i) => Some(Self::new(*i as f64)),
            // Numbers that JSON cannot spell are written as their bits.
            Attr::Word(word) => word.strip_prefix("0x").and_then(|bits| u64::from_str_radix(bits, 16).ok()).map(Self),
            Attr::Bool(_) | Attr::Text(_) | Attr::Ints(_) | Attr::Types(_) | Attr::Literal(_) => None,
        }
    }
}

/// Declares an enum of bare words used as an attribute.
macro_rules! words {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis enum $name { $($(#[$vmeta])* $variant),* }

        impl $crate::op::attr::AttrValue for $name {
            const EXPECTED: &'static str = concat!("one of" $(, " `", $word, "`")*);
            fn to_attr(&self) -> $crate::op::attr::Attr {
                let word = match self { $(Self::$variant => $word),* };
                $crate::op::attr::Attr::Word(word.to_owned())
            }
            fn from_attr(attr: &$crate::op::attr::Attr) -> Option<Self> {
                match attr {
                    $($crate::op::attr::Attr::Word(w) if w == $word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use words;

/// Takes attributes by name while an operator is rebuilt from them.
#[derive(Debug)]
pub(crate) struct AttrReader<'a> {
    op: &'a str,
    attrs: Vec<(&'a str, Option<&'a Attr>)>,
}

impl<'a> AttrReader<'a> {
    pub(crate) fn new(op: &'a str, attrs: impl IntoIterator<Item = (&'a str, &'a Attr)>) -> Self {
        Self { op, attrs: attrs.into_iter().map(|(name, attr)| (name, Some(attr))).collect() }
    }

    pub(crate) fn take<T: AttrValue>(&mut self, name: &str) -> Result<T, String> {
        let op = self.op;
        let slot = self.attrs.iter_mut().find(|(n, attr)| *n == name && attr.is_some());
        let attr = slot.and_then(|(_, attr)| attr.take());
        let attr = attr.ok_or_else(|| format!("`{op}` needs the attribute `{name}` ({})", T::EXPECTED))?;
        T::from_attr(attr)
            .ok_or_else(|| format!("attribute `{name}` of `{op}`: expected {}, found {attr:?}", T::EXPECTED))
    }

    pub(crate) fn finish(self) -> Result<(), String> {
        match self.attrs.iter().find(|(_, attr)| attr.is_some()) {
            Some((name, _)) => Err(format!("`{}` has no attribute `{name}`, or it is given twice", self.op)),
            None => Ok(()),
        }
    }
}

/// Declares an operator family: an enum whose variants carry their spelling and typed attributes.
macro_rules! family {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($(#[$vmeta:meta])* $variant:ident = $spelling:literal $({ $($(#[$fmeta:meta])* $field:ident : $ty:ty),* $(,)? })?),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vmeta])* $variant $({ $($(#[$fmeta])* $field: $ty),* })?),* }

        impl $name {
            /// The spellings of the family, in declaration order.
            pub const SPELLINGS: &'static [&'static str] = &[$($spelling),*];

            /// Spelling in the text form.
            pub fn spelling(&self) -> &'static str {
                match self { $(Self::$variant $({ $($field: _),* })? => $spelling),* }
            }

            /// Attributes in declaration order.
            pub fn attrs(&self) -> $crate::op::attr::Attrs {
                match self { $(Self::$variant $({ $($field),* })? => {
                    vec![$($((stringify!($field), $crate::op::attr::AttrValue::to_attr($field))),*)?]
                }),* }
            }

            /// The operator of this spelling, or `None` where the family has none.
            pub(crate) fn read(
                spelling: &str,
                reader: &mut $crate::op::attr::AttrReader<'_>,
            ) -> Result<Option<Self>, String> {
                let _ = &reader;
                Ok(match spelling {
                    $($spelling => Some(Self::$variant $({ $($field: reader.take(stringify!($field))?),* })?),)*
                    _ => None,
                })
            }
        }
    };
}
pub(crate) use family;
