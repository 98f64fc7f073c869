//! The codes of this frontend's diagnostics, each with the line that `trainc explain` prints.

/// A diagnostic code and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeInfo {
    /// The code as printed.
    pub code: &'static str,
    /// One line on what it means and what to do.
    pub meaning: &'static str,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $meaning:literal;)*) => {
        $(#[doc = $meaning] pub(crate) const $name: &str = $code;)*
        /// Every code of the ONNX frontend, in ascending order.
        pub const ONNX_CODES: &[CodeInfo] = &[$(CodeInfo { code: $code, meaning: $meaning },)*];
    };
}

codes! {
    CANNOT_READ = "E0101", "the model file cannot be opened or mapped: check the path and its permissions";
    EMPTY_FILE = "E0102", "the model file has no bytes: the export or the download did not finish";
    NOT_ONNX = "E0103", "the file is not an ONNX protobuf: it is of another format, which the message names where it is known";
    TRUNCATED = "E0104", "the file ends in the middle of a field: the copy or download is incomplete";
    MALFORMED = "E0105", "the bytes look like ONNX but break the protobuf encoding: the file is damaged";
    TOO_DEEP = "E0106", "graphs or types are nested deeper than any real model: the file is damaged or hostile";
    IR_VERSION = "E0107", "the model's IR version is missing or older than 3, the first one with typed operator sets";
    OPSET = "E0108", "the operator set of the default domain is missing or older than 7: export again with a newer opset";
    NO_GRAPH = "E0109", "the model holds no graph, or a graph without outputs: there is nothing to compile";
    ELEMENT_TYPE = "E0110", "a tensor has an element type that trainc has no representation for";
    BAD_TENSOR = "E0111", "a tensor's bytes do not match its declared dimensions and element type";
    EXTERNAL_PATH = "E0112", "an external data location is not a relative path below the model's folder";
    EXTERNAL_DATA = "E0113", "the bytes of a tensor are needed and its external data file is missing or too short";
    DUPLICATE_NAME = "E0114", "two producers in one scope give the same value name: a graph must be in single assignment form";
    MISSING_VALUE = "E0115", "a node or output uses a value that nothing produces";
    CYCLE = "E0116", "nodes depend on each other in a circle: no order of execution exists";
    UNBOUND_SYMBOL = "E0117", "an input dimension has no number: bind it with --bind NAME=N";
    UNKNOWN_BINDING = "E0118", "a --bind name matches no dimension of the model: the message lists those that exist";
    IMPOSSIBLE_BINDING = "E0119", "a bound dimension contradicts the model (zero, or larger than a table, or two sizes for one axis)";
    UNSUPPORTED_OP = "E0120", "the model uses operators that trainc does not know; all of them are listed with counts";
    BAD_ATTRIBUTE = "E0121", "a node's attribute is missing, of another type, or out of range";
    BAD_SHAPE = "E0122", "the shapes of a node's inputs contradict its operator's rules";
    DATA_DEPENDENT = "E0123", "a shape or axis depends on data that is known only at run time";
    UNSUPPORTED_FORM = "E0124", "a known operator is used in a form that trainc does not support";
    BAD_ARITY = "E0125", "a node has fewer inputs or outputs than its operator needs";
    OPAQUE_OP = "E0126", "an unknown operator was kept as opaque: the model can be estimated, not trained";
    FUNCTION_DEPTH = "E0127", "model functions call each other in a circle or too deep";
    NOT_IN_GRAPH = "E0128", "an input or output of the model is of a kind (sequence, map, optional) that trainc has no representation for";
    NOT_TRAINED = "E0129", "float tensors that are tables or lifted constants of the program, not weights, are not trained";
    FROZEN_STATISTICS = "N0130", "batch normalization in inference mode uses stored statistics, which training leaves as they are: export in training mode to train with those of each micro-batch";
    SHARED_VECTORS = "N0131", "layers share a bias or a scale in the file, and train it as one: exporters merge what is equal";
}

#[cfg(test)]
mod tests {
    use super::ONNX_CODES;

    #[test]
    fn codes_ascend_and_say_something() {
        for pair in ONNX_CODES.windows(2) {
            assert!(pair[0].code[1..] < pair[1].code[1..], "{} before {}", pair[0].code, pair[1].code);
        }
        for info in ONNX_CODES {
            assert!(info.code.starts_with(['E', 'N']) && info.code[1..].starts_with("01"), "{info:?}");
            assert!(info.meaning.len() > 30, "{info:?}");
        }
    }
}
