# Passes that do not exist.
$ trainc inspect $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --stop-after frobnicate
exit 2
err| error[E1008]: there is no pass `frobnicate`
err|   = help: the passes are `fold`, `canonicalize`, `fuse`, `loss`, `differentiate`, `optimizer`; a number counts them from the first
err|
# The seven passes, differentiation and the optimizer can be counted; there is no tenth.
$ trainc inspect $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --stop-after 9 >-
exit 0
err| note[N0406]: the loss is the cross-entropy of `logits` against the next token of `input_ids`
err|   = help: say so with `--loss cross-entropy:logits`, or name another loss
err|
$ trainc inspect $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --stop-after 10
exit 2
err| error[E1008]: there is no pass 10: there are 9
err|   = help: the passes are, from 1, `fold`, `canonicalize`, `fuse`, `canonicalize`, `loss`, `fold`, `canonicalize`, `differentiate`, `optimizer`; 0 is the graph as it was read
err|
$ trainc compile $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --stop-after 99999999999999999999
exit 2
err| error[E1008]: there is no pass `99999999999999999999`
err|   = help: the passes are `fold`, `canonicalize`, `fuse`, `loss`, `differentiate`, `optimizer`; a number counts them from the first
err|
