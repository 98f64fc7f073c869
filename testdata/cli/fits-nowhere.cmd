# A batch that is far too large for the cluster: how much is missing, and the nearest change that would fit.
$ trainc compile $TESTDATA/models/vit.onnx --cluster $TESTDATA/cli/one-t4.toml --bind *=4194304 --micro-batches 2 -o out
exit 3
err| error[E0605]: no plan fits cluster `one`: of 1 stage, stage 0 lacks 208 GiB on its T4
err|   = note: stage 0 holds stem, blocks 0-1, head and is in group `t4`
err|   = note: it needs 238,680,537,760 bytes with context and buffers of libraries, a program sees 15,404,630,016 of the GPU: 223,275,907,744 are missing
err|   = note: this would fit too: one GPU of 223 GiB (239,382,035,104 bytes)
err|   = help: the nearest change that fits: micro-batches of 131072, with --global-batch 8388608 --micro-batches 64
err|
$ ls out
exit 0
