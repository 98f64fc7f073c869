//! The text form: what is read is printed and read again, whatever is wrong with the graph.

use super::{Kind, Target};
use crate::corpus::seeds;
use trainc_ir::text::{parse, parse_training, print, print_training, read, read_training};

pub(super) const TARGET: Target =
    Target { name: "text", kind: Kind::Text, run, seeds: all_seeds, tokens: TOKENS, n_bounded: 22_000 };

fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok((graph, _)) = read("fuzz.ir", &text) {
        let printed = print(&graph);
        match read("printed.ir", &printed) {
            Ok((again, _)) => assert!(graph == again, "another graph is read from\n{printed}"),
            Err(errors) => panic!("{}\nin what was printed:\n{printed}", errors[0]),
        }
    }
    if let Ok((training, _)) = read_training("fuzz.ir", &text) {
        let printed = print_training(&training);
        match read_training("printed.ir", &printed) {
            Ok((again, _)) => assert!(training == again, "another graph is read from\n{printed}"),
            Err(errors) => panic!("{}\nin what was printed:\n{printed}", errors[0]),
        }
    }
    let _ = parse("fuzz.ir", &text);
    let _ = parse_training("fuzz.ir", &text);
}

/// Every golden file that is a graph.
pub(super) fn all_seeds() -> Vec<Vec<u8>> {
    let folders = [
        "parse",
        "verify",
        "ops",
        "transform/fold",
        "transform/canonicalize",
        "transform/fuse",
        "transform/loss",
        "transform/differentiate",
        "transform/optimizer",
    ];
    folders.iter().flat_map(|folder| seeds(folder, ".ir")).collect()
}

pub(super) const TOKENS: &[&str] = &[
    "graph",
    "training",
    "forward",
    "input",
    "output",
    "data",
    "label",
    "param",
    "buffer",
    "state",
    "grad_sum",
    "scalar",
    "prediction",
    "loss_sum",
    "loss_count",
    "gradient",
    "updated",
    "f32",
    "f16",
    "bf16",
    "f64",
    "i64",
    "i32",
    "i8",
    "u8",
    "bool",
    "splat",
    "dense",
    "bytes",
    "nan",
    "inf",
    "-inf",
    "0x7fc00001",
    "1e400",
    "-0.0",
    "true",
    "false",
    "constant",
    "matmul",
    "reshape",
    "transpose",
    "broadcast",
    "slice",
    "concat",
    "split",
    "pad",
    "gather",
    "reduce",
    "softmax",
    "attention",
    "rope",
    "cast",
    "select",
    "dropout",
    "topk",
    "cumsum",
    "conv",
    "max_pool",
    "opaque",
    "#input_grad",
    "#weight_grad",
    "shape",
    "axis",
    "axes",
    "perm",
    "starts",
    "ends",
    "steps",
    "sizes",
    "value",
    "@",
    "\"",
    "<",
    ">",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "=",
    ":",
    ",",
    ";",
    "v0",
    "v1",
    "n0",
    "w0",
    "\n",
    "\\u{1f600}",
    "18446744073709551615",
    "4294967295",
    "9223372036854775807",
    "-9223372036854775808",
];
