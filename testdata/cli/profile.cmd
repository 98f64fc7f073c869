# Measured times in place of modelled ones.
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=64 --cluster $TESTDATA/cli/one-t4.toml --profile $TESTDATA/cli/profile.toml
exit 0
out| gpt2 on one: 1 x T4
out|   132 k trained parameters; blocks: 4 of 30 operators
out|   a step: 1 micro-batch x 2 samples = 128 tokens
out|
out| Placement
out|   rank  GPU  group  stage  holds                           arena   device  capacity           headroom
out|      0  T4   t4         0  embedding, blocks 0-3, head  3.97 MiB  955 MiB  14.3 GiB  13.4 GiB (93.5 %)
out|
out| Memory of each rank
out|   rank  parameters  gradients  optimizer     saved  transient  communication  workspace  context
out|      0     514 KiB    562 KiB   1.00 MiB  1.78 MiB    139 KiB            0 B   8.12 MiB  943 MiB
out|
out| Prediction
out|   step 58.5 ms, 2.19 k tokens/s, bubble 0.1 %
out|   recomputed: nothing
out|   times of T4: measured, from the profile, for the blocks and micro-batches that it has; the rest measured, from the profile, where it has rates, else modelled
err| note[N0406]: the loss is the cross-entropy of `logits` against the next token of `input_ids`
err|   = help: say so with `--loss cross-entropy:logits`, or name another loss
err|
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=64 --cluster $TESTDATA/cli/one-t4.toml --profile $TESTDATA/cli/profile.csv
exit 0
out| gpt2 on one: 1 x T4
out|   132 k trained parameters; blocks: 4 of 30 operators
out|   a step: 1 micro-batch x 2 samples = 128 tokens
out|
out| Placement
out|   rank  GPU  group  stage  holds                           arena   device  capacity           headroom
out|      0  T4   t4         0  embedding, blocks 0-3, head  3.97 MiB  955 MiB  14.3 GiB  13.4 GiB (93.5 %)
out|
out| Memory of each rank
out|   rank  parameters  gradients  optimizer     saved  transient  communication  workspace  context
out|      0     514 KiB    562 KiB   1.00 MiB  1.78 MiB    139 KiB            0 B   8.12 MiB  943 MiB
out|
out| Prediction
out|   step 58.3 ms, 2.19 k tokens/s, bubble 0.1 %
out|   recomputed: nothing
out|   times of T4: measured, from the profile, for the blocks and micro-batches that it has; the rest modelled, as fitted to layers measured on the type
err| note[N0406]: the loss is the cross-entropy of `logits` against the next token of `input_ids`
err|   = help: say so with `--loss cross-entropy:logits`, or name another loss
err|
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=4,seq=64 --cluster $TESTDATA/cli/one-t4.toml --profile $TESTDATA/cli/profile.csv
exit 0
out| gpt2 on one: 1 x T4
out|   132 k trained parameters; blocks: 4 of 30 operators
out|   a step: 1 micro-batch x 4 samples = 256 tokens
out|
out| Placement
out|   rank  GPU  group  stage  holds                           arena   device  capacity           headroom
out|      0  T4   t4         0  embedding, blocks 0-3, head  5.88 MiB  957 MiB  14.3 GiB  13.4 GiB (93.5 %)
out|
out| Memory of each rank
out|   rank  parameters  gradients  optimizer     saved  transient  communication  workspace  context
out|      0     514 KiB    562 KiB   1.00 MiB  3.57 MiB    268 KiB            0 B   8.12 MiB  943 MiB
out|
out| Prediction
out|   step 1.22 ms, 210 k tokens/s, bubble 2.5 %
out|   recomputed: nothing
out|   times of T4: modelled, as fitted to layers measured on the type
err| note[N0406]: the loss is the cross-entropy of `logits` against the next token of `input_ids`
err|   = help: say so with `--loss cross-entropy:logits`, or name another loss
err|
err| warning[W1020]: the profile has no times of `block_class_0` on `T4`: they are modelled
err|   = note: the plan's micro-batches have 4 samples of length 64
err|   = note: the profile has any block with 2 samples of length 64
err|   = help: give times of these blocks, as docs/cost.md shows, or bind the batch to a size that was measured
err|
$ trainc compile $TESTDATA/models/gpt2.onnx --bind batch=2,seq=64 --cluster $TESTDATA/cli/one-t4.toml --profile $TESTDATA/cli/profile.csv -o plan --quiet
exit 0
$ trainc simulate plan --cluster $TESTDATA/cli/one-t4.toml
exit 0
out| gpt2 on one: 1 rank replayed with modelled times
out|   step 1.10 ms, bubble 2.7 %
out|
out| Time of each rank; transfers are exposed where it does not compute meanwhile
out|   rank  GPU  stage     busy    idle (bubble)  exposed transfers  recompute  exposed recompute
out|      0  T4       0  1.07 ms  30.1 us (2.7 %)            30.1 us    0.00 ns            0.00 ns
out|
out| Critical path: what the step would be shorter without
out|   compute 1.07 ms (97.3 %), load 30.1 us (2.7 %)
out|   part                              times     time   share
out|   block_class_0.backward on rank 0      4   526 us  47.9 %
out|   block_class_0.forward on rank 0       4   276 us  25.1 %
out|   update on rank 0                     52   179 us  16.3 %
out|   head.backward on rank 0               1  37.1 us   3.4 %
out|   load to rank 0                        3  30.1 us   2.7 %
out|   head.forward on rank 0                1  24.0 us   2.2 %
out|   all others                            2  26.7 us   2.4 %
$ trainc simulate plan --cluster $TESTDATA/cli/one-t4.toml --profile $TESTDATA/cli/profile.csv
exit 0
out| gpt2 on one: 1 rank replayed with the times of the profile, modelled ones where it has none
out|   step 58.3 ms, bubble 0.1 %
out|
out| Time of each rank; transfers are exposed where it does not compute meanwhile
out|   rank  GPU  stage     busy    idle (bubble)  exposed transfers  recompute  exposed recompute
out|      0  T4       0  58.3 ms  30.1 us (0.1 %)            30.1 us    0.00 ns            0.00 ns
out|
out| Critical path: what the step would be shorter without
out|   compute 58.3 ms (99.9 %), load 30.1 us (0.1 %)
out|   part                              times     time   share
out|   block_class_0.backward on rank 0      4  38.0 ms  65.2 %
out|   block_class_0.forward on rank 0       4  20.0 ms  34.3 %
out|   update on rank 0                     52   179 us   0.3 %
out|   head.backward on rank 0               1  37.1 us   0.1 %
out|   load to rank 0                        3  30.1 us   0.1 %
out|   head.forward on rank 0                1  24.0 us   0.0 %
out|   all others                            2  26.7 us   0.0 %
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=64 --cluster $TESTDATA/cli/one-t4.toml --profile $TESTDATA/cli/profile-other.csv
exit 1
err| error[E0341]: `$TESTDATA/cli/profile-other.csv` has times of no GPU type of the cluster `one`
err|   = note: it has times of `H100`; the cluster has `T4`
err|   = help: name a type as the cluster does
err|
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=64 --cluster $TESTDATA/cli/one-t4.toml --profile $TESTDATA/cli/profile-bad.csv
exit 1
err| error[E0340]: the table has times of `a` and of `b`
err|  --> $TESTDATA/cli/profile-bad.csv:3:1
err|   |
err| 3 | b,T4,2,5,9.5
err|   | ^^^^^^^^^^^^ another one
err|   = help: keep the lines of one model
err|
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=64 --cluster $TESTDATA/cli/one-t4.toml --profile $TESTDATA/cli/profile-bad.toml
exit 1
err| error[E0305]: `memory` in GPU type `T4` must have rising work and times that do not fall
err|  --> $TESTDATA/cli/profile-bad.toml:3:10
err|   |
err| 3 | memory = [[1024, 20], [2048, 10]]
err|   |          ^^^^^^^^^^^^^^^^^^^^^^^^ pairs of work and picoseconds
err|
err| error[E0302]: unknown key `speed` in GPU type `T4`
err|  --> $TESTDATA/cli/profile-bad.toml:4:1
err|   |
err| 4 | speed = 3
err|   | ^^^^^ means nothing here
err|   = help: known keys here: attention_16, attention_32, launch_us, memory, name, product_16, product_32, vector
err|
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=64 --cluster $TESTDATA/cli/one-t4.toml --profile $TESTDATA/cli/profile.json
exit 0
out| gpt2 on one: 1 x T4
out|   132 k trained parameters; blocks: 4 of 30 operators
out|   a step: 1 micro-batch x 2 samples = 128 tokens
out|
out| Placement
out|   rank  GPU  group  stage  holds                           arena   device  capacity           headroom
out|      0  T4   t4         0  embedding, blocks 0-3, head  3.97 MiB  955 MiB  14.3 GiB  13.4 GiB (93.5 %)
out|
out| Memory of each rank
out|   rank  parameters  gradients  optimizer     saved  transient  communication  workspace  context
out|      0     514 KiB    562 KiB   1.00 MiB  1.78 MiB    139 KiB            0 B   8.12 MiB  943 MiB
out|
out| Prediction
out|   step 58.3 ms, 2.19 k tokens/s, bubble 0.1 %
out|   recomputed: nothing
out|   times of T4: measured, from the profile, for the blocks and micro-batches that it has; the rest modelled, as fitted to layers measured on the type
err| note[N0406]: the loss is the cross-entropy of `logits` against the next token of `input_ids`
err|   = help: say so with `--loss cross-entropy:logits`, or name another loss
err|
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=64 --cluster $TESTDATA/cli/one-t4.toml --profile nowhere.toml
exit 1
err| error[E1001]: cannot read the profile `nowhere.toml`: No such file or directory (os error 2)
err|
# Times of blocks that the model does not have: nothing is measured, and it is said.
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=64 --cluster $TESTDATA/cli/one-t4.toml --profile $TESTDATA/cli/profile-names.toml
exit 0
out| gpt2 on one: 1 x T4
out|   132 k trained parameters; blocks: 4 of 30 operators
out|   a step: 1 micro-batch x 2 samples = 128 tokens
out|
out| Placement
out|   rank  GPU  group  stage  holds                           arena   device  capacity           headroom
out|      0  T4   t4         0  embedding, blocks 0-3, head  3.97 MiB  955 MiB  14.3 GiB  13.4 GiB (93.5 %)
out|
out| Memory of each rank
out|   rank  parameters  gradients  optimizer     saved  transient  communication  workspace  context
out|      0     514 KiB    562 KiB   1.00 MiB  1.78 MiB    139 KiB            0 B   8.12 MiB  943 MiB
out|
out| Prediction
out|   step 1.10 ms, 117 k tokens/s, bubble 2.7 %
out|   recomputed: nothing
out|   times of T4: modelled, as fitted to layers measured on the type
err| note[N0406]: the loss is the cross-entropy of `logits` against the next token of `input_ids`
err|   = help: say so with `--loss cross-entropy:logits`, or name another loss
err|
err| warning[W1020]: the profile has no times of `block_class_0` on `T4`: they are modelled
err|   = note: the plan's micro-batches have 2 samples of length 64
err|   = note: the profile has `block_0` with 2 samples of length 64
err|   = help: give times of these blocks, as docs/cost.md shows, or bind the batch to a size that was measured
err|
$ trainc simulate plan --cluster $TESTDATA/cli/one-t4.toml --profile $TESTDATA/cli/profile-names.toml --message-format json
exit 0
out| {"bubble_share":0.027375296805707154,"cluster":"one","critical_path":{"compute_s":0.001068215006,"load_s":0.000030065762,"recompute_s":0.0,"transfer_s":0.0},"model":"gpt2","ranks":[{"busy_s":0.001068215006,"exposed_recompute_s":0.0,"exposed_transfer_s":0.000030065762,"idle_s":0.000030065762,"rank":0,"recompute_s":0.0}],"slowest_rank":0,"step_time_s":0.001098280768}
err| {"code":"W1020","severity":"warning","message":"the profile has no times of `block_class_0` on `T4`: they are modelled","labels":[],"notes":["the plan's micro-batches have 2 samples of length 64","the profile has `block_0` with 2 samples of length 64"],"help":"give times of these blocks, as docs/cost.md shows, or bind the batch to a size that was measured"}
# Two times of one block.
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=64 --cluster $TESTDATA/cli/one-t4.toml --profile $TESTDATA/cli/profile-twice.csv
exit 1
err| error[E0340]: `T4` has two times of a block for micro-batches of 2
err|  --> $TESTDATA/cli/profile-twice.csv:1:1
err|   |
err| 1 | gpu,micro_batch,forward_ms,backward_ms
err|   | ^ in this file
err|   = help: keep one of them
err|
