# A model whose weights lie in two files: none is there, one is, one is too short.
$ copy $TESTDATA/frontend/onnx/external/multi_external_files.onnx m.onnx
exit 0
$ trainc compile m.onnx --loss sum:Y --cluster $TESTDATA/clusters/mixed.toml -o out --quiet
exit 0
$ trainc run out --steps 0
exit 0
out| m on this machine: 1 rank
out|   0 weights from the model, 2 initialized (seed 0): the files `out/../multi_external_bias.bin`, `out/../multi_external_weights.bin` are not there
out|   data: a synthetic corpus, seed 0
err| note[N1012]: the weights in `out/../multi_external_bias.bin` are initialized: the file is not there
err|   = help: put the file beside the model to start from its weights
err|
err| note[N1012]: the weights in `out/../multi_external_weights.bin` are initialized: the file is not there
err|   = help: put the file beside the model to start from its weights
err|
$ copy $TESTDATA/frontend/onnx/external/multi_external_weights.bin multi_external_weights.bin
exit 0
$ trainc run out --steps 0 --seed 7
exit 0
out| m on this machine: 1 rank
out|   1 weights from the model, 1 initialized (seed 7): the file `out/../multi_external_bias.bin` is not there
out|   data: a synthetic corpus, seed 7
err| note[N1012]: the weights in `out/../multi_external_bias.bin` are initialized: the file is not there
err|   = help: put the file beside the model to start from its weights
err|
$ copy $TESTDATA/frontend/onnx/external/multi_external_bias.bin multi_external_bias.bin
exit 0
$ trainc run out --steps 0
exit 0
out| m on this machine: 1 rank
out|   2 weights from the model
out|   data: a synthetic corpus, seed 0
$ truncate multi_external_bias.bin 15
exit 0
$ trainc run out --steps 0
exit 1
err| error[E1007]: the run failed: weight `bias`: the data of tensor `bias` cannot be read from `out/../multi_external_bias.bin`: 16 bytes at offset 0 expected, the file has 15
err|
