//! Small inputs that ask for much: sizes, counts and trips at the ends of their ranges.

use crate::onnx_model;

/// Inputs of a target that a reader must refuse or read in little memory, with their names.
pub fn greedy_inputs(target: &str) -> Vec<(&'static str, Vec<u8>)> {
    let text =
        |inputs: &[(&'static str, &str)]| inputs.iter().map(|(name, text)| (*name, text.as_bytes().to_vec())).collect();
    match target {
        "onnx" => onnx_model::greedy(),
        "text" | "passes" => text(&[
            (
                "splat",
                "graph \"g\" {\n v0 = constant() value=<f32[4294967296] splat 0> : f32[4294967296]\n output prediction \"y\" v0\n}",
            ),
            ("dense", "graph \"g\" {\n v0 = constant() value=<f32[9223372036854775807] dense 0> : f32[1]\n}"),
            ("value", "graph \"g\" {\n v4294967294 = input data \"x\" : f32[1]\n}"),
            ("use", "graph \"g\" {\n output prediction \"x\" v4294967294\n}"),
            ("node", "graph \"g\" {\n n4294967294: v0 = relu(v0) : f32[1]\n}"),
            ("forward", "training {\n forward 18446744073709551615\n graph \"g\" {\n }\n graph \"u\" {\n }\n}"),
            (
                "anchor",
                "training {\n forward 0\n graph \"g\" {\n v0 = relu(v0) : f32[1] #input_grad n4294967294\n }\n graph \"u\" {\n }\n}",
            ),
            ("brackets", "graph \"g\" {\n v0 = reshape(v0) shape=[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["),
            (
                "fill",
                "graph \"g\" {\n v0 = constant() value=<f32[65536,65536] splat 1> : f32[65536,65536]\n v1 = cumsum(v0) axis=1 exclusive=false reverse=false : f32[65536,65536]\n output prediction \"y\" v1\n}",
            ),
            (
                "split",
                "graph \"g\" {\n v0 = constant() value=<i64[4194304] splat 1> : i64[4194304]\n v1 = cumsum(v0) axis=0 exclusive=false reverse=false : i64[4194304]\n output prediction \"y\" v1\n}",
            ),
        ]),
        "plan" => text(&[
            ("nothing", "{}"),
            ("format", "{\"format\":18446744073709551615}"),
            ("brackets", "{\"format\":1,\"header\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["),
            ("numbers", "{\"format\":1,\"micro_batches\":1e308}"),
            ("protobuf", "\u{8}\u{1}\u{18}\u{7f}"),
        ]),
        "cluster" => text(&[
            ("nodes", "name=\"c\"\n[[group]]\nname=\"a\"\ngpu=\"T4\"\nnodes=4294967295\ngpus_per_node=4294967295\n"),
            ("larger", "name=\"c\"\n[[group]]\nname=\"a\"\ngpu=\"T4\"\nnodes=9223372036854775807\ngpus_per_node=1\n"),
            ("rate", "name=\"c\"\n[network]\nbandwidth_gbps=1e308\nlatency_us=1e308\n"),
            ("arrays", "a=[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["),
            ("keys", "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=1"),
        ]),
        _ => Vec::new(),
    }
}
