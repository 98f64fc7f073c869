//! One node with its operands, as the lowering rules see it, and how a rule says that it cannot.

use super::code;
use super::constant::{Const, MAX_ELEMENTS};
use onnx_protobuf::attribute_proto::AttributeType;
use onnx_protobuf::{AttributeProto, GraphProto, NodeProto, TensorProto};
use std::rc::Rc;
use trainc_ir::{DType, ValueId};

/// An operand or result of a node: a value of the graph, or one known at compile time.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    /// Computed by the graph.
    Value(ValueId),
    /// Known.
    Const(Rc<Const>),
}

impl From<ValueId> for Operand {
    fn from(value: ValueId) -> Self {
        Self::Value(value)
    }
}

impl From<Const> for Operand {
    fn from(value: Const) -> Self {
        Self::Const(Rc::new(value))
    }
}

impl Operand {
    /// The value where it is known.
    pub(super) fn known(&self) -> Option<&Const> {
        match self {
            Self::Value(_) => None,
            Self::Const(value) => Some(value),
        }
    }
}

/// Why a node cannot be lowered; the driver adds which node it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fail {
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl Fail {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// A form of a known operator that is not supported.
    pub(super) fn form(what: impl std::fmt::Display) -> Self {
        Self::new(code::UNSUPPORTED_FORM, format!("not supported: {what}"))
    }
}

/// Type rules speak in strings: what they find are contradicting types.
impl From<String> for Fail {
    fn from(message: String) -> Self {
        Self::new(code::BAD_SHAPE, message)
    }
}

impl From<&str> for Fail {
    fn from(message: &str) -> Self {
        Self::from(message.to_owned())
    }
}

/// Results of a rule.
pub(super) type Results = Result<Vec<Operand>, Fail>;

/// A node with its operands resolved.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// The node.
    pub(super) node: &'a NodeProto,
    /// Version of the node's operator set.
    pub(super) opset: i64,
    /// Operands; `None` for those left out.
    pub(super) inputs: Vec<Option<Operand>>,
}

