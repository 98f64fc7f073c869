# What the command line cannot mean.
$ trainc
exit 2
err| Compiles a model and a description of a GPU cluster into a training plan
err|
err| Usage: trainc [OPTIONS] <COMMAND>
err|
err| Commands:
err|   compile      Plan the training of a model on a cluster, and write the plan and the requests for
err|                its GPUs
err|   run          Run a compiled plan on this machine, one thread per rank
err|   estimate     Say what a model needs on a cluster, without writing anything
err|   simulate     Replay a compiled plan on a cluster: when everything happens, and what a step's time
err|                comes from
err|   diff         Say in words what differs between two plans
err|   inspect      Show the operators and repeated blocks of a model, or its IR
err|   verify       Check a compiled plan against its model
err|   cluster      Show a cluster, or turn what a scheduler says of its nodes into a description
err|   profile      Measure this machine's processor, in the form that --profile reads
err|   explain      Explain a diagnostic code: what it means, why it matters, how to fix it
err|   completions  Print a script with which your shell completes commands and options
err|
err| Options:
err|   -q, --quiet                    Print errors and nothing else
err|       --message-format <FORMAT>  How diagnostics and results are printed [default: human] [possible
err|                                  values: human, json]
err|   -h, --help                     Print help (see more with '--help')
err|   -V, --version                  Print version
err|
err| Begin with:
err|   trainc inspect model.onnx --bind '*=8'                      what trainc makes of a model
err|   trainc estimate model.onnx --cluster cluster.toml --bind batch=8,seq=1024
err|   trainc compile model.onnx --cluster cluster.toml --bind batch=8,seq=1024 -o out
err|   trainc run out --steps 100                                  train it on this machine's CPU
err| A cluster description of ten lines is enough: see docs/cluster.md. `trainc COMMAND --help` has
err| examples of each command; `trainc explain CODE` says what to do about an error.
$ trainc compile
exit 2
err| error: the following required arguments were not provided:
err|   --cluster <FILE>
err|   --output <DIR>
err|   <MODEL>
err|
err| Usage: trainc compile --cluster <FILE> --output <DIR> <MODEL>
err|
err| For more information, try '--help'.
$ trainc inspect a.onnx --bind
exit 2
err| error: a value is required for '--bind <NAME=N,...>' but none was supplied
err|
err| For more information, try '--help'.
$ trainc explain E9999
exit 2
err| error[E1009]: no diagnostic or rule has the code `E9999`
err|   = help: `trainc explain` without a code lists all of them
err|
$ trainc --version
exit 0
out| trainc 0.1.0
# Help has examples.
$ trainc diff --help
exit 0
out| Say in words what differs between two plans
out|
out| Usage: trainc diff [OPTIONS] <BEFORE> <AFTER>
out|
out| Arguments:
out|   <BEFORE>
out|           The first plan: a folder that `compile` wrote, a plan file, or a `summary.json`
out|
out|   <AFTER>
out|           The second plan
out|
out| Options:
out|       --fail-if <CONDITION,...>
out|           Exit with 1 where the second plan is worse than allowed, as in `peak>+2%`, `step>+10ms` or
out|           `gpus>8`
out|
out|   -q, --quiet
out|           Print errors and nothing else
out|
out|       --message-format <FORMAT>
out|           How diagnostics and results are printed
out|
out|           Possible values:
out|           - human: For people
out|           - json:  One JSON object per line
out|           
out|           [default: human]
out|
out|   -h, --help
out|           Print help (see a summary with '-h')
out|
out| Examples:
out|   What changed, the most important first:
out|     trainc diff old new
out|   In a test: fail where memory or time grew too much:
out|     trainc diff kept.json new/summary.json --fail-if 'peak>+2%,step>+5%'
out|
out| Metrics of conditions: peak, arena, saved, parameters (bytes); step, recompute, exposed-recompute
out| (times); bubble; gpus, stages. A number with a sign is the change from the first plan to the second,
out| one without is the second plan's value.
# Usage errors for machines.
$ trainc compile --message-format json
exit 2
err| {"code":"E1017","severity":"error","message":"the following required arguments were not provided: --cluster <FILE> --output <DIR> <MODEL>","labels":[],"notes":["Usage: trainc compile --message-format <FORMAT> --cluster <FILE> --output <DIR> <MODEL>"],"help":"`trainc --help` and `trainc COMMAND --help` list commands and options"}
$ trainc inspect a.onnx --bnid x=1 --message-format=json
exit 2
err| {"code":"E1017","severity":"error","message":"unexpected argument '--bnid' found","labels":[],"notes":["tip: a similar argument exists: '--bind'","Usage: trainc inspect --bind <NAME=N,...> <MODEL>"],"help":"`trainc --help` and `trainc COMMAND --help` list commands and options"}
