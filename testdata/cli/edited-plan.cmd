# A plan as it was compiled, plans edited by hand in several ways, one of a newer format, one cut off, and what is no plan.
$ trainc compile $TESTDATA/models/gpt2.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2,seq=8 --micro-batches 4 --pp 2 -o out --quiet
exit 0
$ ls out
exit 0
out| kubernetes.yaml
out| model.path
out| plan.json
out| plan.pb
out| slurm.sh
out| summary.json
$ trainc verify out --quiet
exit 0
$ copy out/plan.json good.json
exit 0
$ replace out/plan.json '"kind": "saved", "offsets": [' '"kind": "saved", "offsets": [64, '
exit 0
$ trainc verify out --quiet
exit 1
err| error[E0750]: plan rule P21 is broken: expected a value in b36 `grad.lm_head.weight.0` (0 to 49152), found a value at 64 to 3136
err|  --> rank r0, program p0, item 8, instr 8 (i=0): here
err|   = help: the plan was changed after it was compiled, or is damaged: compile the model again
err|
err| error[E0750]: plan rule P21 is broken: expected a value in b0[i] `v56` (1229568 to 1232640), found what was written there as slot 0 of b35
err|  --> rank r0, program p0, item 8, instr 7 (i=1): here
err|   = help: the plan was changed after it was compiled, or is damaged: compile the model again
err|
err| error[E0750]: plan rule P21 is broken: expected a value in b0[i] `v56` (1210880 to 1213952), found undefined bytes
err|  --> rank r0, program p0, item 8, instr 7 (i=2): here
err|   = help: the plan was changed after it was compiled, or is damaged: compile the model again
err|
err| error[E0750]: plan rule P21 is broken: expected a value in b36 `grad.lm_head.weight.0` (0 to 49152), found a value at 64 to 3136
err|  --> rank r0, program p0, item 8, instr 8 (i=2): here
err|   = help: the plan was changed after it was compiled, or is damaged: compile the model again
err|
err| error[E0750]: plan rule P21 is broken: expected a value in b0[3] `v56` (64 to 3136), found a value at 0 to 49152
err|  --> rank r0, program p0, item 11: here
err|   = help: the plan was changed after it was compiled, or is damaged: compile the model again
err|
$ copy good.json out/plan.json
exit 0
$ replace out/plan.json '"op": "gather", "attrs": {"axis": 0}' '"op": "gather", "attrs": {"axis": 1}'
exit 0
$ trainc verify out --quiet
exit 1
err| error[E0750]: plan rule P4 is broken: `gather`: expected results (f32[256,2,8]), found (f32[2,8,48])
err|  --> kernel k0: here
err|   = help: the plan was changed after it was compiled, or is damaged: compile the model again
err|
$ copy good.json out/plan.json
exit 0
$ replace out/plan.json '"op": "gather"' '"op": "gathre"'
exit 0
$ trainc verify out --quiet
exit 1
err| error[E0704]: cannot read the plan `out/plan.json`: at `kernels[0]`, line 31, column 107: unknown operator `gathre`
err|   = help: compile the model again; a plan is not meant to be edited by hand
err|
$ copy good.json out/plan.json
exit 0
$ replace out/plan.json '"format": 1' '"format": 99'
exit 0
$ trainc verify out --quiet
exit 1
err| error[E0703]: cannot read the plan `out/plan.json`: it was written by a newer trainc, format 99; this one reads up to 1
err|   = help: update trainc, or compile the model again
err|
$ copy good.json out/plan.json
exit 0
$ truncate out/plan.json 20000
exit 0
$ trainc verify out --quiet
exit 1
err| error[E0702]: cannot read the plan `out/plan.json`: the file ends too early
err|   = help: compile the model again
err|
$ write broken.json "{}"
exit 0
$ trainc verify broken.json
exit 1
err| error[E0701]: cannot read the plan `broken.json`: it is no plan: it does not say its format
err|   = help: give the plan.json or plan.pb of an output directory of `trainc compile`
err|
$ trainc verify nowhere.json
exit 1
err| error[E1001]: cannot read the plan `nowhere.json`: No such file or directory (os error 2)
err|   = help: give the folder that `trainc compile` wrote
err|
