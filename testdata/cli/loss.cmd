# A loss that the model does not have, and one that cannot be read.
$ trainc compile $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --loss cross-entropy:logit --stop-after loss
exit 1
err| error[E0403]: the model has no output `logit`
err|   = note: float outputs of the model: `logits` (f32[2,8,256])
err|   = help: name one of them in `--loss`
err|
$ trainc compile $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --loss entropy --stop-after loss
exit 2
err| error[E0405]: `entropy` does not say what the loss is
err|   = help: write `cross-entropy:NAME`, `mse:NAME` or `sum:NAME`, where NAME is an output of the model
err|
