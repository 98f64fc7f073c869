//! From a path to a parsed model: mapping, sniffing, walking, parsing, and the checks on versions.

use super::code;
use super::wire::{self, Fault, Payload, WireError};
use memmap2::Mmap;
use onnx_protobuf::{Message, ModelProto, TensorProto};
use protobuf::CodedInputStream;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use trainc_ir::{Diagnostic, Diagnostics};

use super::tensor::Weight;

/// Oldest IR version with operator sets.
const MIN_IR_VERSION: i64 = 3;

/// Oldest operator set of the default domain that is read.
const MIN_OPSET: i64 = 7;

/// First byte of a model whose first field is its IR version, as all writers that follow the field order have it.
const IR_VERSION_TAG: u8 = 0x08;

/// First byte of a model whose first field is its graph.
const GRAPH_TAG: u8 = 0x3a;

/// The bytes of a model file: mapped, or held in memory.
#[derive(Debug)]
pub struct ModelBytes {
    path: PathBuf,
    content: Content,
    /// Data files that were opened for its tensors.
    opened: Mutex<BTreeSet<PathBuf>>,
}

#[derive(Debug)]
enum Content {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl ModelBytes {
    /// Maps a file.
    pub fn map(path: &Path) -> Result<Self, Diagnostic> {
        let failed = |reason: String| {
            Diagnostic::error(code::CANNOT_READ, format!("cannot read model file `{}`: {reason}", path.display()))
        };
        // Looked at before it is opened: opening a pipe waits for a writer.
        let kind = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?;
        if !kind.is_file() {
            let what = if kind.is_dir() { "it is a folder" } else { "it is no regular file" };
            let help = "give the ONNX file itself; what comes through a pipe has to be saved first, because weights are \
                        read from it later";
            return Err(failed(what.to_owned()).with_help(help));
        }
        let file = File::open(path).map_err(|error| failed(error.to_string()))?;
        let metadata = file.metadata().map_err(|error| failed(error.to_string()))?;
        let content = if metadata.len() == 0 {
            Content::Owned(Vec::new())
        } else {
            // SAFETY: the map is read-only and private. Another process that truncates the file while it is being
            // read can end this process, as with every mapping reader; no memory is corrupted by it.
            Content::Mapped(unsafe { Mmap::map(&file) }.map_err(|error| failed(error.to_string()))?)
        };
        Ok(Self { path: path.to_owned(), content, opened: Mutex::default() })
    }

    /// Bytes in memory that stand for the file `path`.
    pub fn from_vec(path: PathBuf, bytes: Vec<u8>) -> Self {
        Self { path, content: Content::Owned(bytes), opened: Mutex::default() }
    }

    /// Remembers that a data file was opened.
    pub(crate) fn note_opened(&self, path: &Path) {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
    }

    /// The data files that were opened so far, in order of their names.
    pub(crate) fn opened(&self) -> Vec<PathBuf> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match &self.content {
            Content::Mapped(map) => map,
            Content::Owned(bytes) => bytes,
        }
    }

    /// The file's path as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder that external data is relative to.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }
}

/// A parsed model whose large tensors are still in the file.
#[derive(Debug)]
pub(super) struct RawModel {
    pub(super) proto: ModelProto,
    pub(super) payloads: Vec<Payload>,
    pub(super) file: Arc<ModelBytes>,
}

impl RawModel {
    /// The tensor of a message of this model.
    pub(super) fn weight(&self, proto: &TensorProto) -> Result<Weight, Diagnostic> {
        Weight::new(proto, &self.file, &self.payloads)
    }

    /// Version of an operator domain that the model imports; `ai.onnx` is the default domain's other name.
    pub(super) fn opset(&self, domain: &str) -> Option<i64> {
        let same = |other: &str| other == domain || (domain.is_empty() && other == "ai.onnx");
        self.proto.opset_import.iter().find(|import| same(&import.domain)).map(|import| import.version)
    }
}

/// Reads the model at `path`.
pub(super) fn read_file(path: &Path) -> Result<RawModel, Diagnostics> {
    let file = ModelBytes::map(path).map_err(|diagnostic| vec![diagnostic])?;
    read_bytes(file)
}

/// Reads a model from bytes.
pub(super) fn read_bytes(file: ModelBytes) -> Result<RawModel, Diagnostics> {
    let shown = file.path().display().to_string();
    let bytes = file.as_slice();
    if bytes.is_empty() {
        let message = format!("model file `{shown}` is empty");
        return Err(vec![Diagnostic::error(code::EMPTY_FILE, message).with_help("export or download the model again")]);
    }
    if let Some(format) = other_format(bytes) {
        let diagnostic =
            Diagnostic::error(code::NOT_ONNX, format!("`{shown}` is not an ONNX model: it is {}", format.what));
        return Err(vec![diagnostic.with_help(format.help)]);
    }
    let compact = wire::compact(bytes).map_err(|error| vec![wire_diagnostic(&shown, bytes, &error)])?;
    let mut proto = ModelProto::new();
    let mut stream = CodedInputStream::from_bytes(&compact.bytes);
    stream.set_recursion_limit(wire::MAX_DEPTH + 1);
    proto.merge_from(&mut stream).map_err(|error| {
        let message = format!("model file `{shown}` breaks the protobuf encoding: {error}");
        vec![Diagnostic::error(code::MALFORMED, message).with_help("the file is damaged: export or download it again")]
    })?;
    let model = RawModel { proto, payloads: compact.payloads, file: Arc::new(file) };
    let problems = version_problems(&model, &shown);
    if problems.is_empty() { Ok(model) } else { Err(problems) }
}

