# A file that is no model, an empty one, one that is not there, and a folder.
$ write notes.txt "These are not the bytes of a model."
exit 0
$ trainc inspect notes.txt
exit 1
err| error[E0103]: `notes.txt` is not an ONNX model: it is text
err|   = help: pass the binary .onnx file
err|
$ copy notes.txt empty.onnx
exit 0
$ truncate empty.onnx 0
exit 0
$ trainc inspect empty.onnx
exit 1
err| error[E0102]: model file `empty.onnx` is empty
err|   = help: export or download the model again
err|
$ trainc inspect nowhere.onnx
exit 1
err| error[E0101]: cannot read model file `nowhere.onnx`: No such file or directory (os error 2)
err|
$ trainc inspect $TESTDATA/models
exit 1
err| error[E1001]: the folder `$TESTDATA/models` is no model, and holds no plan
err|   = help: give an ONNX file, or the folder that `trainc compile` wrote
err|
