//! Kubernetes: a headless Service and one Indexed Job for each placement group.
//!
//! A Job has one pod template, so every GPU type needs a Job of its own. Pods find each other by the names that the Service
//! gives them. GPUs are selected by the labels of GPU Feature Discovery: `nvidia.com/gpu.product` by equality, which keeps
//! time-sliced (`-SHARED`) and partitioned (`-MIG-...`) GPUs out; types whose label is not known, by compute capability
//! and memory.

use super::codes;
use super::names::{distinct_labels, dns_label, is_label_key, is_label_value, one_line, yaml_label, yaml_text};
use super::placement::{ESTIMATE_ONLY, PlacementRequest, RequestGroup};
use std::fmt::Write as _;
use trainc_ir::{Diagnostic, Diagnostics, KUBERNETES_PRODUCTS, KUBERNETES_RESOURCE, Place};

/// What the plan does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesOptions {
    /// Container image. Default: `trainc:latest`.
    pub image: String,
    /// Command of each pod. Default: `trainc run /job`.
    pub command: Vec<String>,
    /// Port on which the first process listens. Default: 29500.
    pub port: u16,
    /// Namespace; without one, that of the client. Default: none.
    pub namespace: Option<String>,
    /// PersistentVolumeClaim mounted at `/job`, where the plan is; without one, the image has to bring it. Default: none.
    pub claim: Option<String>,
}

impl Default for KubernetesOptions {
    fn default() -> Self {
        Self {
            image: "trainc:latest".to_owned(),
            command: ["trainc", "run", "/job"].map(str::to_owned).to_vec(),
            port: 29_500,
            namespace: None,
            claim: None,
        }
    }
}

/// Kubernetes' limit for a label, less `-` and the index of a node.
const LONGEST_JOB: usize = 63 - 7;
const LONGEST_SERVICE: usize = 40;

/// The manifest, for `kubectl apply -f`.
pub fn kubernetes_manifest(request: &PlacementRequest, options: &KubernetesOptions) -> Result<String, Diagnostics> {
    check(request)?;
    let service = dns_label(&request.name, LONGEST_SERVICE);
    let full: Vec<String> = request.groups.iter().map(|group| format!("{service}-{}", group.name)).collect();
    let jobs = distinct_labels(full.iter().map(String::as_str), LONGEST_JOB);
    let first_job = jobs.first().cloned().unwrap_or_default();
    let context = Context { request, options, service: &service, master: format!("{first_job}-0.{service}") };
    let mut out = context.service_document();
    for ((group, first_process), job) in request.with_first_processes().zip(&jobs) {
        out.push_str("---\n");
        out.push_str(&context.job_document(group, first_process, job));
    }
    Ok(out)
}

const GPU: &str = "nvidia.com/gpu";

