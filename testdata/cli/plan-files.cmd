# The two plan files of a folder hold one plan; a difference is found.
$ trainc compile $TESTDATA/models/gpt2.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2,seq=8 --micro-batches 2 --pp 2 -o out --quiet
exit 0
$ trainc compile $TESTDATA/models/gpt2.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2,seq=8 --micro-batches 4 --pp 2 -o other --quiet
exit 0
$ trainc verify out
exit 0
out| the plan computes a training step of `gpt2`: 24 rules hold for 2 ranks, 17 segments, 77 kernels
$ copy other/plan.pb out/plan.pb
exit 0
$ trainc verify out
exit 1
err| error[E1013]: `out/plan.pb` holds another plan than `plan.json`, which was checked
err|   = help: one of them was changed after the model was compiled: compile it again
err|
$ trainc verify out/plan.pb
exit 0
out| the plan computes a training step of `gpt2`: 24 rules hold for 2 ranks, 17 segments, 77 kernels
$ truncate out/plan.pb 2000
exit 0
$ trainc verify out
exit 1
err| error[E0702]: cannot read the plan `out/plan.pb`: the file ends too early
err|   = help: compile the model again
err|
