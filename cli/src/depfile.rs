//! Dependency files in the syntax that Make and Ninja read.

use crate::failure::{BAD_OPTION, Failure};
use std::path::{Path, PathBuf};
use trainc_ir::Diagnostic;

/// A rule that makes the target depend on the inputs, and an empty rule for each input, so that Make does not stop where
/// one has gone.
///
/// # Errors
/// A name that the syntax cannot spell.
pub fn dep_file(target: &Path, inputs: &[PathBuf]) -> Result<Vec<u8>, Failure> {
    let mut names: Vec<Vec<u8>> = Vec::new();
    for input in inputs {
        let name = escaped(input)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut out = escaped(target)?;
    out.push(b':');
    for name in &names {
        out.extend_from_slice(b" \\\n  ");
        out.extend_from_slice(name);
    }
    out.push(b'\n');
    for name in &names {
        out.push(b'\n');
        out.extend_from_slice(name);
        out.extend_from_slice(b":\n");
    }
    Ok(out)
}

/// The name as GCC writes it: blanks and `#` with a backslash, backslashes before them doubled, `$` doubled.
fn escaped(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::new();
    let mut n_backslashes = 0;
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'\n' | b'\r' => {
                let message =
                    format!("`{}` cannot stand in a dependency file: its name has a line break", path.display());
                let help = "rename it, or leave out --dep-file";
                return Err(Failure::usage(Diagnostic::error(BAD_OPTION, message).with_help(help)));
            }
            b' ' | b'\t' | b'#' => {
                out.extend(std::iter::repeat_n(b'\\', n_backslashes + 1));
            }
            b'$' => out.push(b'$'),
            _ => {}
        }
        n_backslashes = if byte == b'\\' { n_backslashes + 1 } else { 0 };
        out.push(byte);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The spelling is that of `gcc -MD -MP` for files of these names.
    #[test]
    fn names_are_spelled_as_make_reads_them() {
        let inputs = ["m.onnx", "my model.onnx", "a#b$c", "back\\slash", "back\\ blank", "m.onnx"].map(PathBuf::from);
        let text = dep_file(Path::new("out dir/plan.json"), &inputs).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "out\\ dir/plan.json: \\\n  m.onnx \\\n  my\\ model.onnx \\\n  a\\#b$$c \\\n  back\\slash \\\n  back\\\\\\ blank\n\
             \nm.onnx:\n\nmy\\ model.onnx:\n\na\\#b$$c:\n\nback\\slash:\n\nback\\\\\\ blank:\n"
        );
        assert!(dep_file(Path::new("a\nb"), &[]).is_err());
        assert_eq!(dep_file(Path::new("a"), &[]).unwrap(), b"a:\n");
    }
}
