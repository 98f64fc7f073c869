//! A test of a project that trains models: the summaries of their plans are kept as snapshots by insta, so that a change of
//! a model, a cluster or of trainc shows what it does to memory and time.

use std::path::Path;
use trainc::{CompileOptions, Failure, ModelOptions};
use trainc_backend::summary_to_json;

/// The summary of a model's plan, as `summary.json` holds it.
pub(crate) fn summary(model: &Path, cluster: &Path) -> Result<String, Failure> {
    let model = ModelOptions {
        model: model.to_owned(),
        bindings: [("batch".to_owned(), 2), ("seq".to_owned(), 64)].into(),
        micro_batches: Some(4),
        ..ModelOptions::default()
    };
    let options = CompileOptions { model, cluster: cluster.to_owned(), ..CompileOptions::default() };
    Ok(summary_to_json(trainc::compile(&options)?.plan.plan()))
}

#[test]
fn gpt2_on_the_mixed_cluster() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    let summary = summary(&testdata.join("models/gpt2.onnx"), &testdata.join("clusters/mixed.toml"));
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../examples/snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("gpt2", summary.expect("the plan fits")));
}
