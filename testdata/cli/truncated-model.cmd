# Half of a model.
$ copy $TESTDATA/models/gpt2.onnx half.onnx
exit 0
$ truncate half.onnx 300000
exit 0
$ trainc inspect half.onnx --bind batch=2,seq=8
exit 1
err| error[E0104]: model file `half.onnx` is truncated: it ends after 300000 bytes, inside a model that needs 305898 more
err|   = help: the file is incomplete or damaged: export or download it again
err|
