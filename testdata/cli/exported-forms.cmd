# What exporters write of dropout in training mode and of equal vectors; a result that nothing computes, and where it is used.
$ trainc inspect $TESTDATA/frontend/onnx/dropout_mask.onnx --bind batch=2
exit 0
out| dropout_mask: 2 operators, 1 parameters of 64 elements, 256 B
out|   input   x  f32[2,8]
out|   output  y  f32[2,8]
out|
out| Units, between which a pipeline may be cut
out|   unit    class  operators  parameters
out|   part 0                 1       256 B
out|   part 1                 1         0 B
out|
out| Operators, as read from the model and after folding and fusion
out|   operator  read  fused
out|   dropout      1      1
out|   matmul       1      1
out|   all          2      2
$ trainc inspect $TESTDATA/frontend/onnx/dropout_mask_used.onnx --bind batch=2
exit 1
err| error[E0124]: node `/cast` (Cast): not supported: the use of result 1 of node `/drop` (Dropout)
err|  --> node `/cast`: at this node
err|   = help: export the model in another form: without fused operators, without past inputs, or at another opset
err|
$ trainc inspect $TESTDATA/frontend/onnx/shared_norms.onnx --bind batch=2
exit 0
out| shared_norms: 4 operators, 3 parameters of 80 elements, 320 B
out|   input   x  f32[2,8]
out|   output  y  f32[2,8]
out|
out| Units, between which a pipeline may be cut
out|   unit    class  operators  parameters
out|   part 0                 1       256 B
out|   part 1                 1        64 B
out|   part 2                 1        64 B
out|   part 3                 1        64 B
out|
out| Composite operators
out|   form        count  of them
out|   layer_norm      3
out|
out| Operators, as read from the model and after folding and fusion
out|   operator    read  fused
out|   layer_norm     3      3
out|   matmul         1      1
out|   all            4      4
err| note[N0131]: layers share 2 vectors, each of which is trained as one: 3 layers share `a.weight`
err|   = help: exporters merge what is equal, as the zeros and ones of a model that was never trained; to train them apart as PyTorch does, export with `optimize=False`, or with `dynamo=False, keep_initializers_as_inputs=True`
err|
$ trainc estimate $TESTDATA/frontend/onnx/unsupported.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2 --loss sum:y
exit 1
err| error[E0120]: operator `LRN` is not supported (nodes: 2)
err|   = note: at `/local`, `/local_1`
err|   = help: the model declares no types for its results, so it cannot be estimated either
err|
err| error[E0120]: operator `MeanVarianceNormalization` is not supported (nodes: 1)
err|   = note: at `/mean`
err|   = help: the model declares no types for its results, so it cannot be estimated either
err|
$ trainc estimate $TESTDATA/models/gpt2_loss.onnx --cluster $TESTDATA/clusters/mixed.toml --bind '*=2' --loss sum:loss
exit 1
err| error[E0403]: the model has no output `loss`
err|   = note: float outputs of the model: `loss_sum` (f32[]), `logits` (f32[2,2,256])
err|   = help: leave out `--loss` to train with the loss that the model computes, or name a float output
err|
