//! `trainc estimate`: what a model needs on a cluster, without a plan being written.

use crate::args::EstimateArgs;
use crate::output::Output;
use crate::report::report;
use trainc::{Failure, compile};

/// Estimates a model.
pub(crate) fn run(args: &EstimateArgs, output: Output) -> Result<(), Failure> {
    let compiled = compile(&args.options()?)?;
    output.diagnostics(&compiled.notes);
    let plan = compiled.plan.plan();
    output.report(&report(plan));
    output.object(&super::compile::object(plan));
    Ok(())
}
