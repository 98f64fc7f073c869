//! Operators: a closed set in families, each family with its type rules in a file of its own.

mod attention;
mod attr;
mod batch_norm;
mod contraction;
mod convolution;
mod creation;
mod elementwise;
mod indexing;
mod literal;
mod loss;
mod movement;
mod normalization;
mod opaque;
mod optimizer;
mod pooling;
mod random;
mod reduction;
mod rule;
mod serde;
mod shard;
mod window;

pub use attention::Attention;
pub use attr::{Attr, Attrs, Real};
pub use batch_norm::BatchNorm;
pub use contraction::Contraction;
pub use convolution::Convolution;
pub use creation::Creation;
pub use elementwise::{Elementwise, GeluForm};
pub use indexing::Indexing;
pub use literal::{Literal, LiteralData, decode_f64, decode_i64, encode_f64, encode_i64};
pub use loss::Loss;
pub use movement::Movement;
pub use normalization::Normalization;
pub use opaque::Opaque;
pub use optimizer::Optimizer;
pub use pooling::Pooling;
pub use random::Random;
pub use reduction::{ReduceKind, Reduction};
pub use shard::{Layout, ShardRule};

use crate::ty::Type;

macro_rules! op {
    ($($(#[$meta:meta])* $family:ident),* $(,)?) => {
        /// An operator. Matches over it name every family, and within a family every variant.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Op { $($(#[$meta])* $family($family)),* }

        $(impl From<$family> for Op {
            fn from(op: $family) -> Self {
                Self::$family(op)
            }
        })*

        impl Op {
            /// Every spelling of the text form with the name of its family, families in declaration order.
            pub fn spellings() -> impl Iterator<Item = (&'static str, &'static str)> {
                [$((stringify!($family), $family::SPELLINGS)),*]
                    .into_iter()
                    .flat_map(|(family, names)| names.iter().map(move |&name| (family, name)))
            }

            /// Spelling in the text form.
            pub fn spelling(&self) -> &'static str {
                match self { $(Self::$family(op) => op.spelling()),* }
            }

            /// Attributes in declaration order.
            pub fn attrs(&self) -> Attrs {
                match self { $(Self::$family(op) => op.attrs()),* }
            }

            /// The types of the results.
            ///
            /// # Errors
            /// What is wrong with the operands: lower case, with what was expected and what was found.
            pub fn infer(&self, inputs: &[&Type]) -> Result<Vec<Type>, String> {
                match self { $(Self::$family(op) => op.infer(inputs)),* }
            }

            /// The operator of this spelling with these attributes.
            ///
            /// # Errors
            /// Unknown spelling; missing, unknown, repeated or ill-typed attribute.
            pub fn from_attrs<'a>(
                spelling: &'a str,
                attrs: impl IntoIterator<Item = (&'a str, &'a Attr)>,
            ) -> Result<Self, String> {
                let mut reader = attr::AttrReader::new(spelling, attrs);
                $(if let Some(op) = $family::read(spelling, &mut reader)? {
                    reader.finish()?;
                    return Ok(Self::$family(op));
                })*
                Err(format!("unknown operator `{spelling}`"))
            }
        }
    };
}

op! {
    /// One element from the elements at the same position.
    Elementwise,
    /// Matrix products.
    Contraction,
    /// Convolutions.
    Convolution,
    /// Pooling.
    Pooling,
    /// Reductions and scans.
    Reduction,
    /// Normalizations and softmax.
    Normalization,
    /// Batch normalization.
    BatchNorm,
    /// Attention and rotary embedding.
    Attention,
    /// Gather and scatter.
    Indexing,
    /// Data movement.
    Movement,
    /// Constants.
    Creation,
    /// Dropout.
    Random,
    /// Losses.
    Loss,
    /// Accumulation and updates.
    Optimizer,
    /// Unknown operators.
    Opaque,
}

impl Op {
    /// Whether the result is the operand's bytes under another shape, so that no kernel runs.
    pub fn is_alias(&self) -> bool {
        matches!(self, Self::Movement(Movement::Reshape { shape: _ }))
    }

    /// The site of a random operator.
    pub fn site(&self) -> Option<u64> {
        match self {
            Self::Random(Random::Dropout { p: _, site } | Random::DropoutGrad { p: _, site }) => Some(*site),
            Self::Elementwise(_) | Self::Contraction(_) | Self::Reduction(_) | Self::Normalization(_) => None,
            Self::Convolution(_) | Self::Pooling(_) | Self::BatchNorm(_) => None,
            Self::Attention(_) | Self::Indexing(_) | Self::Movement(_) | Self::Creation(_) => None,
            Self::Loss(_) | Self::Optimizer(_) | Self::Opaque(_) => None,
        }
    }

    /// The same operator with another site; operators that are not random are left as they are.
    #[must_use]
    pub fn with_site(&self, site: u64) -> Self {
        match self {
            Self::Random(Random::Dropout { p, site: _ }) => Random::Dropout { p: *p, site }.into(),
            Self::Random(Random::DropoutGrad { p, site: _ }) => Random::DropoutGrad { p: *p, site }.into(),
            Self::Elementwise(_) | Self::Contraction(_) | Self::Reduction(_) | Self::Normalization(_) => self.clone(),
            Self::Convolution(_) | Self::Pooling(_) | Self::BatchNorm(_) => self.clone(),
            Self::Attention(_) | Self::Indexing(_) | Self::Movement(_) | Self::Creation(_) => self.clone(),
            Self::Loss(_) | Self::Optimizer(_) | Self::Opaque(_) => self.clone(),
        }
    }

    /// The (result, operand) pairs that may share bytes.
    pub fn in_place(&self) -> &'static [(usize, usize)] {
        match self {
            Self::Optimizer(op) => op.in_place(),
            Self::BatchNorm(op) => op.in_place(),
            Self::Convolution(_) | Self::Pooling(_) => &[],
            Self::Elementwise(_) | Self::Contraction(_) | Self::Reduction(_) | Self::Normalization(_) => &[],
            Self::Attention(_) | Self::Indexing(_) | Self::Movement(_) | Self::Creation(_) => &[],
            Self::Random(_) | Self::Loss(_) | Self::Opaque(_) => &[],
        }
    }

    /// Floating-point operations: products are counted exactly, everything else as one per element touched.
    pub fn flops(&self, inputs: &[&Type], outputs: &[&Type]) -> u64 {
        let touched = || inputs.iter().chain(outputs).map(|ty| ty.elements()).max().unwrap_or(0);
        match self {
            Self::Contraction(op) => op.flops(inputs, outputs),
            Self::Attention(op) => op.flops(inputs, outputs),
            Self::Convolution(op) => op.flops(inputs, outputs),
            Self::Pooling(op) => op.flops(inputs, outputs),
            Self::Movement(_) | Self::Indexing(_) | Self::Creation(_) | Self::Opaque(_) => 0,
            Self::Elementwise(_) | Self::Reduction(_) | Self::Random(_) | Self::Loss(_) => touched(),
            Self::Normalization(_) | Self::BatchNorm(_) | Self::Optimizer(_) => 8 * touched(),
        }
    }

    /// Bytes read and written when every operand is read once and every result written once.
    pub fn bytes(&self, inputs: &[&Type], outputs: &[&Type]) -> u64 {
        if self.is_alias() {
            return 0;
        }
        inputs.iter().chain(outputs).map(|ty| ty.bytes()).sum()
    }
}
