# What differs between two plans, in words; conditions on it decide the exit code.
$ trainc compile $TESTDATA/models/gpt2.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2,seq=64 --micro-batches 4 --pp 2 -o a --quiet
exit 0
$ trainc compile $TESTDATA/models/gpt2.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2,seq=64 --micro-batches 4 --pp 2 --recompute full -o b --quiet
exit 0
$ trainc compile $TESTDATA/models/gpt2.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2,seq=32 --micro-batches 8 --optimizer sgd --pp 3 -o c --quiet
exit 0
$ trainc compile $TESTDATA/models/vit.onnx --cluster $TESTDATA/cli/one-t4.toml --bind *=2 -o d --quiet
exit 0
$ trainc diff a a
exit 0
out| no differences
$ trainc diff a b
exit 0
out| from a to b
out|   step time: 2.25 ms -> 2.68 ms (19.2 % slower)
out|   memory of the fullest GPU: 2.53 GiB -> 2.52 GiB (1.14 MiB less)
out|   bubble: 22.4 % -> 18.7 % (less)
out|   exposed recompute: 0.00 ns -> 734 us (more)
out|   rank 0: memory 2.53 GiB -> 2.52 GiB: saved -1.14 MiB
out|   rank 1: memory 2.52 GiB -> 2.52 GiB: saved -542 KiB, transient +5.00 KiB
out|   stage 0 recomputes 2 blocks instead of 0
out|   stage 1 recomputes 2 blocks instead of 0
out|   option recompute: fit -> full
out|   segments: added block_class_0.recompute
$ trainc diff a/summary.json b/summary.json
exit 0
out| from a/summary.json to b/summary.json
out|   step time: 2.25 ms -> 2.68 ms (19.2 % slower)
out|   memory of the fullest GPU: 2.53 GiB -> 2.52 GiB (1.14 MiB less)
out|   bubble: 22.4 % -> 18.7 % (less)
out|   exposed recompute: 0.00 ns -> 734 us (more)
out|   rank 0: memory 2.53 GiB -> 2.52 GiB: saved -1.14 MiB
out|   rank 1: memory 2.52 GiB -> 2.52 GiB: saved -542 KiB, transient +5.00 KiB
out|   stage 0 recomputes 2 blocks instead of 0
out|   stage 1 recomputes 2 blocks instead of 0
$ trainc diff a/plan.pb c
exit 0
out| from a/plan.pb to c
out|   GPUs: 1 x T4, 1 x A100-SXM-80GB -> 2 x T4, 1 x A100-SXM-80GB
out|   step time: 2.25 ms -> 3.24 ms (44.1 % slower)
out|   memory of the fullest GPU: 2.53 GiB -> 3.73 GiB (47.6 % more)
out|   bubble: 22.4 % -> 32.5 % (more)
out|   stages: 2 -> 3
out|   block 1 moved from stage 0 to stage 1
out|   block 3, head moved from stage 1 to stage 2
out|   micro-batches of a step: 4 -> 8
out|   the training graph changed
out|   option bind seq: 64 -> 32
out|   option optimizer: none -> sgd
out|   option stages: 2 -> 3
out|   segments: added zero_sums
out|   kernels: added 5 x add, attention, attention_grad, 2 x concat, constant, cross_entropy, cross_entropy_grad, 2 x gather, 2 x gather_grad, gelu, gelu_grad, layer_norm, layer_norm_input_grad, layer_norm_param_grad, 15 x matmul, 4 x reduce, 9 x sgd, slice, split, 2 x transpose; removed 9 x adamw, 5 x add, attention, attention_grad, 2 x concat, constant, cross_entropy, cross_entropy_grad, 2 x gather, 2 x gather_grad, gelu, gelu_grad, layer_norm, layer_norm_input_grad, layer_norm_param_grad, 15 x matmul, 4 x reduce, slice, split, 2 x transpose
$ trainc diff a d >-
exit 0
$ trainc diff a b --fail-if peak>+2%,step>+2% --fail-if gpus>+0
exit 1
out| from a to b
out|   step time: 2.25 ms -> 2.68 ms (19.2 % slower)
out|   memory of the fullest GPU: 2.53 GiB -> 2.52 GiB (1.14 MiB less)
out|   bubble: 22.4 % -> 18.7 % (less)
out|   exposed recompute: 0.00 ns -> 734 us (more)
out|   rank 0: memory 2.53 GiB -> 2.52 GiB: saved -1.14 MiB
out|   rank 1: memory 2.52 GiB -> 2.52 GiB: saved -542 KiB, transient +5.00 KiB
out|   stage 0 recomputes 2 blocks instead of 0
out|   stage 1 recomputes 2 blocks instead of 0
out|   option recompute: fit -> full
out|   segments: added block_class_0.recompute
err| error[E1016]: `step>+2%` holds: `step` was 2.25 ms and is 2.68 ms
err|   = help: look at the differences above; accept them by keeping the new plan, or change the condition
err|
$ trainc diff b a --fail-if peak>+2%,step>+2% --quiet
exit 0
$ trainc diff a b --message-format json --fail-if step>+10%
exit 1
out| {"after":2681108622,"before":2248846158,"text":"step time: 2.25 ms -> 2.68 ms (19.2 % slower)","topic":"step","unit":"ps"}
out| {"after":2710539520,"before":2711731456,"text":"memory of the fullest GPU: 2.53 GiB -> 2.52 GiB (1.14 MiB less)","topic":"peak","unit":"bytes"}
out| {"after":187019,"before":223706,"text":"bubble: 22.4 % -> 18.7 % (less)","topic":"bubble","unit":"ppm"}
out| {"after":734067848,"before":0,"text":"exposed recompute: 0.00 ns -> 734 us (more)","topic":"exposed-recompute","unit":"ps"}
out| {"text":"rank 0: memory 2.53 GiB -> 2.52 GiB: saved -1.14 MiB","topic":"rank"}
out| {"text":"rank 1: memory 2.52 GiB -> 2.52 GiB: saved -542 KiB, transient +5.00 KiB","topic":"rank"}
out| {"after":2,"before":0,"text":"stage 0 recomputes 2 blocks instead of 0","topic":"recomputed-blocks"}
out| {"after":2,"before":0,"text":"stage 1 recomputes 2 blocks instead of 0","topic":"recomputed-blocks"}
out| {"after":"full","before":"fit","text":"option recompute: fit -> full","topic":"option"}
out| {"after":["block_class_0.recompute"],"before":[],"text":"segments: added block_class_0.recompute","topic":"segments"}
out| {"differences":10,"failed":["step>+10%"]}
err| {"code":"E1016","severity":"error","message":"`step>+10%` holds: `step` was 2.25 ms and is 2.68 ms","labels":[],"notes":[],"help":"look at the differences above; accept them by keeping the new plan, or change the condition"}
$ trainc diff a/summary.json c/plan.json
exit 0
out| from a/summary.json to c/plan.json
out|   GPUs: 1 x T4, 1 x A100-SXM-80GB -> 2 x T4, 1 x A100-SXM-80GB
out|   step time: 2.25 ms -> 3.24 ms (44.1 % slower)
out|   memory of the fullest GPU: 2.53 GiB -> 3.73 GiB (47.6 % more)
out|   bubble: 22.4 % -> 32.5 % (more)
out|   stages: 2 -> 3
out|   block 1 moved from stage 0 to stage 1
out|   block 3, head moved from stage 1 to stage 2
out|   micro-batches of a step: 4 -> 8
# What is no condition, and what is no plan.
$ trainc diff a b --fail-if peak>2%
exit 2
err| error[E1003]: cannot read the condition `peak>2%`: a change in percent has a sign, as in `+2%`
err|   = help: write METRIC, one of `>`, `>=`, `<`, `<=`, and a number with its unit, as in `peak>+2%`, `peak>=40GiB`, `step>+10ms` or `gpus>8`: a number with a sign is the change from the first plan to the second; metrics are `peak`, `arena`, `parameters`, `saved`, `step`, `recompute`, `exposed-recompute`, `bubble`, `gpus`, `stages`
err|
$ trainc diff a b --fail-if weights>+2%
exit 2
err| error[E1003]: cannot read the condition `weights>+2%`: there is no metric `weights`
err|   = help: write METRIC, one of `>`, `>=`, `<`, `<=`, and a number with its unit, as in `peak>+2%`, `peak>=40GiB`, `step>+10ms` or `gpus>8`: a number with a sign is the change from the first plan to the second; metrics are `peak`, `arena`, `parameters`, `saved`, `step`, `recompute`, `exposed-recompute`, `bubble`, `gpus`, `stages`
err|
$ trainc diff a a/kubernetes.yaml
exit 1
err| error[E0701]: cannot read the plan `a/kubernetes.yaml`: it is no plan: it does not begin as one
err|   = help: give the plan.json or plan.pb of an output directory of `trainc compile`
err|
$ write half.json '{"step_time_s": 1}'
exit 0
$ trainc diff a half.json
exit 1
err| error[E1001]: cannot read the summary `half.json`: missing field `model`
err|   = help: give a `summary.json` that this version of trainc wrote, or the folder or plan itself
err|
