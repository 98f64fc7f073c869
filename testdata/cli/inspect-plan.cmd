# A plan is inspected with the options that it was compiled with; a folder must hold one.
$ trainc compile $TESTDATA/models/gpt2.onnx --cluster $TESTDATA/clusters/mixed.toml --bind batch=2,seq=8 -o out --quiet
exit 0
$ trainc inspect out 2>-
exit 0
out| gpt2: 126 operators, 52 parameters of 132 k elements, 514 KiB
out|   input   input_ids  i64[2,8]
out|   output  logits     f32[2,8,256]
out|
out| Units, between which a pipeline may be cut
out|   unit        class          operators    parameters
out|   embedding                          3      72.0 KiB
out|   blocks 0-3  block class 0    30 each  110 KiB each
out|   head                               2      48.4 KiB
out|   1 operator that depends on no parameter runs wherever it is needed
out|
out| Composite operators
out|   form        count  of them
out|   attention       4  4 causal
out|   layer_norm      9
out|   gelu            4  4 tanh
out|
out| Operators, as read from the model and after folding and fusion
out|   operator    read  fused
out|   add           37     25
out|   attention      -      4
out|   constant      37      1
out|   gather         2      2
out|   gelu           -      4
out|   is_nan         4      -
out|   layer_norm     9      9
out|   matmul        25     17
out|   mul           24      -
out|   pow            4      -
out|   reshape       52     44
out|   select         4      -
out|   softmax        4      -
out|   split          4      4
out|   tanh           4      -
out|   transpose     21     16
out|   all          231    126
$ trainc inspect out --bind batch=4
exit 2
err| error[E1004]: `--bind` cannot be given with a plan, which keeps those it was compiled with
err|   = help: leave them out, or give the model in place of the plan
err|
$ trainc inspect out/plan.pb --loss sum:logits --train '*.bias'
exit 2
err| error[E1004]: `--loss`, `--train` cannot be given with a plan, which keeps those it was compiled with
err|   = help: leave them out, or give the model in place of the plan
err|
$ trainc inspect $TESTDATA/cli
exit 1
err| error[E1001]: the folder `$TESTDATA/cli` is no model, and holds no plan
err|   = help: give an ONNX file, or the folder that `trainc compile` wrote
err|
$ trainc run $TESTDATA/cli
exit 1
err| error[E1001]: cannot read the plan `$TESTDATA/cli/plan.json`: No such file or directory (os error 2)
err|   = help: give the folder that `trainc compile` wrote
err|
