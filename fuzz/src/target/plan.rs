//! A plan, in JSON or protobuf: read, checked against a training graph, written and read again.

use super::{Kind, Target};
use crate::corpus::seeds;
use std::sync::LazyLock;
use trainc_backend::{plan_to_json, plan_to_protobuf, read_plan, summary_to_json};
use trainc_ir::plan::{Header, Plan, verify};
use trainc_ir::text::parse;
use trainc_ir::{Cluster, TrainingGraph};
use trainc_passes::plan::partition::{RecomputePolicy, Stages};
use trainc_passes::plan::{PlanOptions, plan};
use trainc_passes::{Lowering, TrainingOptions, lower_to_training};

pub(super) const TARGET: Target =
    Target { name: "plan", kind: Kind::Plan, run, seeds: all_seeds, tokens: TOKENS, n_bounded: 1_500 };

/// A small model with a tied weight and two equal layers.
const MODEL: &str = r#"
graph "lm" {
  v0 = input data "input_ids" : i64[2,4]
  v1 = input param "wte" : f32[8,4]
  v2 = input param "w0" : f32[4,4]
  v3 = input param "w1" : f32[4,4]
  v4 = gather(v1, v0) axis=0 : f32[2,4,4]
  v5 = matmul(v4, v2) transpose_a=false transpose_b=false : f32[2,4,4]
  v6 = relu(v5) : f32[2,4,4]
  v7 = add(v4, v6) : f32[2,4,4]
  v8 = matmul(v7, v3) transpose_a=false transpose_b=false : f32[2,4,4]
  v9 = relu(v8) : f32[2,4,4]
  v10 = add(v7, v9) : f32[2,4,4]
  v11 = matmul(v10, v1) transpose_a=false transpose_b=true : f32[2,4,8]
  output prediction "logits" v11
}
"#;

const CLUSTER: &str = r#"
name = "two"
[[group]]
name = "a"
gpu = "A100-SXM-80GB"
nodes = 1
gpus_per_node = 2
"#;

static TRAINING: LazyLock<TrainingGraph> = LazyLock::new(|| {
    let graph = parse("model.ir", MODEL).expect("the model is valid").into_inner();
    match lower_to_training(graph, &TrainingOptions::default(), None, &mut |_| {}, &mut Vec::new()) {
        Ok(Lowering::Done(training)) => *training,
        other => panic!("the model cannot be trained: {other:?}"),
    }
});

fn run(input: &[u8]) {
    let Ok(plan) = read_plan(input, "plan") else { return };
    for bytes in [plan_to_json(&plan).into_bytes(), plan_to_protobuf(&plan)] {
        match read_plan(&bytes, "written") {
            Ok(again) => assert!(plan == again, "another plan is read from what was written"),
            Err(problems) => panic!("what was written cannot be read: {}", problems[0]),
        }
    }
    if let Ok(plan) = verify(&plan, &TRAINING) {
        summary_to_json(plan.plan());
    }
}

fn all_seeds() -> Vec<Vec<u8>> {
    let mut all = seeds("plan", "stages.json");
    let cluster = Cluster::from_toml("cluster.toml", CLUSTER).expect("the cluster is valid");
    let text = || "fuzz".to_owned();
    let header = Header { compiler: text(), model: text(), cluster: text(), ..Header::default() };
    for (stages, micro_batches, recompute) in
        [(1, 1, RecomputePolicy::None), (2, 4, RecomputePolicy::None), (2, 3, RecomputePolicy::Full)]
    {
        let options = PlanOptions::new(micro_batches, Stages::Forced(stages), recompute);
        let plan: Plan = plan(&TRAINING, &cluster, &options, &header).expect("it fits").plan;
        verify(&plan, &TRAINING).expect("the planner's plans are right");
        all.push(plan_to_json(&plan).into_bytes());
        all.push(plan_to_protobuf(&plan));
    }
    all
}

const TOKENS: &[&str] = &[
    "i",
    "2i+3",
    "i-1",
    "9223372036854775807i",
    "-9223372036854775808i-1",
    "b0",
    "b1[i]",
    "b4294967295",
    "b4294967294[7i]",
    "e0[i]",
    "e1[i-1]",
    "a0",
    "l0",
    "a4294967295",
    "f32[2,4]",
    "f32[18446744073709551615,18446744073709551615]",
    "i64[]",
    "bool[0]",
    "forward",
    "backward",
    "recompute",
    "update",
    "read",
    "write",
    "compute",
    "side",
    "transfer",
    "loop",
    "once",
    "call",
    "send",
    "recv",
    "all_reduce",
    "broadcast",
    "group",
    "matmul",
    "relu",
    "loss_sum",
    "wte",
    "lr",
    "step",
];
