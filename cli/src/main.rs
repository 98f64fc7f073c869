//! The `trainc` command: reads its arguments, calls the library, prints what comes of it, and says so by its exit code.

mod args;
mod cmd;
mod examples;
mod output;
mod passes;
mod render;
mod report;
mod table;

use args::{Cli, Command};
use clap::Parser;
use output::Output;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use trainc::{Failure, FailureKind};
use trainc_ir::Diagnostic;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return output::usage(&error, output::wants_json(std::env::args_os().skip(1))),
    };
    let output = Output::new(&cli.talk);
    output::silence_panics();
    match catch_unwind(AssertUnwindSafe(|| run(&cli.command, output))) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => {
            output.diagnostics(&failure.diagnostics);
            ExitCode::from(code(failure.kind))
        }
        Err(_) => {
            output.diagnostics(&[panicked()]);
            ExitCode::from(code(FailureKind::Internal))
        }
    }
}

fn run(command: &Command, output: Output) -> Result<(), Failure> {
    match command {
        Command::Compile(args) => cmd::compile::run(args, output),
        Command::Run(args) => cmd::run::run(args, output),
        Command::Estimate(args) => cmd::estimate::run(args, output),
        Command::Inspect(args) => cmd::inspect::run(args, output),
        Command::Simulate(args) => cmd::simulate::run(args, output),
        Command::Diff(args) => cmd::diff::run(args, output),
        Command::Completions(args) => cmd::completions::run(args, output),
        Command::Verify(args) => cmd::verify::run(args, output),
        Command::Cluster(command) => cmd::cluster::run(command, output),
        Command::Profile(args) => cmd::profile::run(args, output),
        Command::Explain(args) => cmd::explain::run(args, output),
    }
}

/// The exit code of a failure; 2 is also clap's for a command line that it cannot read.
fn code(kind: FailureKind) -> u8 {
    match kind {
        FailureKind::Input => 1,
        FailureKind::Usage => 2,
        FailureKind::Infeasible => 3,
        FailureKind::Internal => 4,
    }
}

/// What is said of a panic.
fn panicked() -> Diagnostic {
    let what = output::take_panic().unwrap_or_else(|| "it gave no message".to_owned());
    Diagnostic::error(trainc::INTERNAL_ERROR, "trainc came to a state that should not exist")
        .with_note(what)
        .with_note(format!("trainc {}, {} {}", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH))
        .with_help("this is a bug of trainc: please report it with this message, the command line and the model")
}
