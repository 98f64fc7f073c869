//! A walk over the protobuf wire form of a model that checks every length and leaves the weights where they are.
//!
//! The walk copies the model into a small buffer in which every large tensor payload is replaced by a marker: an
//! unknown field whose value indexes [`Compact::payloads`]. Parsing that buffer is cheap however large the weights are.
//! The walk also keeps the parser safe: it bounds nesting and refuses protobuf groups, which the parser would skip
//! recursively.

use std::ops::Range;

/// Payload fields of a tensor shorter than this stay in the parsed message.
const INLINE_LIMIT: usize = 1024;

/// Deepest nesting of messages; a graph inside a graph takes three levels.
pub(super) const MAX_DEPTH: u32 = 200;

/// Largest model structure (everything but tensor payloads) that is accepted.
const MAX_COMPACT: usize = 1 << 30;

/// Number of the unknown field that marks a tensor with entries in [`Compact::payloads`].
pub(super) const MARKER: u32 = (1 << 29) - 1;

/// A model without its large payloads.
#[derive(Debug, Default)]
pub(super) struct Compact {
    /// The rewritten message.
    pub(super) bytes: Vec<u8>,
    /// Payloads that were left in the file, indexed by the marker.
    pub(super) payloads: Vec<Payload>,
}

/// The chunks of one tensor payload field, in order, as byte ranges of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Payload {
    /// Field number in `TensorProto`.
    pub(super) field: u32,
    /// Where its bytes are.
    pub(super) ranges: Vec<Range<usize>>,
}

/// Why a walk stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WireError {
    /// Byte of the file at which the fault was seen.
    pub(super) offset: usize,
    /// The innermost message being read.
    pub(super) message: &'static str,
    /// How many well-formed fields of the model message had been read.
    pub(super) n_fields: usize,
    /// What is wrong.
    pub(super) fault: Fault,
}

/// What is wrong with the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A field of the model itself needs more bytes than the file has.
    PastEnd {
        /// How many bytes are missing.
        missing: u64,
    },
    /// An inner field is longer than the message that holds it.
    PastParent,
    /// Not a field: number 0, an unknown wire type, or a length that is no number.
    BadField,
    /// A protobuf group, which ONNX never uses.
    Group,
    /// Nested deeper than [`MAX_DEPTH`].
    TooDeep,
    /// The structure alone is larger than [`MAX_COMPACT`].
    TooLarge,
}

/// The message types of ONNX as far as the walk tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Model,
    Training,
    Function,
    Graph,
    Node,
    Attribute,
    Tensor,
    SparseTensor,
    ValueInfo,
    Annotation,
    Type,
    TensorType,
    ElementType,
    MapType,
    ShapeProto,
    /// A message without messages inside.
    Leaf,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Training => "training info",
            Self::Function => "function",
            Self::Graph => "graph",
            Self::Node => "node",
            Self::Attribute => "attribute",
            Self::Tensor => "tensor",
            Self::SparseTensor => "sparse tensor",
            Self::ValueInfo => "value info",
            Self::Annotation => "quantization annotation",
            Self::Type | Self::TensorType | Self::ElementType | Self::MapType => "type",
            Self::ShapeProto => "shape",
            Self::Leaf => "entry",
        }
    }

    /// The message type of a length-delimited field; `None` for strings, bytes, packed numbers and unknown fields.
    fn child(self, field: u32) -> Option<Self> {
        Some(match (self, field) {
            (Self::Model, 7) | (Self::Training, 1 | 2) | (Self::Attribute, 6 | 11) => Self::Graph,
            (Self::Model, 20) => Self::Training,
            (Self::Model, 25) => Self::Function,
            (Self::Graph, 1) | (Self::Function, 7) => Self::Node,
            (Self::Node, 5) | (Self::Function, 11) => Self::Attribute,
            (Self::Graph, 5) | (Self::Attribute, 5 | 10) | (Self::SparseTensor, 1 | 2) => Self::Tensor,
            (Self::Graph, 15) | (Self::Attribute, 22 | 23) => Self::SparseTensor,
            (Self::Graph, 11..=13) | (Self::Function, 12) => Self::ValueInfo,
            (Self::Graph, 14) => Self::Annotation,
            (Self::ValueInfo, 2) | (Self::Attribute, 14 | 15) | (Self::ElementType, 1) | (Self::MapType, 2) => {
                Self::Type
            }
            (Self::Type, 1 | 8) => Self::TensorType,
            (Self::Type, 4 | 9) => Self::ElementType,
            (Self::Type, 5) => Self::MapType,
            (Self::TensorType, 2) => Self::ShapeProto,
            (Self::Model, 8 | 14)
            | (Self::Training, 3 | 4)
            | (Self::Graph, 16)
            | (Self::Function, 9 | 14)
            | (Self::Node, 9)
            | (Self::ValueInfo, 4)
            | (Self::Annotation, 2)
            | (Self::Tensor, 3 | 13 | 16)
            | (Self::ShapeProto, 1)
            | (Self::Type, 7) => Self::Leaf,
            _ => return None,
        })
    }
}

