//! The plan of a model of 70 billion parameters on 64 GPUs stays small.
//!
//! The bound of 5 MB is the project's own; `cargo bench -p trainc --bench large` checks it with 64 and 512 micro-batches, which take longer.

#[path = "../benches/large/llama.rs"]
mod llama;

use llama::{CLUSTER, Llama, training};
use trainc_backend::plan_to_json;
use trainc_ir::Cluster;
use trainc_ir::plan::Header;
use trainc_passes::plan::partition::{RecomputePolicy, Stages};
use trainc_passes::plan::{PlanOptions, plan};

const MAX_JSON: usize = 5_000_000;

#[test]
fn a_plan_of_64_ranks_takes_less_than_5_mb() {
    let training = training(&Llama::LARGE);
    let cluster = Cluster::from_toml("cluster.toml", CLUSTER).expect("the cluster is valid");
    let options = PlanOptions::new(16, Stages::Forced(64), RecomputePolicy::Fit);
    let plan = plan(&training, &cluster, &options, &Header::default()).expect("it fits").plan;
    assert_eq!(plan.ranks.len(), 64);
    let written = plan_to_json(&plan).len();
    assert!(written < MAX_JSON, "{written} bytes");
}
