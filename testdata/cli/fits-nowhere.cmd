# A batch that is far too large for the cluster: how much is missing, and the nearest change that would fit.
$ trainc compile $TESTDATA/models/vit.onnx --cluster $TESTDATA/cli/one-t4.toml --bind *=4194304 --micro-batches 2 -o out
exit 3
err| error[E0605]: no plan fits cluster `one`: of 1 stage, stage 0 lacks 147 GiB on its T4
err|   = note: stage 0 holds parts 0-18 and is in group `t4`
err|   = note: it needs 173,635,009,184 bytes with context and buffers of libraries, a program sees 15,404,630,016 of the GPU: 158,230,379,168 are missing
err|   = note: this would fit too: one GPU of 162 GiB (174,336,506,528 bytes)
err|   = help: the nearest change that fits: micro-batches of 262144, with --global-batch 8388608 --micro-batches 32
err|
$ ls out
exit 0