impl Call<'_> {
    /// A required operand.
    pub(super) fn input(&self, slot: usize) -> Result<&Operand, Fail> {
        self.optional(slot).ok_or_else(|| {
            let found = self.inputs.len();
            Fail::new(code::BAD_ARITY, format!("input {slot} is required, found {found} inputs"))
        })
    }

    /// An operand that may be left out.
    pub(super) fn optional(&self, slot: usize) -> Option<&Operand> {
        self.inputs.get(slot)?.as_ref()
    }

    /// All operands, none of which may be left out.
    pub(super) fn all_inputs(&self) -> Result<Vec<Operand>, Fail> {
        (0..self.inputs.len().max(1)).map(|slot| self.input(slot).cloned()).collect()
    }

    /// An operand that must be known at compile time.
    pub(super) fn known(&self, slot: usize, what: &str) -> Result<&Const, Fail> {
        let known = self.input(slot)?.known().ok_or_else(|| {
            Fail::new(code::DATA_DEPENDENT, format!("its {what} (input {slot}) is known only at run time"))
        })?;
        if known.ty.elements() > MAX_ELEMENTS {
            return Err(Fail::form(format!("its {what} (input {slot}) of type {} is too large", known.ty)));
        }
        Ok(known)
    }

    /// An operand that may be left out, and is known at compile time where it is there.
    pub(super) fn known_if_given(&self, slot: usize, what: &str) -> Result<Option<&Const>, Fail> {
        if self.optional(slot).is_some() { self.known(slot, what).map(Some) } else { Ok(None) }
    }

    /// Whether the result in this slot has a name, so that somebody may use it.
    pub(super) fn wants(&self, slot: usize) -> bool {
        self.node.output.get(slot).is_some_and(|name| !name.is_empty())
    }

    fn attribute(&self, name: &str, wanted: AttributeType) -> Result<Option<&AttributeProto>, Fail> {
        let Some(attribute) = self.node.attribute.iter().find(|attribute| attribute.name == name) else {
            return Ok(None);
        };
        match attribute.type_.enum_value() {
            Ok(AttributeType::UNDEFINED) => Ok(Some(attribute)),
            Ok(found) if found == wanted => Ok(Some(attribute)),
            found => {
                let found = found.map_or_else(|number| number.to_string(), |ty| format!("{ty:?}").to_lowercase());
                let wanted = format!("{wanted:?}").to_lowercase();
                let text = format!("its attribute `{name}` must be of type {wanted}, found {found}");
                Err(Fail::new(code::BAD_ATTRIBUTE, text))
            }
        }
    }

    /// Whether the attribute is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.node.attribute.iter().any(|attribute| attribute.name == name)
    }

    /// An integer attribute.
    pub(super) fn int(&self, name: &str, default: i64) -> Result<i64, Fail> {
        Ok(self.attribute(name, AttributeType::INT)?.map_or(default, |attribute| attribute.i))
    }

    /// A flag.
    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool, Fail> {
        Ok(self.int(name, i64::from(default))? != 0)
    }

    /// A float attribute; the decimal that the exporter meant, so that 1e-5 stays 1e-5.
    pub(super) fn float(&self, name: &str, default: f64) -> Result<f64, Fail> {
        Ok(self.attribute(name, AttributeType::FLOAT)?.map_or(default, |attribute| shortest(attribute.f)))
    }

    /// A list of integers.
    pub(super) fn ints(&self, name: &str) -> Result<Option<&[i64]>, Fail> {
        Ok(self.attribute(name, AttributeType::INTS)?.map(|attribute| attribute.ints.as_slice()))
    }

    /// A list of floats.
    pub(super) fn floats(&self, name: &str) -> Result<Option<&[f32]>, Fail> {
        Ok(self.attribute(name, AttributeType::FLOATS)?.map(|attribute| attribute.floats.as_slice()))
    }

    /// A string.
    pub(super) fn string(&self, name: &str, default: &str) -> Result<String, Fail> {
        let attribute = self.attribute(name, AttributeType::STRING)?;
        Ok(attribute.map_or(default.to_owned(), |attribute| String::from_utf8_lossy(&attribute.s).into_owned()))
    }

    /// A tensor.
    pub(super) fn tensor(&self, name: &str) -> Result<Option<&TensorProto>, Fail> {
        Ok(self.attribute(name, AttributeType::TENSOR)?.and_then(|attribute| attribute.t.as_ref()))
    }

    /// A subgraph.
    pub(super) fn graph(&self, name: &str) -> Result<&GraphProto, Fail> {
        self.attribute(name, AttributeType::GRAPH)?
            .and_then(|attribute| attribute.g.as_ref())
            .ok_or_else(|| Fail::new(code::BAD_ATTRIBUTE, format!("its attribute `{name}` is missing")))
    }

    /// An element type given by number.
    pub(super) fn dtype(&self, name: &str) -> Result<Option<DType>, Fail> {
        if !self.has(name) {
            return Ok(None);
        }
        let number = i32::try_from(self.int(name, 0)?).unwrap_or(-1);
        super::element::dtype(number)
            .map(Some)
            .map_err(|found| Fail::new(code::ELEMENT_TYPE, format!("its attribute `{name}` is element type {found}")))
    }
}

/// The shortest decimal that reads back to the same single, as a double.
fn shortest(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

/// An axis that may count from the end.
pub(super) fn axis(axis: i64, rank: usize) -> Result<usize, Fail> {
    let signed = i64::try_from(rank).unwrap_or(i64::MAX);
    let wrapped = if axis < 0 { axis.saturating_add(signed) } else { axis };
    usize::try_from(wrapped)
        .ok()
        .filter(|&found| found < rank)
        .ok_or_else(|| Fail::new(code::BAD_ATTRIBUTE, format!("axis {axis} is out of range for rank {rank}")))
}

/// Several axes that may count from the end, ascending.
pub(super) fn axes(list: &[i64], rank: usize) -> Result<Vec<usize>, Fail> {
    let mut found = list.iter().map(|&given| axis(given, rank)).collect::<Result<Vec<_>, _>>()?;
    found.sort_unstable();
    found.dedup();
    if found.len() == list.len() {
        return Ok(found);
    }
    Err(Fail::new(code::BAD_ATTRIBUTE, format!("axes {list:?} name an axis twice")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_survive_single_precision() {
        assert_eq!(shortest(1e-5), 1e-5);
        assert_eq!(shortest(f32::INFINITY), f64::INFINITY);
    }

    #[test]
    fn axes_count_from_both_ends() {
        assert_eq!(axis(-1, 3), Ok(2));
        assert!(axis(3, 3).is_err() && axis(i64::MIN, 3).is_err());
        assert_eq!(axes(&[-1, 0], 3), Ok(vec![0, 2]));
        assert!(axes(&[-1, 2], 3).is_err());
    }
}