fn check(request: &PlacementRequest) -> Result<(), Diagnostics> {
    let mut faults = Vec::new();
    for group in &request.groups {
        let at = || Place::Entity(format!("placement group `{}`", group.name));
        let gpu = &group.gpu;
        if !gpu.cuda || (gpu.gfd_product.is_none() && gpu.compute_capability.is_none()) {
            let message =
                format!("Kubernetes cannot be asked for `{}`: it is no CUDA GPU with a known label", gpu.name);
            let label = "give `gfd_product`, or `compute_capability`, in a `[[gpu]]` table of the cluster file";
            let help = if gpu.cuda { label } else { ESTIMATE_ONLY };
            faults.push(Diagnostic::error(codes::CANNOT_SELECT, message).at(at(), "asks for it").with_help(help));
        }
        if let Some(resource) = group.labels.get(KUBERNETES_RESOURCE).filter(|resource| !is_label_key(resource)) {
            let message =
                format!("`{KUBERNETES_RESOURCE}` of group `{}` cannot be `{}`", group.name, one_line(resource));
            let help = "name a device resource, as `nvidia.com/mig-1g.10gb`";
            faults.push(Diagnostic::error(codes::BAD_LABEL, message).at(at(), "asks for it").with_help(help));
        }
        for (key, value) in node_labels(group) {
            if !is_label_key(key) || !is_label_value(value) {
                let message = format!("`{key}` = `{value}` of group `{}` is no Kubernetes label", group.name);
                let help = "a key is a name with an optional domain and `/` before it; a value has up to 63 letters, \
                            digits, `-`, `_` and `.`";
                faults.push(Diagnostic::error(codes::BAD_LABEL, message).at(at(), "has this label").with_help(help));
            }
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// The labels of the cluster description that nodes have.
fn node_labels(group: &RequestGroup) -> impl Iterator<Item = (&str, &str)> {
    let labels = group.labels.iter().filter(|(key, _)| !key.starts_with("slurm/") && *key != KUBERNETES_RESOURCE);
    labels.map(|(key, value)| (key.as_str(), value.as_str()))
}

struct Context<'a> {
    request: &'a PlacementRequest,
    options: &'a KubernetesOptions,
    service: &'a str,
    master: String,
}

impl Context<'_> {
    fn service_document(&self) -> String {
        let (name, service) = (one_line(&self.request.name), yaml_label(self.service));
        format!(
            "\
# Training job {name}: {size}.
# The jobs are separate objects: they wait for each other once they run, but nothing starts them together.
apiVersion: v1
kind: Service
metadata:
  name: {service}
{namespace}  labels:
    app.kubernetes.io/part-of: {service}
spec:
  clusterIP: None # headless: gives every pod a name of its own
  publishNotReadyAddresses: true # pods look each other up while they start
  selector:
    app.kubernetes.io/part-of: {service}
  ports:
    - name: rendezvous
      port: {port}
",
            size = self.request.size_in_words(),
            port = self.options.port,
            namespace = self.namespace(),
        )
    }

    fn namespace(&self) -> String {
        let namespace = self.options.namespace.as_ref();
        namespace.map_or_else(String::new, |namespace| format!("  namespace: {}\n", yaml_text(namespace)))
    }

    fn job_document(&self, group: &RequestGroup, first_process: u64, job: &str) -> String {
        let (service, nodes, gpus) = (yaml_label(self.service), group.nodes, group.gpus_per_node);
        let group_label = yaml_label(&dns_label(&group.name, 63));
        let command: Vec<String> = self.options.command.iter().map(|word| yaml_text(word)).collect();
        let mut out = format!(
            "\
# Group {name}: {nodes} x {gpus} {gpu}, {processes}.
apiVersion: batch/v1
kind: Job
metadata:
  name: {job}
{namespace}  labels:
    app.kubernetes.io/part-of: {service}
    trainc/group: {group_label}
spec:
  completionMode: Indexed
  completions: {nodes}
  parallelism: {nodes}
  backoffLimit: 0
  template:
    metadata:
      labels:
        app.kubernetes.io/part-of: {service}
        trainc/group: {group_label}
    spec:
      subdomain: {service}
      restartPolicy: Never
{selection}      tolerations:
        - key: nvidia.com/gpu
          operator: Exists
          effect: NoSchedule
      containers:
        - name: trainer
          image: {image}
          command: [{command}]
          env:
            - name: TRAINC_GROUP
              value: {name_text}
            - name: TRAINC_FIRST_PROCESS
              value: \"{first_process}\"
            - name: WORLD_SIZE
              value: \"{world}\"
            - name: LOCAL_WORLD_SIZE
              value: \"{gpus}\"
            - name: MASTER_ADDR
              value: {master}
            - name: MASTER_PORT
              value: \"{port}\"
          resources:
            limits:
              {resource}: {gpus}
          volumeMounts:
            - name: shared-memory # NCCL needs more than the 64 MiB that containers get
              mountPath: /dev/shm
",
            name = one_line(&group.name),
            gpu = group.gpu.name,
            processes = match group.n_ranks() {
                0 | 1 => format!("process {first_process}"),
                n => format!("processes {first_process} to {}", first_process + n - 1),
            },
            namespace = self.namespace(),
            selection = selection(group),
            image = yaml_text(&self.options.image),
            command = command.join(", "),
            name_text = yaml_text(&group.name),
            world = self.request.n_ranks(),
            master = self.master,
            port = self.options.port,
            resource = yaml_label(group.labels.get(KUBERNETES_RESOURCE).map_or(GPU, String::as_str)),
        );
        if self.options.claim.is_some() {
            out.push_str("            - name: job\n              mountPath: /job\n");
        }
        out.push_str(
            "      volumes:\n        - name: shared-memory\n          emptyDir:\n            medium: Memory\n",
        );
        if let Some(claim) = &self.options.claim {
            out.push_str("        - name: job\n          persistentVolumeClaim:\n");
            // Writing to a string cannot fail.
            let _ = writeln!(out, "            claimName: {}", yaml_text(claim));
        }
        out
    }
}

/// `nodeSelector`, and `affinity` where the product label of the type is not known.
fn selection(group: &RequestGroup) -> String {
    let gpu = &group.gpu;
    let mut labels: Vec<(&str, &str)> = node_labels(group).collect();
    // A label that tells the type is asked for in place of the type's own.
    let told = labels.iter().any(|(key, _)| KUBERNETES_PRODUCTS.contains(key));
    let product = gpu.gfd_product.as_ref().filter(|_| !told);
    labels.extend(product.map(|product| (KUBERNETES_PRODUCTS[0], product.as_str())));
    let mut out = String::new();
    if !labels.is_empty() {
        out.push_str("      nodeSelector:\n");
        for (key, value) in labels {
            let _ = writeln!(out, "        {}: {}", yaml_label(key), yaml_label(value));
        }
    }
    if let (None, false, Some((major, minor))) = (&gpu.gfd_product, told, gpu.compute_capability) {
        // `Gt` compares integers; the label counts MiB.
        let floor = (gpu.memory_bytes >> 20).saturating_sub(1);
        let _ = write!(
            out,
            "      affinity: # the product label of this type is not known: the same compute capability, and no less memory
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
              - matchExpressions:
                  - key: nvidia.com/gpu.compute.major
                    operator: In
                    values: [\"{major}\"]
                  - key: nvidia.com/gpu.compute.minor
                    operator: In
                    values: [\"{minor}\"]
                  - key: nvidia.com/gpu.memory
                    operator: Gt
                    values: [\"{floor}\"]
"
        );
    }
    out
}
