//! What was fused in each model of `testdata/models`.

use super::workspace;
use std::fmt::Write;
use trainc::{ModelOptions, prepare_forward};
use trainc_passes::transform::fusions;

/// The head of the file that lists what was fused.
const HEAD: &str = "\
# What is fused

Made by `cargo bless` from the models of `testdata/models`, as `trainc inspect MODEL` shows it for yours; a test keeps it up to
date. The first table counts the composite operators of each model after fusion, however they were spelled in the file. The
second lists what looks like one and stays apart, with the reason.

";

/// The notes below the tables.
const NOTES: &str = "
## What a fused operator is

- `attention` is the softmax of scaled, masked scores times values. Its mask is causal (no operand), a value that is added to
  the scores, or both; the value may be trained, as the relative position bias of T5 is. Keys and values that are repeated for
  several query heads are read in place. A row that sees nothing is 0. There is no dropout between the weights and the values:
  an attention with dropout stays apart.
- A causal mask of finite numbers (`-10000`, the lowest float) next to another mask stays an operand where a row may have all
  its positions hidden: all of them would have weight again then.
- `rope` is the rotary embedding, of halves or of even and odd positions, by tables that are the same for all samples and heads.
- `layer_norm` and `rms_norm` go over the last axis. In half precision a normalization that the model computes in single
  precision between two casts is one operator too: its statistics are in single precision.
- `gelu` is exact (`erf`), or one of two approximations (`tanh`, `quick`: `x sigmoid(1.702 x)`). A SwiGLU or GEGLU is a `silu` or
  `gelu` and a product; the table counts those as gates. An operator of its own would save one tensor per layer, which the
  planner saves as well by computing the activation again.
- `cross_entropy` is a log-softmax and the lookup of the labels in it, under a sum or a mean over the rows that count.
";

/// The whole of `docs/fusion.md`.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn table() -> Result<String, String> {
    let folder = workspace().join("testdata/models");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .map_err(|error| error.to_string())?
        .map(|entry| entry.expect("the folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "onnx"))
        .collect();
    files.sort();
    let (mut fused, mut apart) = (String::new(), String::new());
    for path in files {
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        let bindings = [("*".to_owned(), 16)].into();
        let options = ModelOptions { model: path, bindings, ..ModelOptions::default() };
        let forward = match prepare_forward(&options, &mut |_| {}) {
            Ok(forward) => forward,
            Err(failure) => {
                let code = failure.diagnostics.first().map_or("", |diagnostic| diagnostic.code);
                writeln!(fused, "| `{name}` | not read yet: {code} |").expect("writing to a string does not fail");
                continue;
            }
        };
        let found = fusions(&forward.graph);
        let forms: Vec<_> = found
            .forms
            .iter()
            .map(|form| match form.details.is_empty() {
                true => format!("`{}` {}", form.name, form.count),
                false => format!("`{}` {} ({})", form.name, form.count, form.words()),
            })
            .collect();
        let forms = if forms.is_empty() { "-".to_owned() } else { forms.join(", ") };
        writeln!(fused, "| `{name}` | {forms} |").expect("writing to a string does not fail");
        for other in found.apart {
            writeln!(apart, "| `{name}` | `{}` {} | {} |", other.name, other.count, other.reason)
                .expect("writing to a string does not fail");
        }
    }
    Ok(format!(
        "{HEAD}| model | composite operators |\n| --- | --- |\n{fused}\n| model | looks like | stays apart because |\n\
         | --- | --- | --- |\n{apart}{NOTES}"
    ))
}
