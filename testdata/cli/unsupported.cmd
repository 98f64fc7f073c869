# Operators that are not supported, and a model that has no loss of its own.
$ trainc inspect $TESTDATA/frontend/onnx/unsupported.onnx --bind '*=2'
exit 1
err| error[E0120]: operator `LRN` is not supported (nodes: 2)
err|   = note: at `/local`, `/local_1`
err|   = help: the model declares no types for its results, so it cannot be estimated either
err|
err| error[E0120]: operator `MeanVarianceNormalization` is not supported (nodes: 1)
err|   = note: at `/mean`
err|   = help: the model declares no types for its results, so it cannot be estimated either
err|
$ trainc compile $TESTDATA/frontend/onnx/external/multi_external_files.onnx --cluster $TESTDATA/clusters/mixed.toml -o out
exit 1
err| error[E0401]: the model computes no loss, and it is not clear which one is meant
err|   = note: outputs of the model: `Y` (f32[1,4])
err|   = help: give one of: --loss cross-entropy:Y, --loss mse:Y, --loss sum:Y
err|
