# What a batch needs, without a plan being written.
$ trainc estimate $TESTDATA/models/vit.onnx --cluster $TESTDATA/cli/one-t4.toml --bind *=2 --micro-batches 2
exit 0
out| vit on one: 1 x T4
out|   7.85 k trained parameters; no repeated blocks
out|   a step: 2 micro-batches x 2 samples
out|
out| Placement
out|   rank  GPU  group  stage  holds         arena   device  capacity           headroom
out|      0  T4   t4         0  parts 0-18  264 KiB  951 MiB  14.3 GiB  13.4 GiB (93.5 %)
out|
out| Memory of each rank
out|   rank  parameters  gradients  optimizer    saved  transient  communication  workspace  context
out|      0    30.7 KiB   30.7 KiB   61.3 KiB  131 KiB   10.5 KiB            0 B   8.12 MiB  943 MiB
out|
out| Prediction (modelled from the catalogue's figures, not measured)
out|   step 1.06 ms, 3.78 k samples/s, bubble 3.0 %
out|   recomputed: nothing
$ ls .
exit 0
