//! Runs the whole compiler on one graph, step by step, and measures each step.

use crate::heap;
use crate::shapes::Shape;
use std::time::{Duration, Instant};
use trainc_backend::{plan_to_json, plan_to_protobuf, read_plan, summary_to_json};
use trainc_ir::plan::{Header, verify as verify_plan};
use trainc_ir::text::{parse, parse_training, print, print_training};
use trainc_ir::{Cluster, verify, verify_training};
use trainc_passes::plan::partition::{RecomputePolicy, Stages};
use trainc_passes::plan::{PlanOptions, plan_with};
use trainc_passes::{TrainingOptions, passes, transform};

const CLUSTER: &str = r#"
name = "bench"
[[group]]
name = "a"
gpu = "A100-SXM-80GB"
nodes = 1
gpus_per_node = 8
"#;

/// One measured step.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) time: Duration,
    pub(crate) peak: usize,
}

/// Time that this thread has run, or time of day where the system does not say.
#[derive(Clone, Copy)]
struct Moment {
    wall: Instant,
    ran: Option<Duration>,
}

/// The system counts running time in ticks: what is shorter is measured by the time of day.
const SHORT: Duration = Duration::from_millis(100);

impl Moment {
    fn now() -> Self {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
        let ran = text.and_then(|text| text.split(' ').next()?.parse().ok()).map(Duration::from_nanos);
        Self { wall: Instant::now(), ran }
    }

    fn elapsed(self) -> Duration {
        let now = Self::now();
        let wall = now.wall.duration_since(self.wall);
        let ran = now.ran.zip(self.ran).map(|(now, then)| now.saturating_sub(then));
        ran.filter(|_| wall > SHORT).unwrap_or(wall)
    }
}

/// Measures steps.
struct Watch {
    rows: Vec<Row>,
}

impl Watch {
    fn step<T>(&mut self, name: &str, run: impl FnOnce() -> T) -> T {
        let mark = heap::mark();
        let start = Moment::now();
        let result = run();
        let (time, peak) = (start.elapsed(), heap::peak_since(mark));
        if std::env::var_os("SCALE_VERBOSE").is_some() {
            println!("    {name}: {time:.1?}, {} MiB", peak >> 20);
        }
        self.rows.push(Row { name: name.to_owned(), time, peak });
        result
    }
}

/// Compiles a graph of this shape and size; gives its number of nodes and what every step took.
pub(crate) fn run(shape: Shape, nodes: usize) -> (usize, Vec<Row>) {
    let mut watch = Watch { rows: Vec::new() };
    let graph = watch.step("build the graph", || shape.graph(nodes));
    let nodes = graph.nodes.len();
    let text = watch.step("print", || print(&graph));
    let parsed = watch.step("parse and verify", || parse("graph.ir", &text).expect("what was printed parses"));
    drop((text, parsed));
    let mut graph = watch.step("verify", || verify(graph).expect("the graph is valid")).into_inner();
    let mut notes = Vec::new();
    let options = TrainingOptions::default();
    for (position, (pass, _)) in passes(&options).into_iter().enumerate() {
        let name = format!("{} {}", position + 1, pass.name());
        watch.step(&name, || pass.run(&mut graph, &mut notes)).expect("the model can be trained");
    }
    let step = watch.step("differentiate", || transform::differentiate(graph, &options.trainable, &mut notes));
    let step = step.expect("the model can be differentiated");
    let training =
        watch.step("optimizer", || transform::optimizer(step, &options.optimizer)).expect("names are unique");
    let training = watch.step("verify training", || verify_training(training).expect("the training graph is valid"));
    let text = watch.step("print training", || print_training(training.graph()));
    watch.step("parse training", || parse_training("training.ir", &text)).expect("what was printed parses");
    drop(text);
    // A step has at most 50 million instructions and kernels.
    plans(&training, if nodes > 500_000 { 3 } else { 8 }, &mut watch);
    (nodes, watch.rows)
}

fn plans(training: &trainc_ir::TrainingGraph, micro_batches: u64, watch: &mut Watch) {
    let cluster = Cluster::from_toml("bench.toml", CLUSTER).expect("the cluster is valid");
    let options = PlanOptions::new(micro_batches, Stages::Forced(4), RecomputePolicy::Fit);
    let mut start = (Moment::now(), heap::mark());
    let mut rows = Vec::new();
    let planned = plan_with(training, &cluster, &options, &Header::default(), &mut |name| {
        let (time, peak) = (start.0.elapsed(), heap::peak_since(start.1));
        if std::env::var_os("SCALE_VERBOSE").is_some() {
            println!("    plan: {name}: {time:.1?}, {} MiB", peak >> 20);
        }
        rows.push(Row { name: format!("plan: {name}"), time, peak });
        start = (Moment::now(), heap::mark());
    });
    watch.rows.append(&mut rows);
    let plan = planned.expect("a division fits").plan;
    let plan = watch.step("verify the plan", || verify_plan(&plan, training)).expect("the plan is right");
    let plan = plan.plan();
    let json = watch.step("write JSON", || plan_to_json(plan));
    let pb = watch.step("write protobuf", || plan_to_protobuf(plan));
    watch.step("read JSON", || read_plan(json.as_bytes(), "plan.json")).expect("what was written can be read");
    watch.step("read protobuf", || read_plan(&pb, "plan.pb")).expect("what was written can be read");
    watch.step("summary", || summary_to_json(plan));
}
