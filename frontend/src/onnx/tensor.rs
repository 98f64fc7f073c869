//! Tensors of a model: their types, and their bytes when somebody asks for them.

use super::element;
use super::read::ModelBytes;
use super::wire::{Payload, field, packed_varints};
use super::{code, wire};
use onnx_protobuf::TensorProto;
use onnx_protobuf::tensor_proto::DataLocation;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use trainc_ir::{DType, Diagnostic, Place, Type};

/// A named tensor of the model whose bytes stay where they are until [`Weight::read_bytes`].
#[derive(Clone, Debug)]
pub struct Weight {
    name: String,
    ty: Type,
    source: Source,
    file: Arc<ModelBytes>,
}

/// Where the bytes of a tensor are.
#[derive(Clone, Debug)]
enum Source {
    /// Here, in the IR's little-endian form.
    Inline(Arc<[u8]>),
    /// In the model file, in the IR's little-endian form.
    InFile(Range<usize>),
    /// In the model file as packed numbers of a typed field, after some that are decoded already.
    Packed { head: Vec<u8>, payload: Payload },
    /// In another file.
    External { location: String, offset: u64, length: Option<u64> },
    /// Nowhere: the model was saved without its weights.
    Absent,
}

impl Weight {
    /// The tensor of a message. Only sizes are looked at; the bytes stay untouched.
    pub(super) fn new(proto: &TensorProto, file: &Arc<ModelBytes>, payloads: &[Payload]) -> Result<Self, Diagnostic> {
        let name = &proto.name;
        let dtype = element::dtype(proto.data_type).map_err(|found| {
            tensor_error(code::ELEMENT_TYPE, name, format!("tensor `{name}` has element type {found}"))
                .with_note("trainc knows bool, uint8, int8, int32, int64, float16, bfloat16, float and double")
        })?;
        let shape =
            proto.dims.iter().map(|&dim| u64::try_from(dim)).collect::<Result<Vec<u64>, _>>().map_err(|_| {
                let dims = &proto.dims;
                tensor_error(code::BAD_TENSOR, name, format!("tensor `{name}` has a negative dimension in {dims:?}"))
            })?;
        let ty = Type::new(dtype, shape);
        let fits = ty.checked_elements().is_some_and(|n| n < 1 << 47);
        if !fits {
            let message = format!("tensor `{name}` of type {ty} is larger than any memory");
            return Err(tensor_error(code::BAD_TENSOR, name, message));
        }
        let source = source(proto, dtype, &marked(proto, payloads))?;
        let weight = Self { name: name.clone(), ty, source, file: Arc::clone(file) };
        weight.check_length()?;
        Ok(weight)
    }

    /// Its name in the model.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its type.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// Whether the model gives it bytes, in its own file or another; false for models saved without weights.
    pub fn has_data(&self) -> bool {
        !matches!(self.source, Source::Absent)
    }

    /// The file that should hold its bytes, where there is no such file: models are passed on without their weights.
    pub fn missing_file(&self) -> Option<PathBuf> {
        let Source::External { location, offset: _, length: _ } = &self.source else { return None };
        self.external_path(location).ok().filter(|path| path.try_exists().is_ok_and(|exists| !exists))
    }

    /// The elements as little-endian bytes of the IR's element type, row-major.
    pub fn read_bytes(&self) -> Result<Vec<u8>, Diagnostic> {
        let bytes = match &self.source {
            Source::Inline(bytes) => bytes.to_vec(),
            Source::InFile(range) => self.file.as_slice()[range.clone()].to_vec(),
            Source::Packed { head, payload } => self.unpack(head, payload)?,
            Source::External { location, offset, length } => self.read_external(location, *offset, *length)?,
            Source::Absent => {
                let message = format!("tensor `{}` carries no data: the model was saved without weights", self.name);
                return Err(tensor_error(code::EXTERNAL_DATA, &self.name, message));
            }
        };
        if bytes.len() as u64 != self.ty.bytes() {
            return Err(self.wrong_length(bytes.len() as u64));
        }
        if self.ty.dtype == DType::Bool {
            return Ok(bytes.into_iter().map(|byte| u8::from(byte != 0)).collect());
        }
        Ok(bytes)
    }

    /// Compares the length with the type where it is known without decoding.
    fn check_length(&self) -> Result<(), Diagnostic> {
        let length = match &self.source {
            Source::Inline(bytes) => bytes.len() as u64,
            Source::InFile(range) => range.len() as u64,
            Source::Packed { .. } | Source::External { .. } | Source::Absent => return Ok(()),
        };
        if length == self.ty.bytes() { Ok(()) } else { Err(self.wrong_length(length)) }
    }

    fn wrong_length(&self, found: u64) -> Diagnostic {
        let (name, ty, expected) = (&self.name, &self.ty, self.ty.bytes());
        let message = format!("tensor `{name}` of type {ty} needs {expected} bytes, found {found}");
        tensor_error(code::BAD_TENSOR, name, message)
    }

