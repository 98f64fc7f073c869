//! `trainc estimate`: what a model needs on a cluster, without a plan being written.

use crate::args::EstimateArgs;
use crate::output::Output;
use crate::report::report;
use trainc::{Failure, estimate};

/// Estimates a model.
pub(crate) fn run(args: &EstimateArgs, output: Output) -> Result<(), Failure> {
    let options = args.options()?;
    let compiled = estimate(&options)?;
    output.diagnostics(&compiled.notes);
    output.report(&report(&compiled, &options));
    output.object(&super::compile::object(compiled.plan.plan()));
    Ok(())
}
