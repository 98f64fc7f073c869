# What trainc makes of a cluster: links that differ, regions, GPUs that are for estimates only.
$ trainc cluster show $TESTDATA/clusters/everything.toml
exit 0
out| everything: 26 GPUs on 6 nodes in 3 groups, 56.00 USD/h and more
out|   group  GPU             nodes  GPUs each  usable memory  inside a node              USD/h each  region
out|   new    H100-SXM-80GB       2          8       78.6 GiB  NVLink 360 GB/s, 2.50 us         3.50  eu-west
out|   old    V100-SXM2-32GB      1          4       30.6 GiB  PCIe 15.754 GB/s, 10.0 us           -
out|   own    A30                 3          2       22.6 GiB  PCIe 31.508 GB/s, 10.0 us           -
out|
out|   between nodes  one direction
out|   any two        25 GB/s, 3.00 us
out|   new - old      1.25 GB/s, 40.0 us
out|   old -> own     0.625 GB/s, 3.00 us
out|   own -> old     0.125 GB/s, 3.00 us
out|   own - own      not connected
out|
out|   GPU type        count    memory  native        TFLOP/s
out|   H100-SXM-80GB      16  79.6 GiB  f32 f16 bf16  f32 67, f16 989, bf16 989
out|   V100-SXM2-32GB      4  31.7 GiB  f32 f16       f32 15.7, f16 125
out|   A30                 6  23.8 GiB  f32 f16 bf16  f32 10.3, f16 165, bf16 165
$ trainc cluster show $TESTDATA/clusters/regions.toml
exit 0
out| regions: 34 GPUs on 6 nodes in 5 groups, 41.44 USD/h and more
out|   group  GPU            nodes  GPUs each  usable memory  inside a node              USD/h each  region
out|   eu-a   A100-SXM-80GB      2          8       78.4 GiB  NVLink 300 GB/s, 8.00 us         1.39  eu
out|   eu-b   T4                 1          4       13.4 GiB  PCIe 15.754 GB/s, 10.0 us           -  eu
out|   us     H100-SXM-80GB      1          8       78.0 GiB  NVLink 450 GB/s, 8.00 us         2.40  us
out|   ap     L4                 1          4       20.9 GiB  PCIe 31.508 GB/s, 10.0 us           -  ap
out|   lab    RTX-3090           1          2       20.6 GiB  PCIe 31.508 GB/s, 10.0 us           -
out|
out|   between nodes    one direction
out|   any two          12.5 GB/s, 10.0 us
out|   of two regions   0.125 GB/s, 120 ms
out|   regions eu - us  0.625 GB/s, 80.0 ms
out|   regions us - ap  not connected
out|   eu-b - ap        0.25 GB/s, 10.0 us
out|
out|   GPU type       count    memory  native        TFLOP/s
out|   A100-SXM-80GB     16  80.0 GiB  f32 f16 bf16  f32 19.5, f16 312, bf16 312
out|   T4                 4  15.0 GiB  f32 f16       f32 8.1, f16 65
out|   H100-SXM-80GB      8  79.6 GiB  f32 f16 bf16  f32 67, f16 989, bf16 989
out|   L4                 4  22.5 GiB  f32 f16 bf16  f32 30.3, f16 121, bf16 121
out|   RTX-3090           2  22.2 GiB  f32 f16 bf16  f32 35.6, f16 71.2, bf16 71.2
$ trainc cluster show $TESTDATA/clusters/import/kubernetes-others.json
exit 0
out| kubernetes-others: 17 GPUs on 3 nodes in 3 groups
out|   group   GPU     nodes  GPUs each  usable memory  inside a node               USD/h each  region
out|   mi300x  MI300X      1          8        188 GiB  NVLink 448 GB/s, 8.00 us             -
out|   gaudi2  Gaudi2      1          8       93.5 GiB  NVLink 262.5 GB/s, 8.00 us           -
out|   l4      L4          1          1       20.9 GiB                                       -
out|
out|   between nodes  one direction
out|   any two        1.25 GB/s, 10.0 us
out|
out|   GPU type  count    memory  native        TFLOP/s
out|   MI300X        8   190 GiB  f32 f16 bf16  f32 163.4, f16 1300, bf16 1300  estimates only: no CUDA
out|   Gaudi2        8  95.0 GiB  f32 f16 bf16  f32 5.5, bf16 432               estimates only: no CUDA
out|   L4            1  22.5 GiB  f32 f16 bf16  f32 30.3, f16 121, bf16 121
err| warning[W0320]: 1 node left out: unknown GPU type `GeForce-GTX-970`
err|   = note: `old-0`
err|   = help: describe it in a `[[gpu]]` table of a TOML file, and import both files together: `trainc cluster import`
err|
err| warning[W0320]: 1 node left out: unknown GPU type `NVIDIA-A100-SXM4-90GB`
err|   = note: `odd-0`
err|   = help: did you mean `A100-SXM-40GB`? otherwise describe it in a `[[gpu]]` table of a TOML file, and import both files together: `trainc cluster import`
err|
err| warning[W0320]: 1 node left out: nothing says of which type their GPUs are
err|   = note: `bare-0`
err|   = help: say it with `trainc cluster import --gpu TYPE`; on Kubernetes run GPU feature discovery, on Slurm give `Type=` in gres.conf
err|
err| warning[W0321]: GPU type `habana.ai/gaudi` is taken to be `Gaudi2`; it may as well be `Gaudi3`
err|   = note: `gaudi-0`
err|   = help: change `gpu` in the file that `trainc cluster import` writes, or name the type in a node feature
err|
err| warning[W0322]: the network between nodes is taken to carry 10 Gb/s: the description does not say
err|   = help: say it with `trainc cluster import --bandwidth-gbps N`, or in the file that it writes
err|
$ trainc cluster show $TESTDATA/clusters/two-nodes.toml --message-format json
exit 0
out| {"gpus":8,"groups":[{"capacity_bytes":85197848576,"compiles":true,"gpu":"A100-SXM-80GB","gpus_per_node":4,"labels":{},"link":{"bytes_per_s":300000000000,"kind":"nvlink","latency_ps":8000000},"memory_bytes":85899345920,"name":"a100","native":["f32","f16","bf16"],"nodes":1,"peak_flops":{"bf16":312000000000000,"f16":312000000000000,"f32":19500000000000},"price_micro_usd_per_gpu_hour":1390000,"region":null,"usable_bytes":84200521728},{"capacity_bytes":15404630016,"compiles":true,"gpu":"T4","gpus_per_node":4,"labels":{},"link":{"bytes_per_s":15754000000,"kind":"pcie","latency_ps":10000000},"memory_bytes":16106127360,"name":"t4","native":["f32","f16"],"nodes":1,"peak_flops":{"f16":65000000000000,"f32":8100000000000},"price_micro_usd_per_gpu_hour":null,"region":null,"usable_bytes":14407303168}],"name":"mixed","network":{"between_regions":null,"default":{"bytes_per_s":12500000000,"latency_ps":5000000},"links":[]}}
# What schedulers say of their nodes, wherever a cluster is described.
$ trainc cluster import $TESTDATA/clusters/import/slurm-22.05/slurm.conf $TESTDATA/clusters/import/slurm-22.05/gres.conf --bandwidth-gbps 200 --latency-us 2.5 -o cluster.toml
exit 0
out| t: 14 GPUs on 4 nodes in 3 groups, 15.92 USD/h and more
out| wrote cluster.toml
$ cat cluster.toml
exit 0
out| # Imported by trainc.
out| name = "t"
out|
out| # `a1`, `a2`
out| [[group]]
out| name = "a100-sxm-80gb"
out| gpu = "A100-SXM-80GB"
out| nodes = 2
out| gpus_per_node = 4
out| labels = { "slurm/constraint" = "a100_80g", "slurm/gres-type" = "a100", "slurm/partition" = "all" }
out|
out| # `h1`
out| [[group]]
out| name = "h100-sxm-80gb"
out| gpu = "H100-SXM-80GB"
out| nodes = 1
out| gpus_per_node = 2
out| labels = { "slurm/constraint" = "h100_80g", "slurm/gres-type" = "h100", "slurm/partition" = "all" }
out|
out| # `v1`
out| [[group]]
out| name = "v100-sxm2-32gb"
out| gpu = "V100-SXM2-32GB"
out| nodes = 1
out| gpus_per_node = 4
out| labels = { "slurm/constraint" = "v100_32g", "slurm/gres-type" = "v100", "slurm/partition" = "all" }
out|
out| [network]
out| bandwidth_gbps = 200
out| latency_us = 2.5
$ trainc cluster show cluster.toml
exit 0
out| t: 14 GPUs on 4 nodes in 3 groups, 15.92 USD/h and more
out|   group           GPU             nodes  GPUs each  usable memory  inside a node             USD/h each  region
out|   a100-sxm-80gb   A100-SXM-80GB       2          4       78.4 GiB  NVLink 300 GB/s, 8.00 us        1.39
out|   h100-sxm-80gb   H100-SXM-80GB       1          2       78.0 GiB  NVLink 450 GB/s, 8.00 us        2.40
out|   v100-sxm2-32gb  V100-SXM2-32GB      1          4       30.1 GiB  NVLink 150 GB/s, 8.00 us           -
out|
out|   between nodes  one direction
out|   any two        25 GB/s, 2.50 us
out|
out|   GPU type        count    memory  native        TFLOP/s
out|   A100-SXM-80GB       8  80.0 GiB  f32 f16 bf16  f32 19.5, f16 312, bf16 312
out|   H100-SXM-80GB       2  79.6 GiB  f32 f16 bf16  f32 67, f16 989, bf16 989
out|   V100-SXM2-32GB      4  31.7 GiB  f32 f16       f32 15.7, f16 125
$ trainc cluster import $TESTDATA/clusters/import/kubernetes-shared.json --shared --gpu T4 --quiet
exit 0
out| # Imported by trainc.
out| name = "kubernetes-shared"
out|
out| # `shared-0`
out| [[group]]
out| name = "t4"
out| gpu = "T4"
out| nodes = 1
out| gpus_per_node = 2
out| labels = { "nvidia.com/gpu.product" = "Tesla-T4-SHARED" }
out|
out| # `whole-0`
out| [[group]]
out| name = "t4-2"
out| gpu = "T4"
out| nodes = 1
out| gpus_per_node = 4
out|
out| [network] # assumed: the description says nothing of the network
out| bandwidth_gbps = 10
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --cluster $TESTDATA/clusters/import/sinfo-22.05.json
exit 0
out| gpt2 on sinfo-22: 1 x A100-SXM-80GB
out|   132 k trained parameters; blocks: 4 of 30 operators
out|   a step: 1 micro-batch x 2 samples = 16 tokens
out|
out| Placement
out|   rank  GPU            group          stage  holds                           arena   device  capacity           headroom
out|      0  A100-SXM-80GB  a100-sxm-80gb      0  embedding, blocks 0-3, head  2.34 MiB  953 MiB  79.3 GiB  78.4 GiB (98.8 %)
out|
out| Memory of each rank
out|   rank  parameters  gradients  optimizer    saved  transient  communication  workspace  context
out|      0     514 KiB    562 KiB   1.00 MiB  228 KiB   60.7 KiB            0 B   8.12 MiB  943 MiB
out|
out| Prediction
out|   step 944 us, 16.9 k tokens/s, bubble 3.2 %
out|   recomputed: nothing
out|   times of A100-SXM-80GB: modelled, as fitted to layers measured on the type
out|   also considered: 3 x A100-SXM-80GB (56.9 us faster, but too idle for its GPUs); 1 x V100-SXM2-32GB (10.4 us slower)
err| note[N0319]: 1 node left out: drained
err|   = note: `h1`
err|
err| warning[W0322]: the network between nodes is taken to carry 10 Gb/s: the description does not say
err|   = help: say it with `trainc cluster import --bandwidth-gbps N`, or in the file that it writes
err|
err| note[N0406]: the loss is the cross-entropy of `logits` against the next token of `input_ids`
err|   = help: say so with `--loss cross-entropy:logits`, or name another loss
err|
# What cannot be used.
$ trainc cluster show $TESTDATA/clusters/import/bad-truncated.json
exit 1
err| error[E0314]: `$TESTDATA/clusters/import/bad-truncated.json` is not the JSON of a scheduler: it ends too early
err|    --> $TESTDATA/clusters/import/bad-truncated.json:102:20
err|     |
err| 102 |    "apiVersion": "v1
err|     |                    ^ EOF while parsing a string
err|     = help: was it cut off while it was written or copied?
err|
$ trainc cluster show $TESTDATA/clusters/import/bad-pods.json
exit 1
err| error[E0315]: `$TESTDATA/clusters/import/bad-pods.json` is no list of nodes: it is of the kind `Pod`
err|   = help: give the output of `kubectl get nodes -o json` or of `sinfo --json`
err|
$ trainc cluster import $TESTDATA/clusters/import/bad-expressions.conf
exit 1
err| error[E0317]: the host list `a[1-4` cannot be read: its brackets do not match
err|   = help: write it as `gpu[01-16]`
err|
err| error[E0317]: the host list `b[0-999999999]` cannot be read: it names more than 100000 hosts
err|   = help: write it as `gpu[01-16]`
err|
err| error[E0317]: `$TESTDATA/clusters/import/bad-expressions.conf` has a line that cannot be read, at `oops`
err|  --> $TESTDATA/clusters/import/bad-expressions.conf:5:1
err|   |
err| 5 | NodeName=e1 oops Gres=gpu:a100:4
err|   | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ expected KEY=VALUE
err|
err| error[E0306]: node `f1` is described twice
err|   = help: give every node once
err|
err| error[E0317]: the resources of node `c1` cannot be read: `gpu:a100:-4`
err|   = help: expected `gpu:COUNT` or `gpu:TYPE:COUNT`
err|
err| error[E0305]: node `d1` has 18446744073709551615 GPUs, expected at most 1024
err|   = help: check what the node reports
err|
$ trainc cluster import $TESTDATA/clusters/import/untyped.conf --gpu A4O
exit 1
err| error[E0307]: unknown GPU type `A4O`
err|   = help: did you mean `A40`?
err|
$ trainc cluster import $TESTDATA/clusters/import/untyped.conf --bandwidth-gbps nan
exit 2
err| error[E1003]: --bandwidth-gbps must be from 0.00001 to 1000000, found NaN
err|
# Machines that cannot reach each other: a plan on one of them, none on both.
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --cluster $TESTDATA/cli/apart.toml --pp 2
exit 3
err| error[E0604]: the groups of cluster `apart` are not linked as 2 stages need
err|   = help: the nearest change that fits: --pp 1
err|
# GPUs that are for estimates only: the estimate names them, and compile has no plan.
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --cluster $TESTDATA/cli/amd.toml --pp 2
exit 0
out| gpt2 on amd: 2 x MI300X
out|   132 k trained parameters; blocks: 4 of 30 operators
out|   a step: 1 micro-batch x 2 samples = 16 tokens
out|
out| Placement
out|   rank  GPU     group   stage  holds                     arena    device  capacity          headroom
out|      0  MI300X  mi300x      0  embedding, blocks 0-1  1.30 MiB  2.52 GiB   189 GiB  187 GiB (98.7 %)
out|      1  MI300X  mi300x      1  blocks 2-3, head       1.23 MiB  2.52 GiB   189 GiB  187 GiB (98.7 %)
out|
out| Memory of each rank
out|   rank  parameters  gradients  optimizer    saved  transient  communication  workspace  context
out|      0     293 KiB    293 KiB    586 KiB  109 KiB   52.8 KiB       1.59 GiB   8.12 MiB  943 MiB
out|      1     269 KiB    269 KiB    538 KiB  125 KiB   55.8 KiB       1.59 GiB   8.12 MiB  943 MiB
out|
out| Prediction
out|   step 894 us, 17.9 k tokens/s, bubble 49.1 %
out|   recomputed: nothing
out|   times of MI300X: modelled, from the datasheet and the efficiency of other types
err| note[N0406]: the loss is the cross-entropy of `logits` against the next token of `input_ids`
err|   = help: say so with `--loss cross-entropy:logits`, or name another loss
err|
err| note[N0608]: `MI300X` is estimated only: trainc emits no programs for it, and `compile` leaves it out
err|
$ trainc compile $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --cluster $TESTDATA/cli/amd.toml -o out
exit 3
err| error[E0601]: no GPU of cluster `amd` can run the model
err|   = note: group `mi300x` of MI300X: no program can be emitted for a MI300X
err|   = help: `trainc estimate` plans on GPUs without CUDA too
err|
# Very many groups: equal ones are one, and of unlike ones some are looked at.
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --cluster $TESTDATA/cli/many-groups.toml
exit 0
out| gpt2 on many: 1 x A100-SXM-80GB
out|   132 k trained parameters; blocks: 4 of 30 operators
out|   a step: 1 micro-batch x 2 samples = 16 tokens
out|
out| Placement
out|   rank  GPU            group  stage  holds                           arena   device  capacity           headroom
out|      0  A100-SXM-80GB  g9         0  embedding, blocks 0-3, head  2.34 MiB  953 MiB  79.3 GiB  78.4 GiB (98.8 %)
out|
out| Memory of each rank
out|   rank  parameters  gradients  optimizer    saved  transient  communication  workspace  context
out|      0     514 KiB    562 KiB   1.00 MiB  228 KiB   60.7 KiB            0 B   8.12 MiB  943 MiB
out|
out| Prediction
out|   step 944 us, 16.9 k tokens/s, bubble 3.2 %
out|   recomputed: nothing
out|   times of A100-SXM-80GB: modelled, as fitted to layers measured on the type
out|   also considered: 3 x A100-SXM-80GB (56.9 us faster, but too idle for its GPUs); 1 x A100-SXM-80GB (not faster)
err| note[N0606]: 21 groups are planned with as 20: those of equal nodes as one
err|   = help: give groups labels, regions or links to tell them apart
err|
err| note[N0607]: of 20 unlike groups the 12 most promising are planned with
err|   = note: `g8`, `g9`, `g10`, `g11`, `g12`, `g13`, `g14`, `g15`, `g16`, `g17`, `g18`, `g19`
err|   = help: describe a cluster of fewer groups to choose them yourself
err|
err| note[N0406]: the loss is the cross-entropy of `logits` against the next token of `input_ids`
err|   = help: say so with `--loss cross-entropy:logits`, or name another loss
err|
