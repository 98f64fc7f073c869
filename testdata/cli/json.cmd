# Diagnostics and results for machines.
$ trainc inspect $TESTDATA/models/gpt2.onnx --bind batch=2 --message-format json
exit 1
err| {"code":"E0117","severity":"error","message":"dimension `seq` (axis 1 of input `input_ids`) is not bound","labels":[{"place":{"model":{"kind":"input","name":"input_ids"}},"text":"declared here"}],"notes":[],"help":"bind it with --bind seq=N, or all open dimensions with --bind '*=N'"}
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --cluster $TESTDATA/clusters/bad/not-toml.toml --message-format json
exit 1
err| {"code":"E0301","severity":"error","message":"`$TESTDATA/clusters/bad/not-toml.toml` is not valid TOML","labels":[{"place":{"source":{"file":"$TESTDATA/clusters/bad/not-toml.toml","start":24,"end":24}},"text":"unclosed array table, expected `]`"}],"notes":[],"help":null}
$ trainc compile $TESTDATA/models/gpt2.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2,seq=8 -o out --message-format json
exit 0
out| {"blocks":[{"instances":4,"name":"block class 0","nodes":30,"parameter_bytes":113088,"saved_bytes":52736}],"bubble_share":0.03177538725007668,"cluster":"mixed","micro_batches":1,"model":"gpt2","ranks":[{"arena_bytes":2450944,"breakdown":{"communication":0,"context":988807168,"gradients":575616,"optimizer":1052928,"parameters":526464,"saved":233792,"transient":62144,"workspace":8519680},"busy_s":0.00091426238,"capacity_bytes":85197848576,"device_bytes":999777792,"gpu":"A100-SXM-80GB","group":"a100","headroom_bytes":84198070784,"rank":0,"recomputed_blocks":0,"stage":0,"units":["embedding","block 0","block 1","block 2","block 3","head"]}],"recompute":{"exposed_s":0.0,"hidden_s":0.0,"total_s":0.0},"samples_per_s":2118.045396880321,"schedule":"1f1b","stages":1,"stages_per_rank":1,"step_time_s":0.000944266824,"tokens_per_s":16944.363175042567,"version":1}
err| {"code":"N0406","severity":"note","message":"the loss is the cross-entropy of `logits` against the next token of `input_ids`","labels":[],"notes":[],"help":"say so with `--loss cross-entropy:logits`, or name another loss"}
$ trainc verify out --message-format json
exit 0
out| {"ranks":1,"rules":24,"verified":true}
