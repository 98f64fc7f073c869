//! Plans of a model of 70 billion parameters on 64 GPUs: size, time, and the bound of 5 MB that holds them small.
//!
//! `cargo bench -p trainc --bench large`. A plan grows with its distinct segments and with the length of its programs, not
//! with layers times micro-batches times ranks.
#![allow(clippy::print_stdout, clippy::expect_used, reason = "a bench prints its results")]

mod llama;

use llama::{CLUSTER, Llama, training};
use std::time::Instant;
use trainc_backend::{plan_to_json, plan_to_protobuf};
use trainc_ir::Cluster;
use trainc_ir::plan::{Header, verify};
use trainc_passes::plan::partition::{RecomputePolicy, Stages};
use trainc_passes::plan::{PlanOptions, plan};

const MAX_JSON: usize = 5_000_000;

fn main() {
    let training = training(&Llama::LARGE);
    let cluster = Cluster::from_toml("cluster.toml", CLUSTER).expect("the cluster is valid");
    for (stages, micro_batches) in [(32, 64), (64, 64), (64, 512)] {
        let options = PlanOptions::new(micro_batches, Stages::Forced(stages), RecomputePolicy::Fit);
        let start = Instant::now();
        let plan = plan(&training, &cluster, &options, &Header::default()).expect("it fits").plan;
        let planned = start.elapsed();
        let (json, binary) = (plan_to_json(&plan), plan_to_protobuf(&plan));
        let start = Instant::now();
        let verified = verify(&plan, &training).is_ok();
        println!(
            "{stages} stages, {micro_batches} micro-batches: {} bytes of JSON, {} of protobuf; planned in {planned:.1?}, \
             verified in {:.1?} ({verified})",
            json.len(),
            binary.len(),
            start.elapsed()
        );
        assert!(json.len() < MAX_JSON, "the plan is too large");
    }
}
