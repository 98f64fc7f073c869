# Numbers that mean nothing, or more than there can be.
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --cluster $TESTDATA/clusters/mixed.toml --pp 0
exit 2
err| error[E1003]: a pipeline of 0 stages holds no model
err|   = help: give a number from 1 to the GPUs of the cluster, or leave out --pp to have the fastest taken
err|
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --cluster $TESTDATA/clusters/mixed.toml --pp 5000000000
exit 2
err| error[E1003]: a pipeline of 5000000000 stages needs more GPUs than there can be
err|   = help: give a number from 1 to the GPUs of the cluster, or leave out --pp to have the fastest taken
err|
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --cluster $TESTDATA/clusters/mixed.toml --pp 4000000000
exit 3
err| error[E0602]: expected at most 6 stages, one for each unit of the model, found 4000000000
err|   = note: the units are embedding, blocks 0-3, head
err|   = help: the nearest change that fits: --pp 5
err|
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --cluster $TESTDATA/clusters/mixed.toml --micro-batches 8193
exit 2
err| error[E1003]: a step of 8193 micro-batches is too long: expected at most 8192
err|   = help: make the micro-batches larger: bind a larger batch, or give fewer --micro-batches with --global-batch
err|
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --cluster $TESTDATA/clusters/mixed.toml --micro-batches 18446744073709551615 --global-batch 18446744073709551615
exit 2
err| error[E1003]: a step of 18446744073709551615 micro-batches is too long: expected at most 8192
err|   = help: make the micro-batches larger: bind a larger batch, or give fewer --micro-batches with --global-batch
err|
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --cluster $TESTDATA/clusters/mixed.toml --global-batch 16386
exit 2
err| error[E1003]: a step of 8193 micro-batches is too long: expected at most 8192
err|   = help: make the micro-batches larger: bind a larger batch, or give fewer --micro-batches with --global-batch
err|
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --cluster $TESTDATA/clusters/mixed.toml --micro-batches 0
exit 2
err| error[E1003]: a step of no micro-batches or samples trains nothing
err|
$ trainc run nowhere --lr 0
exit 2
err| error[E1003]: the learning rate must be a positive number, found 0
err|
$ trainc run nowhere --lr -0.5
exit 2
err| error[E1003]: the learning rate must be a positive number, found -0.5
err|
$ trainc run nowhere --lr inf
exit 2
err| error[E1003]: the learning rate must be a positive number, found inf
err|