    fn unpack(&self, head: &[u8], payload: &Payload) -> Result<Vec<u8>, Diagnostic> {
        let mut bytes = head.to_vec();
        for range in &payload.ranges {
            let chunk = &self.file.as_slice()[range.clone()];
            match payload.field {
                field::FLOAT | field::DOUBLE => bytes.extend_from_slice(chunk),
                _ => {
                    let values = packed_varints(chunk).ok_or_else(|| {
                        let message = format!("tensor `{}` holds a broken packed number", self.name);
                        tensor_error(code::BAD_TENSOR, &self.name, message)
                    })?;
                    push_integers(&mut bytes, self.ty.dtype, values.into_iter().map(|value| value as i64));
                }
            }
        }
        Ok(bytes)
    }

    /// Where a data file is, which must be below the model's folder.
    fn external_path(&self, location: &str) -> Result<PathBuf, Diagnostic> {
        let name = &self.name;
        let relative = Path::new(location);
        let inside = relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !inside || location.is_empty() || location.starts_with('*') {
            let message =
                format!("tensor `{name}` names external data `{location}`, which is not below the model's folder");
            return Err(tensor_error(code::EXTERNAL_PATH, name, message)
                .with_help("save the model again with its data file beside it"));
        }
        Ok(self.file.folder().join(relative))
    }

    fn read_external(&self, location: &str, offset: u64, length: Option<u64>) -> Result<Vec<u8>, Diagnostic> {
        let name = &self.name;
        let path = self.external_path(location)?;
        let expected = self.ty.bytes();
        if length.is_some_and(|length| length != expected) {
            return Err(self.wrong_length(length.unwrap_or_default()));
        }
        let failed = |reason: String| {
            let shown = path.display();
            let message = format!("the data of tensor `{name}` cannot be read from `{shown}`: {reason}");
            tensor_error(code::EXTERNAL_DATA, name, message)
                .with_help(format!("put the data file `{location}` beside the model file"))
        };
        // Looked at before it is opened: opening a pipe waits for a writer.
        if std::fs::metadata(&path).is_ok_and(|of| !of.is_file()) {
            return Err(failed("it is no regular file".into()));
        }
        let mut file = File::open(&path).map_err(|error| failed(error.to_string()))?;
        self.file.note_opened(&path);
        let size = file.metadata().map_err(|error| failed(error.to_string()))?.len();
        if offset.checked_add(expected).is_none_or(|end| end > size) {
            return Err(failed(format!("{expected} bytes at offset {offset} expected, the file has {size}")));
        }
        let mut bytes = vec![0; usize::try_from(expected).map_err(|_| failed("too large".into()))?];
        file.seek(SeekFrom::Start(offset)).map_err(|error| failed(error.to_string()))?;
        file.read_exact(&mut bytes).map_err(|error| failed(error.to_string()))?;
        Ok(bytes)
    }
}

/// The payloads that the walk left in the file for this tensor.
fn marked<'a>(proto: &TensorProto, payloads: &'a [Payload]) -> Vec<&'a Payload> {
    let unknown = proto.special_fields.unknown_fields();
    unknown
        .iter()
        .filter(|&(number, _)| number == wire::MARKER)
        .filter_map(|(_, value)| match value {
            protobuf::UnknownValueRef::Varint(index) => payloads.get(usize::try_from(index).ok()?),
            protobuf::UnknownValueRef::Fixed32(_)
            | protobuf::UnknownValueRef::Fixed64(_)
            | protobuf::UnknownValueRef::LengthDelimited(_) => None,
        })
        .collect()
}

fn source(proto: &TensorProto, dtype: DType, elided: &[&Payload]) -> Result<Source, Diagnostic> {
    if proto.data_location.enum_value() == Ok(DataLocation::EXTERNAL) {
        return external(proto);
    }
    if let Some(raw) = elided.iter().find(|payload| payload.field == field::RAW) {
        return Ok(Source::InFile(raw.ranges[0].clone()));
    }
    if !proto.raw_data.is_empty() {
        return Ok(Source::Inline(proto.raw_data.as_slice().into()));
    }
    let (wanted, head) = typed(proto, dtype);
    if let Some(&payload) = elided.iter().find(|payload| payload.field == wanted) {
        return Ok(Source::Packed { head, payload: payload.clone() });
    }
    if head.is_empty() && !proto.dims.contains(&0) { Ok(Source::Absent) } else { Ok(Source::Inline(head.into())) }
}

/// The typed field that holds elements of `dtype`, and those of its elements that were parsed.
fn typed(proto: &TensorProto, dtype: DType) -> (u32, Vec<u8>) {
    let mut bytes = Vec::new();
    let field = match dtype {
        DType::F32 => {
            bytes.extend(proto.float_data.iter().flat_map(|value| value.to_le_bytes()));
            field::FLOAT
        }
        DType::F64 => {
            bytes.extend(proto.double_data.iter().flat_map(|value| value.to_le_bytes()));
            field::DOUBLE
        }
        DType::I64 => {
            push_integers(&mut bytes, dtype, proto.int64_data.iter().copied());
            field::INT64
        }
        DType::Bool | DType::U8 | DType::I8 | DType::I32 | DType::F16 | DType::BF16 => {
            push_integers(&mut bytes, dtype, proto.int32_data.iter().map(|&value| i64::from(value)));
            field::INT32
        }
    };
    (field, bytes)
}

