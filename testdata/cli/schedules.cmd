# Schedules of equal stages: the figures that the literature has for them, and the form that PyTorch loads.
$ trainc simulate --uniform 8,4,32
exit 0
out| 8 ranks, 32 micro-batches; a rank's layers take 1 forward and 2 backward
out|
out|   schedule       stages    step  bubble  kept  sent  gathers: each use  one stage  one a way  reduces  switches  slack
out|   gpipe               1     117  0.2188    32     1                 64          1          2        1         1  0
out|   1f1b                1     117  0.2188     8     1                 64          1          2        1         1  0
out|   interleaved         4  101.25  0.0547  9.75     4                 64      30.75          8        4       123  12, 8, 4, 0
out|   breadth-first       4  101.25  0.0547    32     4                 64       1.75          2        1         7  48, 32, 16, 0
out|   zb-h1               1     103  0.0729     8     1                 64          1          2        1         1  0
out|   zb-v                2    99.5  0.0365     8     2                 64       25.5         43       25        51  8, 0
out|
out|   bubble: idle over busy time. kept: the most micro-batches of a rank's layers. sent: per micro-batch and rank.
out|   gathers and reduces: per layer on rank 0, with weights gathered for each use, for as long as the rank stays
out|   with a stage, or for one stage each way. slack: work of rank 0 behind the last gradient of each of its stages.
$ trainc simulate --uniform 8,4,8 --schedule interleaved
exit 0
out| 8 ranks, 8 micro-batches; a rank's layers take 1 forward and 2 backward
out|
out|   schedule     stages   step  bubble  kept  sent  gathers: each use  one stage  one a way  reduces  switches  slack
out|   interleaved       4  29.25  0.2188     8     4                 16       1.75          2        1         7  12, 8, 4, 0
out|
out|   bubble: idle over busy time. kept: the most micro-batches of a rank's layers. sent: per micro-batch and rank.
out|   gathers and reduces: per layer on rank 0, with weights gathered for each use, for as long as the rank stays
out|   with a stage, or for one stage each way. slack: work of rank 0 behind the last gradient of each of its stages.
$ trainc simulate --uniform 8,4,32 --schedule breadth-first:16 --message-format json
exit 0
out| {"bubble":0.0546875,"gathers_each_use":64.0,"gathers_one_stage":32.25,"gathers_one_stage_each_way":4.0,"kept_micro_batches":15.75,"micro_batches":32,"ranks":8,"reduces":2.0,"schedule":"breadth-first:16","sent_per_micro_batch":4.0,"slack":[24.0,16.0,8.0,0.0],"stages_per_rank":4,"step":101.25,"switches":129}
$ trainc simulate --uniform 2,2,3 --schedule interleaved --emit torch-schedule
exit 0
out| 0F0,0F1,0F2,2F0,2F1,2F2,2B0,2B1,2B2,0B0,0B1,0B2
out| 1F0,1F1,1F2,3F0,3B0,3F1,3B1,3F2,3B2,1B0,1B1,1B2
$ trainc simulate --uniform 2,2,2 --schedule zb-v --emit torch-schedule
exit 0
out| 0F0,0F1,3F0,3I0,3W0,3F1,3I1,3W1,0I0,0W0,0I1,0W1
out| 1F0,2F0,1F1,2F1,2I0,2W0,1I0,1W0,2I1,2W1,1I1,1W1
$ trainc simulate --uniform 8,4
exit 2
err| error[E1003]: `--uniform 8,4` does not have the form RANKS,LOOPS,MICRO_BATCHES
err|   = help: write three numbers, as in `--uniform 8,4,32` for 8 ranks with 4 stages each and 32 micro-batches
err|
$ trainc simulate --uniform 4,2,8 --schedule gpipe
exit 2
err| error[E1003]: expected 1 stage per rank for gpipe, found 2
err|
$ trainc simulate --uniform 4,2,8 --schedule breadth-first:2 --emit torch-schedule
exit 0
out| 0F0,0F1,4F0,4F1,0F2,0F3,4B0,4F2,4B1,4F3,0F4,0F5,0B0,0B1,4B2,4F4,4B3,4F5,0F6,0F7,0B2,0B3,4B4,4F6,4B5,4F7,0B4,0B5,4B6,4B7,0B6,0B7
out| 1F0,1F1,5F0,5F1,1F2,1F3,5B0,5B1,5F2,1B0,5F3,1B1,1F4,5B2,1F5,5B3,5F4,1B2,5F5,1B3,1F6,5B4,1F7,5B5,5F6,1B4,5F7,1B5,5B6,5B7,1B6,1B7
out| 2F0,2F1,6F0,6F1,2F2,6B0,2F3,6B1,2B0,6F2,2B1,6F3,6B2,2F4,6B3,2F5,2B2,6F4,2B3,6F5,6B4,2F6,6B5,2F7,2B4,6F6,2B5,6F7,6B6,6B7,2B6,2B7
out| 3F0,3F1,7F0,7B0,7F1,7B1,3F2,3B0,3F3,3B1,7F2,7B2,7F3,7B3,3F4,3B2,3F5,3B3,7F4,7B4,7F5,7B5,3F6,3B4,3F7,3B5,7F6,7B6,7F7,7B7,3B6,3B7
$ trainc simulate --uniform 4,2,8 --schedule breadth-first:0
exit 2
err| error[E1003]: no schedule is named `breadth-first:0`: expected gpipe, 1f1b, interleaved, breadth-first, breadth-first:N, zb-h1 or zb-v
err|
$ trainc simulate --uniform 4,2,8 --schedule chimera
exit 2
err| error[E1003]: no schedule is named `chimera`: expected gpipe, 1f1b, interleaved, breadth-first, breadth-first:N, zb-h1 or zb-v
err|
$ trainc simulate --uniform 64,8,1000000
exit 2
err| error[E1003]: 64 stages and 1000000 micro-batches are too many: at most 16777216 pairs of both can be scheduled
err|
$ trainc simulate --uniform 4,2,8 --emit torch-schedule
exit 2
err| error[E1004]: `--emit` writes one schedule, and `--uniform` alone compares all
err|   = help: name one, as in `--schedule interleaved`
err|
$ trainc estimate $TESTDATA/models/gpt2.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2,seq=16 --loops 0
exit 2
err| error[E1003]: a rank with 0 stages does nothing
err|   = help: give 1 or more with --loops, or leave it out
err|
$ trainc estimate $TESTDATA/models/gpt2.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2,seq=16 --pp 2 --loops 50 --loss cross-entropy:logits
exit 3
err| error[E0602]: expected at most 6 stages, one for each unit of the model, found 100
err|   = note: the units are embedding, blocks 0-3, head
err|   = help: give fewer with --pp, or with --loops where ranks have several stages
err|
