//! The JSON form of operators: `{"op": "reduce", "attrs": {"kind": "sum", "axes": [1], "keep": false}}`.

use super::{Attr, Literal, LiteralData, Op, Real};
use crate::ty::Type;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

#[derive(Serialize, Deserialize)]
struct OpForm {
    op: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    attrs: BTreeMap<String, AttrForm>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum AttrForm {
    Bool(bool),
    Int(i64),
    Real(f64),
    Text(String),
    Ints(Vec<i64>),
    Types(Vec<Type>),
    Literal(LiteralForm),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LiteralForm {
    #[serde(rename = "type")]
    ty: Type,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    splat: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dense: Option<String>,
}

impl Serialize for Op {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let attrs = self.attrs().into_iter().map(|(name, attr)| (name.to_owned(), write(attr))).collect();
        OpForm { op: self.spelling().to_owned(), attrs }.serialize(s)
    }
}

impl<'de> Deserialize<'de> for Op {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let form = OpForm::deserialize(d)?;
        let attrs: Result<Vec<(String, Attr)>, String> =
            form.attrs.into_iter().map(|(name, attr)| Ok((name, read(attr)?))).collect();
        let attrs = attrs.map_err(D::Error::custom)?;
        let pairs = attrs.iter().map(|(name, attr)| (name.as_str(), attr));
        Self::from_attrs(&form.op, pairs).map_err(D::Error::custom)
    }
}

fn write(attr: Attr) -> AttrForm {
    match attr {
        Attr::Bool(b) => AttrForm::Bool(b),
        Attr::Int(i) => AttrForm::Int(i),
        Attr::Real(r) if r.get().is_finite() => AttrForm::Real(r.get()),
        Attr::Real(r) => AttrForm::Text(format!("0x{:016x}", r.get().to_bits())),
        Attr::Word(text) | Attr::Text(text) => AttrForm::Text(text),
        Attr::Ints(ints) => AttrForm::Ints(ints),
        Attr::Types(types) => AttrForm::Types(types),
        Attr::Literal(Literal { ty, data }) => AttrForm::Literal(match data {
            LiteralData::Splat(bytes) => LiteralForm { ty, splat: Some(hex(&bytes)), dense: None },
            LiteralData::Dense(bytes) => LiteralForm { ty, splat: None, dense: Some(hex(&bytes)) },
        }),
    }
}

/// Texts are read as words: the attribute's own type decides what they mean.
fn read(form: AttrForm) -> Result<Attr, String> {
    Ok(match form {
        AttrForm::Bool(b) => Attr::Bool(b),
        AttrForm::Int(i) => Attr::Int(i),
        AttrForm::Real(r) => Attr::Real(Real::new(r)),
        AttrForm::Text(text) => Attr::Word(text),
        AttrForm::Ints(ints) => Attr::Ints(ints),
        AttrForm::Types(types) => Attr::Types(types),
        AttrForm::Literal(LiteralForm { ty, splat, dense }) => Attr::Literal(literal(ty, splat, dense)?),
    })
}

fn literal(ty: Type, splat: Option<String>, dense: Option<String>) -> Result<Literal, String> {
    let element = ty.dtype.bytes();
    let (data, expected) = match (splat, dense) {
        (Some(text), None) => (LiteralData::Splat(unhex(&text)?), Some(element)),
        (None, Some(text)) => {
            let expected = ty.checked_elements().and_then(|n| n.checked_mul(element));
            (LiteralData::Dense(unhex(&text)?), expected)
        }
        (Some(_), Some(_)) | (None, None) => return Err("a literal has either `splat` or `dense`".to_owned()),
    };
    let (LiteralData::Splat(bytes) | LiteralData::Dense(bytes)) = &data;
    if expected != Some(bytes.len() as u64) {
        return Err(format!("a literal of type {ty} cannot have {} bytes of data", bytes.len()));
    }
    Ok(Literal { ty, data })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let bad = || format!("expected pairs of hexadecimal digits, found `{text}`");
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return Err(bad());
    }
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).map_err(|_| bad())).collect()
}