/// Appends integers (or the bit patterns of 16-bit floats) in the width of `dtype`.
fn push_integers(bytes: &mut Vec<u8>, dtype: DType, values: impl Iterator<Item = i64>) {
    let width = usize::try_from(dtype.bytes()).expect("at most 8");
    for value in values {
        bytes.extend_from_slice(&value.to_le_bytes()[..width]);
    }
}

fn external(proto: &TensorProto) -> Result<Source, Diagnostic> {
    let name = &proto.name;
    let entry = |key: &str| proto.external_data.iter().rev().find(|entry| entry.key == key).map(|entry| &entry.value);
    let number = |key: &str| match entry(key) {
        None => Ok(None),
        Some(text) => text.parse::<u64>().map(Some).map_err(|_| {
            let message =
                format!("tensor `{name}` has external data with {key} `{text}`, which is not a number of bytes");
            tensor_error(code::BAD_TENSOR, name, message)
        }),
    };
    let location = entry("location").cloned().unwrap_or_default();
    Ok(Source::External { location, offset: number("offset")?.unwrap_or(0), length: number("length")? })
}

fn tensor_error(code: &'static str, name: &str, message: String) -> Diagnostic {
    Diagnostic::error(code, message).at(Place::Model { kind: "tensor", name: name.to_owned() }, "this tensor")
}

#[cfg(test)]
mod tests {
    use super::*;
    use onnx_protobuf::StringStringEntryProto;

    fn weight(proto: &TensorProto) -> Result<Weight, Diagnostic> {
        let file = Arc::new(ModelBytes::from_vec(PathBuf::from("/nonexistent/m.onnx"), Vec::new()));
        Weight::new(proto, &file, &[])
    }

    fn proto(data_type: i32, dims: &[i64]) -> TensorProto {
        TensorProto { name: "w".into(), data_type, dims: dims.to_vec(), ..Default::default() }
    }

    /// Half 1.0 is 0x3c00 and bfloat16 -2.0 is 0xc000 by their definitions.
    #[test]
    fn typed_fields_decode_to_little_endian() {
        let half = TensorProto { int32_data: vec![0x3c00], ..proto(10, &[1]) };
        assert_eq!(weight(&half).unwrap().read_bytes().unwrap(), [0x00, 0x3c]);
        let brain = TensorProto { int32_data: vec![0xc000], ..proto(16, &[]) };
        assert_eq!(weight(&brain).unwrap().read_bytes().unwrap(), [0x00, 0xc0]);
        let truth = TensorProto { int32_data: vec![0, 7], ..proto(9, &[2]) };
        assert_eq!(weight(&truth).unwrap().read_bytes().unwrap(), [0, 1]);
        let long = TensorProto { int64_data: vec![-2], ..proto(7, &[1]) };
        assert_eq!(weight(&long).unwrap().read_bytes().unwrap(), (-2i64).to_le_bytes());
    }

    #[test]
    fn sizes_are_checked_without_reading() {
        assert_eq!(weight(&TensorProto { raw_data: vec![0; 7], ..proto(1, &[2]) }).unwrap_err().code, code::BAD_TENSOR);
        assert_eq!(weight(&proto(1, &[-1])).unwrap_err().code, code::BAD_TENSOR);
        assert_eq!(weight(&proto(1, &[1 << 40, 1 << 40])).unwrap_err().code, code::BAD_TENSOR);
        assert_eq!(weight(&proto(13, &[1])).unwrap_err().code, code::ELEMENT_TYPE);
        assert!(!weight(&proto(1, &[1 << 40])).unwrap().has_data());
        assert!(weight(&proto(1, &[0])).unwrap().read_bytes().unwrap().is_empty());
    }

    #[test]
    fn external_data_is_looked_for_only_when_read() {
        let external = |location: &str| {
            let entry = StringStringEntryProto { key: "location".into(), value: location.into(), ..Default::default() };
            let mut tensor = proto(1, &[2]);
            tensor.data_location = DataLocation::EXTERNAL.into();
            tensor.external_data = vec![entry];
            weight(&tensor).unwrap()
        };
        let absent = external("m.bin");
        assert_eq!(absent.missing_file().as_deref(), Some(Path::new("/nonexistent/m.bin")));
        let missing = absent.read_bytes().unwrap_err();
        assert_eq!(missing.code, code::EXTERNAL_DATA);
        assert!(missing.message.contains("/nonexistent/m.bin") && missing.message.contains("`w`"), "{missing}");
        for escape in ["../m.bin", "/etc/passwd", "a/../../b", "", "*/_ORT_MEM_ADDR_/*"] {
            let outside = external(escape);
            assert_eq!(outside.missing_file(), None, "{escape}");
            assert_eq!(outside.read_bytes().unwrap_err().code, code::EXTERNAL_PATH, "{escape}");
        }
    }
}
