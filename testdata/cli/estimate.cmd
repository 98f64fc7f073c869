# What a batch needs, without a plan being written.
$ trainc estimate $TESTDATA/models/vit.onnx --cluster $TESTDATA/cli/one-t4.toml --bind *=2 --micro-batches 2
exit 0
out| vit on one: 1 x T4
out|   24.2 k trained parameters; blocks: 2 of 26 operators
out|   a step: 2 micro-batches x 2 samples
out|
out| Placement
out|   rank  GPU  group  stage  holds                     arena   device  capacity           headroom
out|      0  T4   t4         0  stem, blocks 0-1, head  562 KiB  952 MiB  14.3 GiB  13.4 GiB (93.5 %)
out|
out| Memory of each rank
out|   rank  parameters  gradients  optimizer    saved  transient  communication  workspace  context
out|      0    94.7 KiB   94.7 KiB    189 KiB  169 KiB   14.2 KiB            0 B   8.12 MiB  943 MiB
out|
out| Prediction
out|   step 1.26 ms, 3.19 k samples/s, bubble 2.5 %
out|   recomputed: nothing
out|   times of T4: modelled, as fitted to layers measured on the type
$ ls .
exit 0
