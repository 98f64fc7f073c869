# Plans under other schedules than 1F1B: what the report says, the order of work in PyTorch's form, and what cannot be.
$ trainc estimate $TESTDATA/models/gpt2.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2,seq=64 --micro-batches 4 --pp 2 --loss cross-entropy:logits --schedule zb-v
exit 0
out| gpt2 on mixed: 1 x A100-SXM-80GB, 1 x T4
out|   132 k trained parameters; blocks: 4 of 30 operators
out|   a step: 4 micro-batches x 2 samples = 512 tokens
out|   schedule: zb-v with 2 stages per rank
out|
out| Placement
out|   rank  GPU            group  stage  holds                                 arena    device  capacity           headroom
out|      0  A100-SXM-80GB  a100       0  embedding, block 0, block 3, head  3.43 MiB  3.59 GiB  79.3 GiB  75.8 GiB (95.5 %)
out|      1  T4             t4         1  blocks 1-2                         2.83 MiB  3.59 GiB  14.3 GiB  10.8 GiB (75.0 %)
out|
out| Memory of each rank
out|   rank  parameters  gradients  optimizer     saved  transient  communication  workspace  context
out|      0     293 KiB    341 KiB    586 KiB  2.15 MiB   93.8 KiB       2.66 GiB   8.12 MiB  943 MiB
out|      1     221 KiB    221 KiB    442 KiB  1.87 MiB    101 KiB       2.66 GiB   8.12 MiB  943 MiB
out|
out| Prediction
out|   step 1.85 ms, 277 k tokens/s, bubble 5.4 %
out|   recomputed: nothing
out|   times of A100-SXM-80GB, T4: modelled, as fitted to layers measured on the type
$ trainc estimate $TESTDATA/models/gpt2.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2,seq=64 --micro-batches 4 --pp 2 --loss cross-entropy:logits --schedule auto --message-format json
exit 0
out| {"blocks":[{"instances":4,"name":"block class 0","nodes":30,"parameter_bytes":113088,"saved_bytes":421888}],"bubble_share":0.044869860039994006,"cluster":"mixed","micro_batches":4,"model":"gpt2","ranks":[{"arena_bytes":5594880,"breakdown":{"communication":2852126720,"context":988807168,"gradients":349440,"optimizer":600576,"parameters":300288,"saved":4230144,"transient":114432,"workspace":8519680},"busy_s":0.001804874514,"capacity_bytes":85197848576,"device_bytes":3855048448,"gpu":"A100-SXM-80GB","group":"a100","headroom_bytes":81342800128,"rank":0,"recomputed_blocks":0,"stage":0,"units":["embedding","block 0","block 3","head"]},{"arena_bytes":4749568,"breakdown":{"communication":2852126720,"context":988807168,"gradients":226176,"optimizer":452352,"parameters":226176,"saved":3741696,"transient":103168,"workspace":8519680},"busy_s":0.0017002762,"capacity_bytes":15404630016,"device_bytes":3854203136,"gpu":"T4","group":"t4","headroom_bytes":11550426880,"rank":1,"recomputed_blocks":0,"stage":1,"units":["block 1","block 2"]}],"recompute":{"exposed_s":0.0,"hidden_s":0.0,"total_s":0.0},"samples_per_s":4359.893050624498,"schedule":"searched","stages":2,"stages_per_rank":2,"step_time_s":0.001834907395,"tokens_per_s":279033.15523996786,"version":1}
$ trainc compile $TESTDATA/models/gpt2.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2,seq=64 --micro-batches 4 --pp 2 --loss cross-entropy:logits --schedule interleaved --loops 3 --emit torch-schedule
exit 0
out| 0F0,0F1,2F0,2F1,4F0,4F1,0F2,4B0,0F3,4B1,2F2,2B0,2F3,2B1,4F2,0B0,4F3,0B1,4B2,4B3,2B2,2B3,0B2,0B3
out| 1F0,1F1,3F0,3F1,5F0,5B0,5F1,5B1,1F2,3B0,1F3,3B1,3F2,1B0,3F3,1B1,5F2,5B2,5F3,5B3,3B2,3B3,1B2,1B3
$ trainc compile $TESTDATA/models/gpt2.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2,seq=64 --micro-batches 4 --pp 2 --loss cross-entropy:logits --schedule 1f1b --loops 2 -o out
exit 2
err| error[E0609]: expected 1 stage per rank for 1f1b, found 2
err|   = help: choose another --schedule, or other numbers with --pp, --loops and --micro-batches
err|
$ trainc compile $TESTDATA/models/gpt2.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2,seq=64 --micro-batches 4 --pp 4 --loss cross-entropy:logits --schedule interleaved --loops 2 -o out
exit 3
err| error[E0602]: expected at most 6 stages, one for each unit of the model, found 8
err|   = note: the units are embedding, blocks 0-3, head
err|   = help: the nearest change that fits: --pp 3
err|
$ trainc compile $TESTDATA/models/gpt2.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2,seq=64 --micro-batches 4 --schedule pipedream -o out
exit 2
err| error[E1003]: no schedule is named `pipedream`: expected gpipe, 1f1b, interleaved, breadth-first, breadth-first:N, zb-h1 or zb-v
err|   = help: or write `auto` to have the fastest taken
err|
$ trainc compile $TESTDATA/models/gpt2.onnx --emit torch-schedule
exit 2
err| error[E1003]: a plan is made for a cluster
err|   = help: describe it with --cluster FILE
err|
