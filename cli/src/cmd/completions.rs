//! `trainc completions`: scripts with which shells complete commands and options.

use crate::args::{Cli, CompletionsArgs};
use crate::output::Output;
use clap::CommandFactory;
use trainc::Failure;

/// Prints the script of a shell.
pub(crate) fn run(args: &CompletionsArgs, output: Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "trainc", &mut script);
    output.asked(&String::from_utf8_lossy(&script));
    Ok(())
}
