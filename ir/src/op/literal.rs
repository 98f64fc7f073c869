//! Constant data held in the graph: one repeated element, or all of them.

use crate::ty::{DType, Type};

/// Constant data of a [`Type`]: little-endian bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Literal {
    /// The type.
    pub ty: Type,
    /// The elements.
    pub data: LiteralData,
}

/// How the elements of a [`Literal`] are held.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LiteralData {
    /// Every element has these bytes (as many as the element type has).
    Splat(Vec<u8>),
    /// All elements in row-major order.
    Dense(Vec<u8>),
}

impl Literal {
    /// A literal whose elements all equal `value`, rounded to the element type.
    pub fn splat_f64(ty: Type, value: f64) -> Self {
        let data = LiteralData::Splat(encode_f64(ty.dtype, value));
        Self { ty, data }
    }

    /// A literal whose elements all equal `value`.
    pub fn splat_i64(ty: Type, value: i64) -> Self {
        let data = LiteralData::Splat(encode_i64(ty.dtype, value));
        Self { ty, data }
    }

    /// A literal of all elements given as little-endian bytes, held as a splat where they are all equal.
    /// `None` where the number of bytes is not that of the type.
    pub fn from_bytes(ty: Type, bytes: Vec<u8>) -> Option<Self> {
        let element = ty.dtype.bytes() as usize;
        let wanted = ty.checked_elements()?.checked_mul(element as u64)?;
        if bytes.len() as u64 != wanted {
            return None;
        }
        let data = match bytes.get(..element) {
            Some(first) if bytes.chunks_exact(element).all(|e| e == first) => LiteralData::Splat(first.to_vec()),
            _ => LiteralData::Dense(bytes),
        };
        Some(Self { ty, data })
    }

    /// An i64 vector.
    pub fn from_i64s(values: &[i64]) -> Self {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Self::from_bytes(Type::new(DType::I64, [values.len() as u64]), bytes).expect("eight bytes per element")
    }

    /// All elements as little-endian bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        match &self.data {
            LiteralData::Splat(element) => element.repeat(self.ty.elements() as usize),
            LiteralData::Dense(bytes) => bytes.clone(),
        }
    }

    /// The bytes of element `index` in row-major order, or `None` past the end.
    pub fn element(&self, index: u64) -> Option<&[u8]> {
        if index >= self.ty.elements() {
            return None;
        }
        match &self.data {
            LiteralData::Splat(element) => Some(element),
            LiteralData::Dense(bytes) => {
                let n = self.ty.dtype.bytes() as usize;
                bytes.chunks_exact(n).nth(index as usize)
            }
        }
    }

    /// All elements as i64 (floats are truncated toward zero).
    pub fn to_i64s(&self) -> Vec<i64> {
        self.decode(decode_i64)
    }

    /// All elements as f64.
    pub fn to_f64s(&self) -> Vec<f64> {
        self.decode(decode_f64)
    }

    /// The one value that all elements have, as f64; `None` for mixed or empty data.
    pub fn uniform_f64(&self) -> Option<f64> {
        match &self.data {
            LiteralData::Splat(element) if self.ty.elements() > 0 => Some(decode_f64(self.ty.dtype, element)),
            LiteralData::Splat(_) | LiteralData::Dense(_) => None,
        }
    }

    fn decode<T: Clone>(&self, read: impl Fn(DType, &[u8]) -> T) -> Vec<T> {
        match &self.data {
            LiteralData::Splat(element) => {
                vec![read(self.ty.dtype, element); self.ty.elements() as usize]
            }
            LiteralData::Dense(bytes) => {
                bytes.chunks_exact(self.ty.dtype.bytes() as usize).map(|e| read(self.ty.dtype, e)).collect()
            }
        }
    }
}

/// Little-endian bytes of `value` in the element type; floats round to nearest even, integers truncate.
pub fn encode_f64(dtype: DType, value: f64) -> Vec<u8> {
    match dtype {
        DType::Bool => vec![u8::from(value != 0.0)],
        DType::U8 => vec![value as u8],
        DType::I8 => (value as i8).to_le_bytes().to_vec(),
        DType::I32 => (value as i32).to_le_bytes().to_vec(),
        DType::I64 => (value as i64).to_le_bytes().to_vec(),
        DType::F16 => half::f16::from_f64(value).to_le_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f64(value).to_le_bytes().to_vec(),
        DType::F32 => (value as f32).to_le_bytes().to_vec(),
        DType::F64 => value.to_le_bytes().to_vec(),
    }
}

/// Little-endian bytes of `value` in the element type; integers wrap.
pub fn encode_i64(dtype: DType, value: i64) -> Vec<u8> {
    match dtype {
        DType::Bool => vec![u8::from(value != 0)],
        DType::U8 => vec![value as u8],
        DType::I8 => (value as i8).to_le_bytes().to_vec(),
        DType::I32 => (value as i32).to_le_bytes().to_vec(),
        DType::I64 => value.to_le_bytes().to_vec(),
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => encode_f64(dtype, value as f64),
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[..N]);
    out
}

/// The element as f64.
pub fn decode_f64(dtype: DType, bytes: &[u8]) -> f64 {
    match dtype {
        DType::Bool | DType::U8 | DType::I8 | DType::I32 | DType::I64 => decode_i64(dtype, bytes) as f64,
        DType::F16 => half::f16::from_le_bytes(array(bytes)).to_f64(),
        DType::BF16 => half::bf16::from_le_bytes(array(bytes)).to_f64(),
        DType::F32 => f64::from(f32::from_le_bytes(array(bytes))),
        DType::F64 => f64::from_le_bytes(array(bytes)),
    }
}

/// The element as i64; floats are truncated toward zero.
pub fn decode_i64(dtype: DType, bytes: &[u8]) -> i64 {
    match dtype {
        DType::Bool => i64::from(bytes[0] != 0),
        DType::U8 => i64::from(bytes[0]),
        DType::I8 => i64::from(i8::from_le_bytes(array(bytes))),
        DType::I32 => i64::from(i32::from_le_bytes(array(bytes))),
        DType::I64 => i64::from_le_bytes(array(bytes)),
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => decode_f64(dtype, bytes) as i64,
    }
}
