//! What `--loss` says.

use super::codes;
use std::fmt;
use std::str::FromStr;
use trainc_ir::Diagnostic;

/// Which loss to train.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LossSpec {
    /// The one that the model computes; for a language model without one, the next token's cross-entropy.
    #[default]
    FromModel,
    /// Cross-entropy of this output of logits.
    CrossEntropy(String),
    /// Squared error of this output against labels of its type.
    Mse(String),
    /// The sum of this output.
    Sum(String),
}

impl fmt::Display for LossSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FromModel => f.write_str("model"),
            Self::CrossEntropy(name) => write!(f, "cross-entropy:{name}"),
            Self::Mse(name) => write!(f, "mse:{name}"),
            Self::Sum(name) => write!(f, "sum:{name}"),
        }
    }
}

impl FromStr for LossSpec {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<Self, Diagnostic> {
        let spec = match text.split_once(':') {
            Some(("cross-entropy", name)) if !name.is_empty() => Self::CrossEntropy(name.to_owned()),
            Some(("mse", name)) if !name.is_empty() => Self::Mse(name.to_owned()),
            Some(("sum", name)) if !name.is_empty() => Self::Sum(name.to_owned()),
            None if text == "model" => Self::FromModel,
            Some(_) | None => {
                let message = format!("`{text}` does not say what the loss is");
                return Err(Diagnostic::error(codes::BAD_LOSS_SPEC, message).with_help(
                    "write `cross-entropy:NAME`, `mse:NAME` or `sum:NAME`, where NAME is an output of the model",
                ));
            }
        };
        Ok(spec)
    }
}
