//! `trainc profile`: measures the kernels of this machine's processor by kind and size, in the form that `--profile` reads.

use crate::args::ProfileArgs;
use crate::output::Output;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};
use trainc::{BAD_OPTION, Failure, INTERNAL_ERROR};
use trainc_backend::{Context, Tensor, interpret, write_file};
use trainc_ir::op::{Attention, Contraction, Elementwise, Real};
use trainc_ir::{DType, Diagnostic, Graph, GraphBuilder, InputRole, Op, OutputRole, Type};

/// Runs of each kernel, of which the fastest counts.
const RUNS: u32 = 3;

/// Kernels of one kind by rising size, and what their size is counted in.
struct Kind {
    key: &'static str,
    kernels: Vec<Kernel>,
    counts_bytes: bool,
}

struct Kernel {
    graph: Graph,
    flops: u64,
    bytes: u64,
}

/// Measures and writes the profile.
pub(crate) fn run(args: &ProfileArgs, output: Output) -> Result<(), Failure> {
    let text = profile(&args.gpu, Duration::from_millis(args.limit_ms))?;
    let Some(file) = &args.output else {
        output.asked(&text);
        return Ok(());
    };
    write_file(file, text.as_bytes())?;
    output.report(&format!("measured {}\nwrote {}\n", args.gpu, file.display()));
    Ok(())
}

fn profile(gpu: &str, limit: Duration) -> Result<String, Failure> {
    if gpu.trim().is_empty() || gpu.chars().any(char::is_control) {
        let message = "the name of a GPU type is empty or holds a control character";
        let help = "name the type as the cluster description does, as in `--gpu host`";
        return Err(Failure::usage(Diagnostic::error(BAD_OPTION, message).with_help(help)));
    }
    let name = toml_text(gpu);
    let start = picoseconds(measure(&elementwise(&Elementwise::Add.into(), 2, 1))?);
    let mut text = format!(
        "# Measured by trainc profile: pairs of work (FLOP, or bytes) and picoseconds.\n[[gpu]]\nname = {name}\n"
    );
    writeln!(text, "launch_us = {}.{:06}", start / 1_000_000, start % 1_000_000).expect("a text takes everything");
    for kind in kinds() {
        let points = points(&kind, start, limit)?;
        let points: Vec<String> = points.iter().map(|(work, time)| format!("[{work}, {time}]")).collect();
        writeln!(text, "{} = [{}]", kind.key, points.join(", ")).expect("a text takes everything");
    }
    Ok(text)
}

/// Work and picoseconds beyond those of the smallest kernel, until one takes longer than the limit. A larger kernel that
/// took less time than a smaller one was lucky, or the other was not: it counts as equally slow.
fn points(kind: &Kind, start: u64, limit: Duration) -> Result<Vec<(u64, u64)>, Failure> {
    let mut points: Vec<(u64, u64)> = Vec::new();
    for kernel in &kind.kernels {
        let took = measure(kernel)?;
        let work = if kind.counts_bytes { kernel.bytes } else { kernel.flops };
        let slowest = points.last().map_or(1, |&(_, time)| time);
        points.push((work, picoseconds(took).saturating_sub(start).max(slowest)));
        if took > limit {
            break;
        }
    }
    Ok(points)
}

fn measure(kernel: &Kernel) -> Result<Duration, Failure> {
    let inputs: BTreeMap<String, Tensor> = kernel
        .graph
        .inputs
        .iter()
        .map(|input| (input.name.clone(), Tensor::zeros(kernel.graph.ty(input.value).clone())))
        .collect();
    let context = Context { seed: 0, step: 0, site: 0, micro_batch: 0 };
    let mut fastest = Duration::MAX;
    for _ in 0..RUNS {
        let begin = Instant::now();
        interpret(&kernel.graph, &inputs, context).map_err(|error| {
            Failure::input(Diagnostic::error(INTERNAL_ERROR, format!("a kernel to measure did not run: {error}")))
        })?;
        fastest = fastest.min(begin.elapsed());
    }
    Ok(fastest)
}

fn picoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().saturating_mul(1000)).unwrap_or(u64::MAX).max(1)
}

fn kinds() -> Vec<Kind> {
    let sizes = |range: std::ops::RangeInclusive<u32>| range.map(|log2| 1u64 << log2);
    let product = |dtype| {
        move |n: u64| {
            let op = Op::from(Contraction::MatMul { transpose_a: false, transpose_b: false });
            kernel(&op, &[Type::new(dtype, [n, n]), Type::new(dtype, [n, n])])
        }
    };
    let attention = |dtype| {
        move |n: u64| {
            let op = Op::from(Attention::Attention { scale: Real::new(0.125), causal: true });
            kernel(&op, &[0; 3].map(|_| Type::new(dtype, [1, 4, n, 64])))
        }
    };
    let flops = |key, kernels| Kind { key, kernels, counts_bytes: false };
    vec![
        flops("product_32", sizes(5..=11).map(product(DType::F32)).collect()),
        flops("product_16", sizes(5..=11).map(product(DType::BF16)).collect()),
        flops("attention_32", sizes(4..=10).map(attention(DType::F32)).collect()),
        flops("attention_16", sizes(4..=10).map(attention(DType::BF16)).collect()),
        flops("vector", sizes(10..=24).step_by(2).map(|n| elementwise(&Elementwise::Tanh.into(), 1, n)).collect()),
        Kind {
            key: "memory",
            kernels: sizes(10..=26).step_by(2).map(|n| elementwise(&Elementwise::Add.into(), 2, n)).collect(),
            counts_bytes: true,
        },
    ]
}

fn elementwise(op: &Op, n_operands: usize, n: u64) -> Kernel {
    kernel(op, &vec![Type::new(DType::F32, [n]); n_operands])
}

fn kernel(op: &Op, operands: &[Type]) -> Kernel {
    let mut b = GraphBuilder::new("kernel");
    let named = |(i, ty): (usize, &Type)| (format!("x{i}"), ty.clone());
    let inputs: Vec<_> =
        operands.iter().enumerate().map(named).map(|(name, ty)| b.input(name, InputRole::Data, ty)).collect();
    let outputs = b.add(op.clone(), &inputs).expect("the operands are of the right types");
    let types: Vec<Type> = outputs.iter().map(|&v| b.ty(v).clone()).collect();
    b.output("y", OutputRole::Prediction, outputs[0]);
    let (inputs, outputs): (Vec<&Type>, Vec<&Type>) = (operands.iter().collect(), types.iter().collect());
    Kernel { graph: b.finish(), flops: op.flops(&inputs, &outputs), bytes: op.bytes(&inputs, &outputs) }
}

/// A text in TOML's quotes.
fn toml_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainc_ir::Profile;

    #[test]
    fn names_that_no_profile_can_have_are_refused() {
        for name in ["", " ", "a\nb"] {
            let failure = profile(name, Duration::ZERO).unwrap_err();
            assert_eq!(failure.diagnostics[0].code, BAD_OPTION, "{name:?}");
        }
    }

    /// Whatever the clock says, the text is one that `--profile` takes.
    #[test]
    fn what_is_measured_can_be_read() {
        let text = profile("host", Duration::ZERO).expect("the kernels run");
        Profile::read("profile.toml", &text).expect("the text is a profile");
        for kind in kinds() {
            assert!(text.contains(&format!("\n{} = [[", kind.key)), "{text}");
        }
    }
}
