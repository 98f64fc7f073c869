# What compile and estimate report: of a plan for two unlike GPUs, and of one whose number of stages was free.
$ trainc compile $TESTDATA/models/gpt2.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2,seq=64 --micro-batches 4 --pp 2 -o out 2>-
exit 0
out| gpt2 on mixed: 1 x T4, 1 x A100-SXM-80GB
out|   132 k trained parameters; blocks: 4 of 30 operators
out|   a step: 4 micro-batches x 2 samples = 512 tokens
out|
out| Placement
out|   rank  GPU            group  stage  holds                     arena    device  capacity           headroom
out|      0  T4             t4         0  embedding, blocks 0-1  2.98 MiB  2.53 GiB  14.3 GiB  11.8 GiB (82.4 %)
out|      1  A100-SXM-80GB  a100       1  blocks 2-3, head       2.23 MiB  2.52 GiB  79.3 GiB  76.8 GiB (96.8 %)
out|
out| Memory of each rank
out|   rank  parameters  gradients  optimizer     saved  transient  communication  workspace  context
out|      0     293 KiB    293 KiB    586 KiB  1.71 MiB    137 KiB       1.59 GiB   8.12 MiB  943 MiB
out|      1     269 KiB    269 KiB    538 KiB  1.05 MiB    133 KiB       1.59 GiB   8.12 MiB  943 MiB
out|
out| Prediction
out|   step 2.25 ms, 228 k tokens/s, bubble 22.4 %
out|   recomputed: nothing
out|   times of T4, A100-SXM-80GB: modelled, as fitted to layers measured on the type
out|
out| wrote plan.json, plan.pb, kubernetes.yaml, slurm.sh, summary.json, model.path to out
$ trainc estimate $TESTDATA/models/gpt2.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2,seq=64 --micro-batches 4 2>-
exit 0
out| gpt2 on mixed: 1 x A100-SXM-80GB
out|   132 k trained parameters; blocks: 4 of 30 operators
out|   a step: 4 micro-batches x 2 samples = 512 tokens
out|
out| Placement
out|   rank  GPU            group  stage  holds                           arena   device  capacity           headroom
out|      0  A100-SXM-80GB  a100       0  embedding, blocks 0-3, head  3.98 MiB  955 MiB  79.3 GiB  78.4 GiB (98.8 %)
out|
out| Memory of each rank
out|   rank  parameters  gradients  optimizer     saved  transient  communication  workspace  context
out|      0     514 KiB    562 KiB   1.00 MiB  1.78 MiB    139 KiB            0 B   8.12 MiB  943 MiB
out|
out| Prediction
out|   step 3.28 ms, 156 k tokens/s, bubble 0.9 %
out|   recomputed: nothing
out|   times of A100-SXM-80GB: modelled, as fitted to layers measured on the type
out|   also considered: 1 x A100-SXM-80GB, 4 x T4 (1.67 ms faster, but too idle for its GPUs); 1 x A100-SXM-80GB, 1 x T4 (1.04 ms faster, but too idle for its GPUs)
$ trainc estimate $TESTDATA/frontend/onnx/external/multi_external_files.onnx --loss sum:Y --cluster $TESTDATA/clusters/mixed.toml 2>-
exit 0
out| multi_external_files on mixed: 1 x A100-SXM-80GB
out|   20 trained parameters; no repeated blocks
out|   a step: 1 micro-batch x 1 sample
out|
out| Placement
out|   rank  GPU            group  stage  holds      arena   device  capacity           headroom
out|      0  A100-SXM-80GB  a100       0  parts 0-2  608 B  951 MiB  79.3 GiB  78.4 GiB (98.8 %)
out|
out| Memory of each rank
out|   rank  parameters  gradients  optimizer  saved  transient  communication  workspace  context
out|      0        80 B       80 B      160 B   48 B      240 B            0 B   8.12 MiB  943 MiB
out|
out| Prediction
out|   step 69.0 us, 14.5 k samples/s, bubble 43.5 %
out|   recomputed: nothing
out|   times of A100-SXM-80GB: modelled, as fitted to layers measured on the type
out|   also considered: 1 x T4 (5.37 ns slower); 1 x A100-SXM-80GB, 1 x T4 (7.00 us slower)
