//! `trainc compile`: from a model and a cluster to a folder with a plan.

use crate::args::{CompileArgs, Emit};
use crate::output::Output;
use crate::passes::Watch;
use crate::report::report;
use trainc::{BAD_OPTION, Failure, PLAN_JSON, compile_with, dep_file, prepare, prepare_forward, prepare_until, write};
use trainc_backend::{plan_to_json, summary_to_json, write_file};
use trainc_ir::Diagnostic;
use trainc_ir::plan::Plan;
use trainc_ir::text::{print, print_training};

/// Compiles a model.
pub(crate) fn run(args: &CompileArgs, output: Output) -> Result<(), Failure> {
    let options = args.options()?;
    if matches!(args.emit, Some(Emit::Plan | Emit::TorchSchedule)) && !args.has_cluster() {
        let message = "a plan is made for a cluster";
        return Err(Failure::usage(
            Diagnostic::error(BAD_OPTION, message).with_help("describe it with --cluster FILE"),
        ));
    }
    let mut watch = Watch::new(&args.passes, output)?;
    match (&args.stop_after, args.emit) {
        (Some(stop), _) => {
            let forward = prepare_until(&options.model, stop, &mut |event| watch.event(event))?;
            output.diagnostics(&forward.notes);
            output.asked(&print(&forward.graph));
        }
        (None, Some(Emit::Ir)) => {
            let forward = prepare_forward(&options.model, &mut |event| watch.event(event))?;
            output.diagnostics(&forward.notes);
            output.asked(&print(&forward.graph));
        }
        (None, Some(Emit::Training)) => {
            let prepared = prepare(&options.model, &mut |event| watch.event(event))?;
            output.diagnostics(&prepared.notes);
            output.asked(&print_training(prepared.training.graph()));
        }
        (None, emit) => {
            let compiled = compile_with(&options, &mut |progress| watch.progress(progress))?;
            output.diagnostics(&compiled.notes);
            let plan = compiled.plan.plan();
            match (&args.output, emit) {
                (Some(folder), None) => {
                    // First, so that a target that is there always has its dependencies.
                    if let Some(file) = &args.dep_file {
                        write_file(file, &dep_file(&folder.join(PLAN_JSON), &compiled.inputs)?)?;
                    }
                    let files = write(&compiled, &options, folder)?;
                    output.report(&format!(
                        "{}\nwrote {} to {}\n",
                        report(&compiled, &options),
                        files.join(", "),
                        folder.display()
                    ));
                    output.object(&object(plan));
                }
                (_, Some(Emit::TorchSchedule)) => output.asked(&compiled.schedule.to_torch_csv()),
                (_, Some(_)) | (None, None) => output.asked(&plan_to_json(plan)),
            }
        }
    }
    watch.finish();
    Ok(())
}

/// The summary as a value.
pub(crate) fn object(plan: &Plan) -> serde_json::Value {
    serde_json::from_str(&summary_to_json(plan)).expect("the summary is JSON")
}