/// Fields of `TensorProto` that hold elements.
pub(super) mod field {
    pub(in super::super) const FLOAT: u32 = 4;
    pub(in super::super) const INT32: u32 = 5;
    pub(in super::super) const INT64: u32 = 7;
    pub(in super::super) const RAW: u32 = 9;
    pub(in super::super) const DOUBLE: u32 = 10;
    pub(in super::super) const UINT64: u32 = 11;
}

/// Walks `file` as a `ModelProto`.
pub(super) fn compact(file: &[u8]) -> Result<Compact, WireError> {
    let mut walk = Walk { file, out: Compact::default(), n_fields: 0 };
    walk.message(Kind::Model, 0..file.len(), 0)?;
    Ok(walk.out)
}

struct Walk<'a> {
    file: &'a [u8],
    out: Compact,
    n_fields: usize,
}

impl Walk<'_> {
    fn message(&mut self, kind: Kind, range: Range<usize>, depth: u32) -> Result<(), WireError> {
        if depth >= MAX_DEPTH {
            return Err(self.error(kind, range.start, Fault::TooDeep));
        }
        let mut at = range.start;
        let mut elided: Vec<Payload> = Vec::new();
        while at < range.end {
            let start = at;
            let tag = self.varint(kind, &mut at, range.end)?;
            let number = u32::try_from(tag >> 3).unwrap_or(0);
            if number == 0 || number > MARKER {
                return Err(self.error(kind, start, Fault::BadField));
            }
            match tag & 7 {
                0 => {
                    self.varint(kind, &mut at, range.end)?;
                }
                1 => at = self.advance(kind, start, at, 8, range.end)?,
                5 => at = self.advance(kind, start, at, 4, range.end)?,
                2 => {
                    let length = self.varint(kind, &mut at, range.end)?;
                    let end = self.advance(kind, start, at, length, range.end)?;
                    if let Some(child) = kind.child(number) {
                        self.child(child, number, at..end, depth)?;
                        at = end;
                        self.count(kind);
                        continue;
                    }
                    if kind == Kind::Tensor && self.payload(number, at..end, &mut elided) {
                        at = end;
                        continue;
                    }
                    at = end;
                }
                3 | 4 => return Err(self.error(kind, start, Fault::Group)),
                _ => return Err(self.error(kind, start, Fault::BadField)),
            }
            if !(kind == Kind::Tensor && number == MARKER) {
                self.copy(kind, start..at)?;
            }
            self.count(kind);
        }
        for payload in elided {
            self.write_varint(u64::from(MARKER) << 3);
            self.write_varint(self.out.payloads.len() as u64);
            self.out.payloads.push(payload);
        }
        Ok(())
    }

    /// Writes a message field whose content is a walked message; its length is patched in afterwards.
    fn child(&mut self, kind: Kind, number: u32, range: Range<usize>, depth: u32) -> Result<(), WireError> {
        self.write_varint(u64::from(number) << 3 | 2);
        let patch_at = self.out.bytes.len();
        self.out.bytes.extend_from_slice(&[0; 5]);
        self.message(kind, range, depth + 1)?;
        let length = self.out.bytes.len() - patch_at - 5;
        for (i, byte) in self.out.bytes[patch_at..patch_at + 5].iter_mut().enumerate() {
            let continues = if i < 4 { 0x80 } else { 0 };
            *byte = (length >> (7 * i)) as u8 & 0x7f | continues;
        }
        Ok(())
    }

    /// Whether the payload stays in the file. Packed numbers append to what came before, raw bytes replace it.
    fn payload(&self, number: u32, range: Range<usize>, elided: &mut Vec<Payload>) -> bool {
        let earlier = elided.iter_mut().find(|payload| payload.field == number);
        match number {
            field::RAW if range.len() < INLINE_LIMIT => {
                elided.retain(|payload| payload.field != field::RAW);
                return false;
            }
            field::RAW => match earlier {
                Some(payload) => payload.ranges = vec![range],
                None => elided.push(Payload { field: number, ranges: vec![range] }),
            },
            field::FLOAT | field::INT32 | field::INT64 | field::DOUBLE | field::UINT64 => match earlier {
                Some(payload) => payload.ranges.push(range),
                None if range.len() < INLINE_LIMIT => return false,
                None => elided.push(Payload { field: number, ranges: vec![range] }),
            },
            _ => return false,
        }
        true
    }

    fn copy(&mut self, kind: Kind, range: Range<usize>) -> Result<(), WireError> {
        if self.out.bytes.len() + range.len() > MAX_COMPACT {
            return Err(self.error(kind, range.start, Fault::TooLarge));
        }
        self.out.bytes.extend_from_slice(&self.file[range]);
        Ok(())
    }

    fn count(&mut self, kind: Kind) {
        self.n_fields += usize::from(kind == Kind::Model);
    }

    fn advance(&self, kind: Kind, start: usize, at: usize, by: u64, end: usize) -> Result<usize, WireError> {
        let available = (end - at) as u64;
        if by <= available {
            return Ok(at + usize::try_from(by).expect("at most the file's length"));
        }
        Err(self.error(kind, start, self.shortfall(end, by - available)))
    }

    fn varint(&self, kind: Kind, at: &mut usize, end: usize) -> Result<u64, WireError> {
        let start = *at;
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            if *at == end {
                return Err(self.error(kind, start, self.shortfall(end, 1)));
            }
            let byte = self.file[*at];
            *at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.error(kind, start, Fault::BadField))
    }

    fn shortfall(&self, end: usize, missing: u64) -> Fault {
        if end == self.file.len() { Fault::PastEnd { missing } } else { Fault::PastParent }
    }

    fn write_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.bytes.push(value as u8 & 0x7f | 0x80);
            value >>= 7;
        }
        self.out.bytes.push(value as u8);
    }

    fn error(&self, kind: Kind, offset: usize, fault: Fault) -> WireError {
        WireError { offset, message: kind.name(), n_fields: self.n_fields, fault }
    }
}

