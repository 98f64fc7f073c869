//! Requests of whole placements, as snapshots. `kubernetes-validate --strict` (schemas of 1.37) accepted both manifests. Slurm
//! 22.05.8 ran `slurm-mixed` on stand-in GPUs with the variables as documented, and took `slurm-awkward` in
//! `sbatch --test-only` with the GPU types and features of that test cluster in place of its own.

use super::*;
use trainc_ir::id::Table;
use trainc_ir::plan::{FORMAT, Header, Locality, PlacementGroup, Plan, Prediction};
use trainc_ir::{Cluster, Diagnostics};

const MIXED: &str = include_str!("../../../testdata/clusters/two-nodes.toml");

/// Two groups whose names and labels are as awkward as they may be, one of a type without a product label.
const AWKWARD: &str = r#"
name = "awkward"

[[group]]
name = "A_1"
gpu = "A100-SXM-80GB"
nodes = 2
gpus_per_node = 8
[group.labels]
"topology.kubernetes.io/zone" = "1e3"
"slurm/gres-type" = "nvidia_a100-sxm4-80gb"
"slurm/partition" = "big"

[[group]]
name = "a-1"
gpu = "P100-SXM2-16GB"
nodes = 3
gpus_per_node = 4
labels = { "slurm/constraint" = "p100&nvlink" }

[network]
bandwidth_gbps = 100
"#;

fn cluster(text: &str) -> Cluster {
    Cluster::from_toml("test", text).unwrap()
}

/// The plan that uses all of a cluster; nothing but what a request reads is filled in.
fn plan_on(cluster: &Cluster) -> Plan {
    let groups = cluster.groups.values().map(|group| PlacementGroup {
        name: group.name.clone(),
        gpu: group.gpu.name.clone(),
        count: group.n_gpus(),
        locality: Locality { nodes: group.nodes, gpus_per_node: group.gpus_per_node },
    });
    let header = Header {
        compiler: "trainc 0.1.0".to_owned(),
        model: "GPT2".to_owned(),
        cluster: cluster.name.clone(),
        ..Header::default()
    };
    Plan {
        format: FORMAT,
        header,
        micro_batches: 1,
        inputs: Table::new(),
        groups: groups.collect(),
        ranks: Table::new(),
        communicators: Table::new(),
        kernels: Table::new(),
        segments: Table::new(),
        programs: Table::new(),
        parameters: Vec::new(),
        prediction: Prediction::default(),
    }
}

fn request(text: &str) -> PlacementRequest {
    let cluster = cluster(text);
    PlacementRequest::from_plan(&plan_on(&cluster), &cluster).unwrap()
}

fn check(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../../testdata/backend/request");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn kubernetes_for_two_gpu_types() {
    let manifest = kubernetes_manifest(&request(MIXED), &KubernetesOptions::default()).unwrap();
    check("kubernetes-mixed", &manifest);
}

#[test]
fn kubernetes_with_every_option() {
    let options = KubernetesOptions {
        image: "registry.example/team/trainc:1".to_owned(),
        command: ["sh", "-c", "echo \"$TRAINC_GROUP\"; exec trainc run /job"].map(str::to_owned).to_vec(),
        port: 4711,
        namespace: Some("ml".to_owned()),
        claim: Some("plans".to_owned()),
    };
    check("kubernetes-awkward", &kubernetes_manifest(&request(AWKWARD), &options).unwrap());
}

#[test]
fn slurm_for_two_gpu_types() {
    check("slurm-mixed", &slurm_script(&request(MIXED), &SlurmOptions::default()).unwrap());
}

#[test]
fn slurm_with_every_option() {
    let options = SlurmOptions {
        command: ["sh", "-c", "exec trainc run 'my job'"].map(str::to_owned).to_vec(),
        port: 4711,
        time: Some("1-12:00:00".to_owned()),
        account: Some("team".to_owned()),
    };
    check("slurm-awkward", &slurm_script(&request(AWKWARD), &options).unwrap());
}

#[test]
fn slurm_for_one_group_is_no_heterogeneous_job() {
    let mut request = request(MIXED);
    request.groups.truncate(1);
    let script = slurm_script(&request, &SlurmOptions::default()).unwrap();
    assert!(!script.contains("het"), "{script}");
    assert!(script.contains("\"$SLURM_JOB_NODELIST\""), "{script}");
}

#[test]
fn what_cannot_be_requested() {
    let mixed = cluster(MIXED);
    let mut plan = plan_on(&mixed);
    for (i, (_, group)) in plan.groups.iter_mut().enumerate() {
        if i == 0 {
            group.gpu = "T4".to_owned();
        } else {
            group.count = 5;
        }
    }
    let mut faults = PlacementRequest::from_plan(&plan, &mixed).unwrap_err();

    let amd = "[[group]]\nname = \"amd\"\ngpu = \"MI300X\"\ngpus_per_node = 8\n";
    faults.extend(kubernetes_manifest(&request(amd), &KubernetesOptions::default()).unwrap_err());
    faults.extend(slurm_script(&request(amd), &SlurmOptions::default()).unwrap_err());

    let labels = "labels = { \"bad key\" = \"x\", ok = \"bad value\" }";
    let labelled = format!("[[group]]\nname = \"g\"\ngpu = \"T4\"\ngpus_per_node = 1\n{labels}\n");
    // Cluster files cannot hold a line break in a label; another program that makes requests may.
    let mut labelled = request(&labelled);
    labelled.groups[0].labels.insert("slurm/partition".to_owned(), "x\nrm -rf".to_owned());
    faults.extend(kubernetes_manifest(&labelled, &KubernetesOptions::default()).unwrap_err());
    let options = SlurmOptions { time: Some(String::new()), ..SlurmOptions::default() };
    faults.extend(slurm_script(&labelled, &options).unwrap_err());
    check("refused", &render(&faults));

    let used: std::collections::BTreeSet<&str> = faults.iter().map(|fault| fault.code).collect();
    assert!(used.iter().eq(REQUEST_CODES.iter().map(|(code, _)| code)), "{used:?}");
}

fn render(faults: &Diagnostics) -> String {
    let lines = faults.iter().map(|fault| match &fault.help {
        Some(help) => format!("{fault}\n  help: {help}\n"),
        None => format!("{fault}\n"),
    });
    lines.collect()
}
