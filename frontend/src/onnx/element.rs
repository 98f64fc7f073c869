//! ONNX element types by number, and the IR types that hold them.

use trainc_ir::DType;

/// Names of `TensorProto.DataType`, indexed by number; newer numbers than the protobuf crate knows included.
const NAMES: [&str; 27] = [
    "undefined",
    "float",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "int32",
    "int64",
    "string",
    "bool",
    "float16",
    "double",
    "uint32",
    "uint64",
    "complex64",
    "complex128",
    "bfloat16",
    "float8e4m3fn",
    "float8e4m3fnuz",
    "float8e5m2",
    "float8e5m2fnuz",
    "uint4",
    "int4",
    "float4e2m1",
    "float8e8m0",
    "uint2",
    "int2",
];

/// The IR's element type for an ONNX number; `Err` gives the words for a diagnostic.
pub(super) fn dtype(number: i32) -> Result<DType, String> {
    Ok(match number {
        1 => DType::F32,
        2 => DType::U8,
        3 => DType::I8,
        6 => DType::I32,
        7 => DType::I64,
        9 => DType::Bool,
        10 => DType::F16,
        11 => DType::F64,
        16 => DType::BF16,
        _ => return Err(describe(number)),
    })
}

/// `uint16 (4)`.
pub(super) fn describe(number: i32) -> String {
    match usize::try_from(number).ok().and_then(|index| NAMES.get(index)) {
        Some(name) => format!("{name} ({number})"),
        None => format!("number {number}, which no known version of ONNX defines"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onnx_protobuf::tensor_proto::DataType;
    use protobuf::Enum;

    /// The numbers come from ONNX's own enum in the protobuf crate.
    #[test]
    fn names_agree_with_the_protobuf_enum() {
        for value in DataType::VALUES {
            assert_eq!(NAMES[value.value() as usize], format!("{value:?}").to_lowercase());
        }
        assert_eq!(dtype(16), Ok(DType::BF16));
        assert_eq!(dtype(13).unwrap_err(), "uint64 (13)");
        assert!(dtype(99).unwrap_err().contains("99"));
    }
}
