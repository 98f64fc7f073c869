//! `trainc run`: runs a plan on this machine and shows the loss.

use crate::args::RunArgs;
use crate::output::Output;
use crate::table::{Align, Table};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Instant;
use trainc::units::{bytes, count, plural};
use trainc::{BAD_OPTION, CONFLICTING_OPTIONS, Checked, Failure, RunOptions, TOO_MANY_THREADS, Weights, check};
use trainc_backend::{StepReport, TokenWidth};
use trainc_ir::Diagnostic;

/// Losses that are printed of a long run.
const LINES: u32 = 20;

/// Runs a plan.
pub(crate) fn run(args: &RunArgs, output: Output) -> Result<(), Failure> {
    refuse_one_of_many()?;
    if args.threads.is_some_and(|threads| threads > most_threads()) {
        let message = "more threads were asked for than this machine can use: fewer are taken";
        let help = "leave out --threads to have one per core; results do not depend on it";
        output.diagnostics(&[Diagnostic::warning(TOO_MANY_THREADS, message).with_help(help)]);
    }
    let options = options(args)?;
    let checked = check(&args.plan, args.model.as_deref())?;
    output.warnings(&checked.notes);
    let bar = bar(args.steps, output);
    let started = Instant::now();
    let mut losses: Option<(f64, f64)> = None;
    let mut ready = |weights: &Weights| {
        bar.suspend(|| {
            output.report(&head(&checked, args, weights));
            output.diagnostics(&weights.notes());
        });
    };
    let mut on_step = |report: &StepReport| {
        let loss = report.loss();
        losses = Some((losses.map_or(loss, |(first, _)| first), loss));
        bar.set_message(format!("loss {loss:.4}"));
        bar.inc(1);
        bar.suspend(|| show(report, args.steps, output));
        true
    };
    let finished = trainc::run(&checked, &options, &mut ready, &mut on_step)?;
    bar.finish_and_clear();
    if let Some((first, last)) = losses {
        output.report(&tail(&checked, args, (first, last), started));
    }
    if args.checked {
        output.report(&touched(&checked, &finished.touched_bytes));
        output.object(&serde_json::json!({ "touched_bytes": finished.touched_bytes }));
    }
    Ok(())
}

/// The requests start a process per GPU. A process runs all ranks of a plan, so several would each train the whole model.
fn refuse_one_of_many() -> Result<(), Failure> {
    let world = std::env::var("WORLD_SIZE").ok().and_then(|size| size.parse::<u64>().ok()).unwrap_or(1);
    if world <= 1 || std::env::var_os("TRAINC_GROUP").is_none() {
        return Ok(());
    }
    let message =
        format!("this is one of {world} processes of a job, and trainc runs all ranks of a plan in one process");
    let help = "running a plan over several processes and on GPUs is not there yet: run it on one machine, without the \
                variables that the request sets";
    Err(Failure::usage(Diagnostic::error(CONFLICTING_OPTIONS, message).with_help(help)))
}

/// Threads beyond which kernels spend their time on waiting for each other.
fn most_threads() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (4 * cores).max(16)
}

fn options(args: &RunArgs) -> Result<RunOptions, Failure> {
    let refuse = |message: &str| Err(Failure::usage(Diagnostic::error(BAD_OPTION, message)));
    if !(args.lr.is_finite() && args.lr > 0.0) {
        return refuse(&format!("the learning rate must be a positive number, found {}", args.lr));
    }
    if let Some(threads) = args.threads {
        let threads = threads.min(most_threads());
        // Zero means as many as the machine has cores; the pool is built before anything uses it.
        if rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().is_err() {
            return refuse("the machine does not give that many threads");
        }
    }
    let width = if args.token_bits == "32" { TokenWidth::U32 } else { TokenWidth::U16 };
    Ok(RunOptions {
        steps: args.steps,
        learning_rate: args.lr,
        seed: args.seed,
        checked: args.checked,
        data: args.data.clone().map(|file| (file, width)),
    })
}

fn bar(steps: u32, output: Output) -> ProgressBar {
    let target = if output.shows_progress() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template("  {bar:30} {pos}/{len} steps, {elapsed} of {duration}, {msg}");
    let bar = ProgressBar::with_draw_target(Some(steps.into()), target);
    if let Ok(style) = style { bar.with_style(style) } else { bar }
}

fn head(checked: &Checked, args: &RunArgs, weights: &Weights) -> String {
    let plan = checked.plan.plan();
    let data = match &args.data {
        Some(file) => format!("`{}`", file.display()),
        None => format!("a synthetic corpus, seed {}", args.seed),
    };
    let origin = match weights {
        Weights { loaded, initialized: 0, missing_files: _ } => format!("{loaded} weights from the model"),
        Weights { loaded, initialized, missing_files } => {
            let files: Vec<String> = missing_files.iter().map(|file| format!("`{}`", file.display())).collect();
            let why = match files.as_slice() {
                [] => "the model does not carry them".to_owned(),
                [file] => format!("the file {file} is not there"),
                files => format!("the files {} are not there", files.join(", ")),
            };
            format!("{loaded} weights from the model, {initialized} initialized (seed {}): {why}", args.seed)
        }
    };
    let ranks = plural(plan.ranks.len() as u64, "rank", "ranks, a thread each");
    format!("{} on this machine: {ranks}\n  {origin}\n  data: {data}\n", plan.header.model)
}

/// Prints the loss of a step: of every one of a short run, of some of a long one, always of the last.
fn show(report: &StepReport, steps: u32, output: Output) {
    let every = steps.div_ceil(LINES).max(1);
    if report.step.is_multiple_of(every) || report.step == 1 || report.step == steps {
        let width = steps.to_string().len();
        output.report(&format!("  step {:>width$}  loss {:.4}\n", report.step, report.loss()));
    }
    output.object(&serde_json::json!({
        "step": report.step,
        "loss": report.loss(),
        "loss_sum": report.loss_sum,
        "loss_count": report.loss_count,
    }));
}

fn tail(checked: &Checked, args: &RunArgs, (first, last): (f64, f64), started: Instant) -> String {
    let tokens = checked.plan.plan().prediction.tokens * u64::from(args.steps);
    let seconds = started.elapsed().as_secs_f64();
    let rate = (tokens as f64 / seconds.max(1e-9)) as u64;
    let steps = plural(args.steps.into(), "step", "steps");
    format!("loss {first:.4} -> {last:.4} in {steps}, {seconds:.1} s, {} tokens/s on the CPU\n", count(rate))
}

fn touched(checked: &Checked, touched: &[u64]) -> String {
    let mut table = Table::new(&[("rank", Align::Right), ("arena", Align::Right), ("touched", Align::Right)]);
    for (rank, (prediction, touched)) in checked.plan.plan().prediction.ranks.iter().zip(touched).enumerate() {
        let same = if prediction.arena_bytes == *touched { "all".to_owned() } else { bytes(*touched) };
        table.row([rank.to_string(), bytes(prediction.arena_bytes), same]);
    }
    format!("Bytes of each arena, and those that were touched\n{}", table.print())
}
