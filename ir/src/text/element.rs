//! Single numbers: floats of every width as the shortest decimal that reads back to the same bits.

use crate::op::Real;
use crate::op::decode_i64;
use crate::ty::DType;

/// Spells a real attribute. It always reads back as a real, never as a whole number.
pub(super) fn real_text(real: Real) -> String {
    element_text(DType::F64, &real.get().to_le_bytes())
}

/// Reads a real attribute; `None` where the text is no real number.
pub(super) fn real_value(text: &str) -> Option<Real> {
    let bytes = element_bytes(DType::F64, text)?;
    Some(Real::new(f64::from_le_bytes(bytes.try_into().ok()?)))
}

/// Spells one element given as little-endian bytes, as many as the element type has.
pub(super) fn element_text(dtype: DType, bytes: &[u8]) -> String {
    let number = match dtype {
        DType::Bool => (bytes[0] != 0).to_string(),
        DType::U8 | DType::I8 | DType::I32 | DType::I64 => decode_i64(dtype, bytes).to_string(),
        DType::F16 => format!("{:?}", half::f16::from_le_bytes([bytes[0], bytes[1]]).to_f32()),
        DType::BF16 => format!("{:?}", half::bf16::from_le_bytes([bytes[0], bytes[1]]).to_f32()),
        DType::F32 => format!("{:?}", f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
        DType::F64 => format!("{:?}", f64::from_le_bytes(bytes.try_into().expect("a double has eight bytes"))),
    };
    let number = number.replace("NaN", "nan");
    if element_bytes(dtype, &number).as_deref() == Some(bytes) {
        return number;
    }
    let digits: String = bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{digits}")
}

/// Reads one element to little-endian bytes; `None` where the text is no number of this type.
pub(super) fn element_bytes(dtype: DType, text: &str) -> Option<Vec<u8>> {
    if let Some(digits) = text.strip_prefix("0x") {
        return hex_bits(dtype, digits);
    }
    match dtype {
        DType::Bool => text.parse::<bool>().ok().map(|b| vec![u8::from(b)]),
        DType::U8 => text.parse::<u8>().ok().map(|v| vec![v]),
        DType::I8 => text.parse::<i8>().ok().map(|v| v.to_le_bytes().to_vec()),
        DType::I32 => text.parse::<i32>().ok().map(|v| v.to_le_bytes().to_vec()),
        DType::I64 => text.parse::<i64>().ok().map(|v| v.to_le_bytes().to_vec()),
        DType::F16 => single(text).map(|v| half::f16::from_f32(v).to_le_bytes().to_vec()),
        DType::BF16 => single(text).map(|v| half::bf16::from_f32(v).to_le_bytes().to_vec()),
        DType::F32 => single(text).map(|v| v.to_le_bytes().to_vec()),
        DType::F64 if is_decimal(text) => text.parse::<f64>().ok().map(|v| v.to_le_bytes().to_vec()),
        DType::F64 => None,
    }
}

fn single(text: &str) -> Option<f32> {
    text.parse().ok().filter(|_| is_decimal(text))
}

/// Whether it is a spelling that the printer uses, not one of the others that the standard library reads.
fn is_decimal(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    matches!(text, "inf" | "nan") || text.starts_with(|c: char| c.is_ascii_digit())
}

/// The bits of an element, all of its digits.
fn hex_bits(dtype: DType, digits: &str) -> Option<Vec<u8>> {
    if digits.len() as u64 != 2 * dtype.bytes() || !digits.is_ascii() {
        return None;
    }
    let byte = |i: usize| u8::from_str_radix(digits.get(2 * i..2 * i + 2)?, 16).ok();
    (0..digits.len() / 2).rev().map(byte).collect()
}