struct OtherFormat {
    what: &'static str,
    help: &'static str,
}

/// Formats that people pass by mistake, by their first bytes.
fn other_format(bytes: &[u8]) -> Option<OtherFormat> {
    const EXPORT: &str = "export the model to ONNX first, for example with torch.onnx.export";
    let found = |what, help| Some(OtherFormat { what, help });
    match bytes {
        [b'P', b'K', 3 | 5, ..] => found(
            "a zip archive, as PyTorch's checkpoints and exported programs (.pt2) are",
            "pass the .onnx file; for a .pt2 program use that file extension",
        ),
        [0x1f, 0x8b, ..] => found("gzip data", "unpack it first"),
        [0x80, 2..=5, b'}' | b']' | b'c' | b'(' | b'\x95' | b'\x8a', ..] => found("a Python pickle", EXPORT),
        [0x89, b'H', b'D', b'F', ..] => found("an HDF5 file, as Keras saves", EXPORT),
        [b'G', b'G', b'U', b'F', ..] => found("a GGUF file", EXPORT),
        [_, _, _, _, b'T', b'F', b'L', b'3', ..] => found("a TensorFlow Lite model", EXPORT),
        [_, _, _, _, b'O', b'R', b'T', b'M', ..] => {
            found("a model in ONNX Runtime's own format", "pass the ONNX model that it was made from")
        }
        [_, _, _, _, _, _, _, 0, b'{', b'"', ..] => found("a safetensors file: weights without a graph", EXPORT),
        _ if bytes.starts_with(b"version https://git-lfs") => {
            found("a Git LFS pointer, not the file itself", "fetch it with `git lfs pull`")
        }
        _ if is_text(bytes) => found("text", "pass the binary .onnx file"),
        _ => None,
    }
}

/// Printable from the first byte on. A model starts with a field tag, which is a control character.
fn is_text(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(256)];
    head.len() >= 4
        && head.iter().all(|&byte| byte >= 0x20 && byte != 0x7f || matches!(byte, b'\t' | b'\n' | b'\r'))
        && head[0] < 0x80
}

fn wire_diagnostic(shown: &str, bytes: &[u8], error: &WireError) -> Diagnostic {
    let WireError { offset, message, n_fields, fault } = error;
    let length = bytes.len();
    let starts_like_a_model = matches!(bytes[0], IR_VERSION_TAG | GRAPH_TAG);
    let again = "the file is incomplete or damaged: export or download it again";
    let damaged = |what: &str| {
        let text = format!("model file `{shown}` is damaged: {what} in a {message} at byte {offset}");
        Diagnostic::error(code::MALFORMED, text).with_help(again)
    };
    match fault {
        Fault::PastEnd { missing } if *n_fields > 0 || starts_like_a_model && *missing < 1 << 40 => {
            let text = format!("model file `{shown}` is truncated: it ends after {length} bytes, inside a {message}");
            let text = format!("{text} that needs {missing} more");
            Diagnostic::error(code::TRUNCATED, text).with_help(again)
        }
        Fault::PastEnd { .. } | Fault::BadField | Fault::Group if *n_fields == 0 => {
            let text = format!("`{shown}` is not an ONNX model: its first bytes are not those of a protobuf message");
            Diagnostic::error(code::NOT_ONNX, text).with_help("pass a binary .onnx file")
        }
        Fault::PastEnd { missing } => damaged(&format!("a length that goes {missing} bytes past the end")),
        Fault::PastParent => damaged("a length that goes past the end of its message"),
        Fault::BadField => damaged("an invalid field"),
        Fault::Group => damaged("a protobuf group, which ONNX never uses,"),
        Fault::TooDeep => {
            let text =
                format!("model file `{shown}` nests messages more than {} deep at byte {offset}", wire::MAX_DEPTH);
            Diagnostic::error(code::TOO_DEEP, text)
        }
        Fault::TooLarge => damaged("more than 1 GiB of structure"),
    }
}

fn version_problems(model: &RawModel, shown: &str) -> Diagnostics {
    let proto = &model.proto;
    let mut problems = Vec::new();
    if proto.graph.is_none() {
        let text = format!("`{shown}` holds no graph");
        problems.push(
            Diagnostic::error(code::NO_GRAPH, text)
                .with_help("the file is incomplete, or a protobuf of another kind: pass a binary .onnx file"),
        );
        return problems;
    }
    if proto.ir_version < MIN_IR_VERSION {
        let found = proto.ir_version;
        let text = format!("`{shown}` has IR version {found}, expected {MIN_IR_VERSION} or newer");
        problems
            .push(Diagnostic::error(code::IR_VERSION, text).with_help("export the model again with a newer exporter"));
    }
    let help = format!("export the model again with opset {MIN_OPSET} or newer");
    match model.opset("") {
        Some(version) if version >= MIN_OPSET => {}
        Some(version) => {
            let text = format!("`{shown}` uses opset {version}, expected {MIN_OPSET} or newer");
            problems.push(Diagnostic::error(code::OPSET, text).with_help(help));
        }
        None if model.proto.opset_import.is_empty() => {
            let text = format!("`{shown}` imports no operator set, expected opset {MIN_OPSET} or newer");
            problems.push(Diagnostic::error(code::OPSET, text).with_help(help));
        }
        None => {}
    }
    problems
}