/// Decodes a run of packed varints.
pub(super) fn packed_varints(bytes: &[u8]) -> Option<Vec<u64>> {
    let mut values = Vec::with_capacity(bytes.len() / 2);
    let (mut value, mut shift) = (0u64, 0u32);
    for &byte in bytes {
        if shift > 63 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            values.push(value);
            (value, shift) = (0, 0);
        }
    }
    (shift == 0).then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn len_field(number: u32, body: &[u8]) -> Vec<u8> {
        let mut walk = Walk { file: &[], out: Compact::default(), n_fields: 0 };
        walk.write_varint(u64::from(number) << 3 | 2);
        walk.write_varint(body.len() as u64);
        walk.out.bytes.extend_from_slice(body);
        walk.out.bytes
    }

    /// A model of one graph with one initializer holding `payload` in `field`.
    fn model(field: u32, payload: &[u8]) -> Vec<u8> {
        len_field(7, &len_field(5, &len_field(field, payload)))
    }

    #[test]
    fn small_payloads_stay_and_large_ones_go() {
        let small = compact(&model(field::RAW, &[7; 100])).unwrap();
        assert!(small.payloads.is_empty());
        let file = model(field::RAW, &[7; 5000]);
        let large = compact(&file).unwrap();
        assert!(large.bytes.len() < 50);
        assert_eq!(large.payloads.len(), 1);
        assert_eq!(&file[large.payloads[0].ranges[0].clone()], &[7; 5000]);
    }

    #[test]
    fn raw_bytes_are_replaced_and_packed_numbers_are_appended() {
        let both = |field, first: usize, second: usize| {
            let tensor = [len_field(field, &vec![1; first]), len_field(field, &vec![2; second])].concat();
            compact(&len_field(7, &len_field(5, &tensor))).unwrap().payloads
        };
        assert_eq!(both(field::RAW, 5000, 10).len(), 0, "the later small value replaces the large one");
        assert_eq!(both(field::RAW, 5000, 2000)[0].ranges.len(), 1);
        assert_eq!(both(field::FLOAT, 5000, 12)[0].ranges.len(), 2);
        assert_eq!(both(field::FLOAT, 12, 5000)[0].ranges.len(), 1);
    }

    #[test]
    fn a_marker_in_the_file_is_dropped() {
        let forged = [0xf8, 0xff, 0xff, 0xff, 0x0f, 0x05];
        let out = compact(&len_field(7, &len_field(5, &forged))).unwrap();
        assert!(!out.bytes.windows(5).any(|window| window == &forged[..5]));
    }

    #[test]
    fn lengths_groups_and_nesting_are_checked() {
        let fault = |bytes: &[u8]| compact(bytes).unwrap_err().fault;
        assert_eq!(fault(&[0x3a, 0xff, 0xff, 0xff, 0xff, 0x7f]), Fault::PastEnd { missing: 0x7_ffff_ffff });
        assert_eq!(fault(&[0x3a, 0x02, 0x0a, 0x30, 0x08, 0x03]), Fault::PastParent);
        assert_eq!(fault(&[0x3b]), Fault::Group);
        assert_eq!(fault(&[0x00]), Fault::BadField);
        assert_eq!(fault(&[0xff; 12]), Fault::BadField);
        let mut nested = Vec::new();
        for _ in 0..100 {
            nested = len_field(1, &len_field(5, &len_field(6, &nested)));
        }
        assert_eq!(fault(&len_field(7, &nested)), Fault::TooDeep);
    }

    #[test]
    fn varints_decode() {
        assert_eq!(packed_varints(&[0x01, 0x96, 0x01]), Some(vec![1, 150]));
        assert_eq!(packed_varints(&[0x96]), None);
        assert_eq!(packed_varints(&[0xff; 11]), None);
    }
}
