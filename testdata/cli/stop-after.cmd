# Passes that do not exist.
$ trainc inspect $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --stop-after frobnicate
exit 2
err| error[E1008]: there is no pass `frobnicate`
err|   = help: the passes are `fold`, `canonicalize`, `fuse`, `loss`, `differentiate`, `optimizer`; a number counts them from the first
err|
