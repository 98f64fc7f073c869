//! `trainc verify`: checks a plan against its model.

use crate::args::VerifyArgs;
use crate::output::Output;
use trainc::{Failure, check, check_twin};
use trainc_ir::plan::PlanRule;

/// Checks a plan and says so.
pub(crate) fn run(args: &VerifyArgs, output: Output) -> Result<(), Failure> {
    let checked = check(&args.plan, args.model.as_deref())?;
    output.warnings(&checked.notes);
    let plan = checked.plan.plan();
    check_twin(&args.plan, plan)?;
    let rules = PlanRule::ALL.len();
    let (ranks, kernels, segments) = (plan.ranks.len(), plan.kernels.len(), plan.segments.len());
    output.report(&format!(
        "the plan computes a training step of `{}`: {rules} rules hold for {ranks} ranks, {segments} segments, {kernels} kernels\n",
        plan.header.model
    ));
    output.object(&serde_json::json!({ "verified": true, "rules": rules, "ranks": ranks }));
    Ok(())
}
