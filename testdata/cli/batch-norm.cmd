# Batch normalization in inference mode, in training mode, and with statistics that two nodes share; a residual network.
$ trainc inspect $TESTDATA/frontend/onnx/frozen_batch_norm.onnx --bind batch=2
exit 0
out| frozen_batch_norm: 13 operators, 3 parameters of 80 elements, 320 B
out|   input   x  f32[2,2,6,6]
out|   output  y  f32[2,4,1,1]
out|
out| Units, between which a pipeline may be cut
out|   unit    class  operators  parameters
out|   part 0                 1       288 B
out|   part 1                 6        32 B
out|   part 2                 1         0 B
out|   5 operators that depend on no parameter run wherever they are needed
out|
out| Operators, as read from the model and after folding and fusion
out|   operator  read  fused
out|   add          2      2
out|   constant     1      1
out|   conv         1      1
out|   div          1      1
out|   mul          1      1
out|   reduce       1      1
out|   reshape      4      4
out|   sqrt         1      1
out|   sub          1      1
out|   all         13     13
err| note[N0130]: one batch normalization is in inference mode: the stored statistics are used, and stay as they are
err|   = help: to train with the statistics of each micro-batch, export the model in training mode (`torch.onnx.export(.., dynamo=False, training=TrainingMode.TRAINING)`)
err|
$ trainc inspect $TESTDATA/frontend/onnx/batch_norm_opset13.onnx --bind batch=2
exit 0
out| batch_norm_opset13: 5 operators, 3 parameters of 80 elements, 320 B, 2 running averages
out|   input   x  f32[2,2,6,6]
out|   output  y  f32[2,4,1,1]
out|
out| Units, between which a pipeline may be cut
out|   unit    class  operators  parameters
out|   part 0                 1       288 B
out|   part 1                 3        32 B
out|   part 2                 1         0 B
out|
out| Operators, as read from the model and after folding and fusion
out|   operator         read  fused
out|   batch_norm          1      1
out|   conv                1      1
out|   reduce              1      1
out|   running_average     2      2
out|   all                 5      5
$ trainc inspect $TESTDATA/frontend/onnx/shared_batch_norm.onnx --bind batch=2
exit 1
err| error[E0124]: the running average `norm.running_mean` is read or updated by more than one node
err|   = help: give every batch normalization of the model statistics of its own, and let nothing else read them
err|
err| error[E0124]: the running average `norm.running_var` is read or updated by more than one node
err|   = help: give every batch normalization of the model statistics of its own, and let nothing else read them
err|
$ trainc inspect $TESTDATA/models/resnet.onnx --bind batch=2
exit 0
out| resnet: 70 operators, 38 parameters of 16.8 k elements, 65.4 KiB, 24 running averages
out|   input   pixel_values  f32[2,3,32,32]
out|   input   labels        i64[2]
out|   output  loss_sum      f32[]
out|   output  loss_count    i64[]
out|   output  logits        f32[2,10]
out|
out| Units, between which a pipeline may be cut
out|   unit        class          operators     parameters
out|   stem                               6       4.66 KiB
out|   blocks 0-1  block class 0    11 each  4.62 KiB each
out|   bridge 2                          14       14.4 KiB
out|   blocks 2-3  block class 1    11 each  18.2 KiB each
out|   head                               6          680 B
out|
out| Composite operators
out|   form           count  of them
out|   cross_entropy      1
out|
out| Operators, as read from the model and after folding and fusion
out|   operator         read  fused
out|   add                 6      6
out|   batch_norm         12     12
out|   conv               12     12
out|   cross_entropy       1      1
out|   matmul              1      1
out|   max_pool            1      1
out|   reduce              1      1
out|   relu               11     11
out|   reshape             1      1
out|   running_average    24     24
out|   all                70     70
$ trainc compile $TESTDATA/models/resnet.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2 --micro-batches 2 --pp 2 --recompute full -o out
exit 0
out| resnet on mixed: 1 x A100-SXM-80GB, 1 x T4
out|   16.8 k trained parameters, 304 in running averages; blocks: 2 of 11 operators, 2 of 11 operators
out|   a step: 2 micro-batches x 2 samples
out|
out| Placement
out|   rank  GPU            group  stage  holds                         arena    device  capacity           headroom
out|      0  A100-SXM-80GB  a100       0  stem, blocks 0-1, bridge 2  323 KiB  2.52 GiB  79.3 GiB  76.8 GiB (96.8 %)
out|      1  T4             t4         1  blocks 2-3, head            179 KiB  2.52 GiB  14.3 GiB  11.8 GiB (82.4 %)
out|
out| Memory of each rank
out|   rank  parameters  gradients  optimizer     saved  transient  communication  workspace  context
out|      0    29.0 KiB   28.3 KiB   56.6 KiB   205 KiB   4.69 KiB       1.59 GiB   8.12 MiB  943 MiB
out|      1    37.7 KiB   37.2 KiB   74.3 KiB  18.3 KiB   11.7 KiB       1.59 GiB   8.12 MiB  943 MiB
out|
out| Prediction
out|   step 986 us, 4.05 k samples/s, bubble 31.6 %
out|   recomputed: 2 blocks of rank 0, 2 blocks of rank 1
out|   recompute time 146 us: 0.00 ns hidden, 146 us exposed
out|   times of A100-SXM-80GB, T4: modelled, as fitted to layers measured on the type
out|
out| wrote plan.json, plan.pb, kubernetes.yaml, slurm.sh, summary.json, model.path to out
