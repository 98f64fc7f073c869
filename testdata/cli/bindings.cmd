# Dimensions that are not bound, bound twice, bound without being there, and bound to what the model cannot take.
$ trainc inspect $TESTDATA/models/gpt2.onnx
exit 1
err| error[E0117]: dimension `batch` (axis 0 of input `input_ids`) is not bound
err|  --> input `input_ids`: declared here
err|   = help: bind it with --bind batch=N, or all open dimensions with --bind '*=N'
err|
err| error[E0117]: dimension `seq` (axis 1 of input `input_ids`) is not bound
err|  --> input `input_ids`: declared here
err|   = help: bind it with --bind seq=N, or all open dimensions with --bind '*=N'
err|
$ trainc inspect $TESTDATA/models/gpt2.onnx --bind batch=2
exit 1
err| error[E0117]: dimension `seq` (axis 1 of input `input_ids`) is not bound
err|  --> input `input_ids`: declared here
err|   = help: bind it with --bind seq=N, or all open dimensions with --bind '*=N'
err|
$ trainc inspect $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8,heads=3
exit 1
err| error[E0118]: binding `heads` matches no dimension of the model's inputs
err|   = help: the open dimensions are `batch`, `seq`
err|
$ trainc inspect $TESTDATA/models/gpt2.onnx --bind batch=2,batch=3,seq=8
exit 2
err| error[E1003]: `batch` is bound to both 2 and 3
err|
$ trainc inspect $TESTDATA/models/gpt2.onnx --bind batch=two
exit 2
err| error[E1003]: binding `batch=two` is not of the form NAME=N with a whole number N
err|   = help: write for example --bind batch=8,seq=1024
err|
$ trainc inspect $TESTDATA/models/gpt2.onnx --bind batch=0,seq=8
exit 1
err| error[E0119]: dimension `batch` (axis 0 of input `input_ids`) cannot be 0
err|  --> input `input_ids`: declared here
err|   = help: bind a number from 1 to 2147483647 with --bind batch=N
err|
$ trainc inspect $TESTDATA/models/gpt2.onnx --bind batch=2,seq=4096
exit 1
err| error[E0119]: node `node_embedding_1` (Gather): `seq` (axis 1 of input `input_ids`) is bound to 4096, but `transformer.wpe.weight` has 128 entries
err|  --> node `node_embedding_1`: at this node
err|   = note: `seq` (axis 1 of input `input_ids`) is bound to 4096
err|   = help: bind another number with --bind seq=N
err|
