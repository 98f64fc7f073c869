"""Writes the lists of nodes in ../clusters/import that stand for what `kubectl get nodes -o json` prints.

No dump of a real GPU cluster can be published here, so they are made from the labels that the components document: NVIDIA's GPU
feature discovery and device plugin (MIG strategies, time-slicing), GKE's, AMD's and Intel's device plugins.
"""

import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent.parent / "clusters" / "import"


def node(name, labels, resources, capacity=None, ready="True", taints=(), cordoned=False):
    base = {"cpu": "96", "memory": "1056634136Ki", "pods": "110"}
    all_labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **labels}
    spec = {"podCIDR": "10.0.0.0/24"}
    if taints:
        spec["taints"] = [{"key": key, "effect": effect, "value": "true"} for key, effect in taints]
    if cordoned:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": all_labels},
        "spec": spec,
        "status": {
            "allocatable": {**base, **resources},
            "capacity": {**base, **(capacity or resources)},
            "conditions": [
                {"type": "MemoryPressure", "status": "False"},
                {"type": "Ready", "status": ready},
            ],
        },
    }


def gfd(product, memory, count, **more):
    labels = {
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.memory": str(memory),
        "nvidia.com/gpu.count": str(count),
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/mig.strategy": "single",
    }
    labels.update({key.replace("__", "/").replace("_", "."): value for key, value in more.items()})
    return labels


def place(region, zone, instance):
    return {
        "topology.kubernetes.io/region": region,
        "topology.kubernetes.io/zone": zone,
        "node.kubernetes.io/instance-type": instance,
    }


def write(name, nodes, kind="List"):
    document = {"apiVersion": "v1", "items": nodes, "kind": kind, "metadata": {"resourceVersion": ""}}
    (HERE / name).write_text(json.dumps(document, indent=1) + "\n")


A100 = gfd("NVIDIA-A100-SXM4-80GB", 81920, 8)
T4 = gfd("Tesla-T4", 15360, 4)
GPU = "nvidia.com/gpu"

write(
    "kubernetes.json",
    [
        node("control-0", {}, {}, taints=[("node-role.kubernetes.io/control-plane", "NoSchedule")]),
        node("a100-0", {**A100, **place("eu-west-1", "eu-west-1a", "gpu.8xlarge")}, {GPU: "8"}, taints=[(GPU, "NoSchedule")]),
        node("a100-1", {**A100, **place("eu-west-1", "eu-west-1a", "gpu.8xlarge")}, {GPU: "8"}),
        node("a100-2", {**A100, **place("eu-west-1", "eu-west-1b", "gpu.8xlarge")}, {GPU: "7"}, {GPU: "8"}),
        node("a100-3", {**A100, **place("eu-west-1", "eu-west-1a", "gpu.8xlarge")}, {GPU: "8"}, cordoned=True),
        node("a100-4", {**A100, **place("eu-west-1", "eu-west-1a", "gpu.8xlarge")}, {GPU: "8"}, ready="Unknown"),
        node("a100-5", {**A100, **place("eu-west-1", "eu-west-1a", "gpu.8xlarge")}, {GPU: "8"}, taints=[("team", "NoSchedule")]),
        node("a100-6", {**A100, **place("eu-west-1", "eu-west-1a", "gpu.8xlarge")}, {GPU: "0"}, {GPU: "8"}),
        node("t4-0", {**T4, **place("us-east-2", "us-east-2c", "small.4xlarge")}, {GPU: 4}),
    ],
)
single = gfd("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", 4864, 14)
mixed = {**gfd("NVIDIA-A100-SXM4-40GB", 40960, 1), "nvidia.com/mig.strategy": "mixed"}
for profile, count, memory in [("1g.5gb", 2, 4864), ("2g.10gb", 1, 9856), ("3g.20gb", 1, 19968)]:
    mixed[f"nvidia.com/mig-{profile}.count"] = str(count)
    mixed[f"nvidia.com/mig-{profile}.memory"] = str(memory)
write(
    "kubernetes-mig.json",
    [
        node("single-0", single, {GPU: "14"}),
        node("mixed-0", mixed, {GPU: "1", "nvidia.com/mig-1g.5gb": "2", "nvidia.com/mig-2g.10gb": "1", "nvidia.com/mig-3g.20gb": "1"}),
        node("odd-0", mixed, {GPU: "0", "nvidia.com/mig-9x": "1"}),
    ],
    "NodeList",
)
shared = {**gfd("Tesla-T4-SHARED", 15360, 2), "nvidia.com/gpu.replicas": "4"}
write("kubernetes-shared.json", [node("shared-0", shared, {GPU: "8"}), node("whole-0", T4, {GPU: "4"})])
write(
    "kubernetes-others.json",
    [
        node("mi300x-0", {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"}, {"amd.com/gpu": "8"}),
        node("gaudi-0", {}, {"habana.ai/gaudi": "8"}),
        node("gke-0", {"cloud.google.com/gke-accelerator": "nvidia-l4"}, {GPU: "1"}),
        node("bare-0", {}, {GPU: "2"}),
        node("old-0", gfd("GeForce-GTX-970", 4096, 1), {GPU: "1"}),
        node("odd-0", gfd("NVIDIA-A100-SXM4-90GB", 92160, 8), {GPU: "8"}),
    ],
)
write("kubernetes-less-memory.json", [node("vgpu-0", gfd("NVIDIA-A100-SXM4-80GB", 40960, 2), {GPU: "2"})])
