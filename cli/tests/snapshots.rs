//! Snapshots of what a compile comes to: the plan's summary, the requests for its GPUs, and diagnostics of faulty jobs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trainc::{CompileOptions, Compiled, Failure, ModelOptions, Recompute, compile};
use trainc_backend::{
    KubernetesOptions, PlacementRequest, SlurmOptions, kubernetes_manifest, slurm_script, summary_to_json,
};

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the workspace").join("testdata").join(path)
}

fn check(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../testdata/snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

fn job(model: &str, bind: &[(&str, u64)], cluster: &str, stages: u64, recompute: Recompute) -> CompileOptions {
    let bindings: BTreeMap<String, u64> = bind.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
    let model = ModelOptions {
        model: testdata("models").join(model),
        bindings,
        micro_batches: Some(4),
        ..ModelOptions::default()
    };
    CompileOptions {
        model,
        cluster: testdata("clusters").join(cluster),
        stages: Some(stages),
        recompute,
        ..CompileOptions::default()
    }
}

fn first(recompute: Recompute) -> Compiled {
    let bind = [("batch", 2), ("seq", 64)];
    compile(&job("gpt2.onnx", &bind, "mixed.toml", 2, recompute)).expect("the plan fits")
}

/// Codes, messages, notes and help; places name files of this checkout, so they are left out.
fn diagnostics(failure: &Failure) -> String {
    let of = |d: &trainc_ir::Diagnostic| {
        let notes: String = d.notes.iter().map(|note| format!("\n  note: {note}")).collect();
        let help = d.help.as_ref().map_or_else(String::new, |help| format!("\n  help: {help}"));
        format!("{d}{notes}{help}\n")
    };
    let text: String = failure.diagnostics.iter().map(of).collect();
    text.replace(&testdata("").display().to_string(), "$TESTDATA/")
}

#[test]
fn summaries() {
    check("summary-none", &summary_to_json(first(Recompute::None).plan.plan()));
    check("summary-full", &summary_to_json(first(Recompute::Full).plan.plan()));
}

#[test]
fn requests() {
    let compiled = first(Recompute::None);
    assert_eq!(compiled.plan.plan().groups.len(), 2, "the plan spans both types of the mixed cluster");
    let request = PlacementRequest::from_plan(compiled.plan.plan(), &compiled.cluster).expect("the groups are known");
    check("kubernetes", &kubernetes_manifest(&request, &KubernetesOptions::default()).expect("names are legal"));
    check("slurm", &slurm_script(&request, &SlurmOptions::default()).expect("names are legal"));
}

#[test]
fn faulty_jobs() {
    let fails = |options: &CompileOptions| diagnostics(&compile(options).expect_err("the job is faulty"));
    let gpt2 = |bind: &[(&str, u64)], stages| job("gpt2.onnx", bind, "mixed.toml", stages, Recompute::Fit);
    check("unbound-dimension", &fails(&gpt2(&[("batch", 2)], 2)));
    check("impossible-binding", &fails(&gpt2(&[("batch", 2), ("seq", 129)], 2)));
    check("too-many-stages", &fails(&gpt2(&[("batch", 2), ("seq", 8)], 6)));
    check(
        "unsupported-operators",
        &fails(&job("../frontend/onnx/unsupported.onnx", &[("*", 4)], "mixed.toml", 1, Recompute::Fit)),
    );
    check("unknown-gpu", &fails(&job("gpt2.onnx", &[("*", 8)], "bad/unknown-gpu.toml", 2, Recompute::Fit)));
}
