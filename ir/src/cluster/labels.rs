//! Labels of groups that requests to schedulers are made from: imports set them, and a cluster file may.

/// The name of the GPU type in the `gres.conf` of a Slurm site.
pub const SLURM_GRES_TYPE: &str = "slurm/gres-type";
/// The constraint on nodes to ask Slurm for.
pub const SLURM_CONSTRAINT: &str = "slurm/constraint";
/// The partition to ask Slurm for.
pub const SLURM_PARTITION: &str = "slurm/partition";
/// The device resource to ask Kubernetes for, as of a slice of a GPU.
pub const KUBERNETES_RESOURCE: &str = "kubernetes/resource";
/// Labels that tell the type of a node's GPUs: first the one of GPU feature discovery, then those of clouds.
pub const KUBERNETES_PRODUCTS: [&str; 4] = [
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
];
