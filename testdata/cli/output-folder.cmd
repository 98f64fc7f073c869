# The output folder cannot be made, because a file has its name.
$ write out "a file"
exit 0
$ trainc compile $TESTDATA/models/gpt2.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2,seq=8 --micro-batches 4 --pp 2 -o out/plan >-
exit 1
err| note[N0406]: the loss is the cross-entropy of `logits` against the next token of `input_ids`
err|   = help: say so with `--loss cross-entropy:logits`, or name another loss
err|
err| error[E0706]: cannot write `out/plan`: file exists
err|   = help: give a directory that exists or can be made, on a disk with room, with `-o DIRECTORY`
err|
$ cat out
exit 0
out| a file
# Nor can a file in a folder that is not there.
$ trainc cluster import $TESTDATA/clusters/mixed.toml -o nowhere/cluster.toml
exit 1
err| error[E0706]: cannot write `nowhere/cluster.toml`: no such file or directory
err|   = help: give a file in a directory that exists, on a disk with room
err|
