# What the command line cannot mean.
$ trainc
exit 2
err| Compiles a model and a description of a GPU cluster into a training plan
err|
err| Usage: trainc [OPTIONS] <COMMAND>
err|
err| Commands:
err|   compile   Plan the training of a model on a cluster, and write the plan and the requests for its
err|             GPUs
err|   run       Run a compiled plan on this machine, one thread per rank
err|   estimate  Say what a model needs on a cluster, without writing anything
err|   simulate  Replay a compiled plan on a cluster: when everything happens, and what a step's time
err|             comes from
err|   diff      Say in words what differs between two plans
err|   inspect   Show the operators and repeated blocks of a model, or its IR
err|   verify    Check a compiled plan against its model
err|   cluster   Show a cluster, or turn what a scheduler says of its nodes into a description
err|   explain   Explain a diagnostic code
err|
err| Options:
err|   -q, --quiet                    Print errors and nothing else
err|       --message-format <FORMAT>  How diagnostics and results are printed [default: human] [possible
err|                                  values: human, json]
err|   -h, --help                     Print help (see more with '--help')
err|   -V, --version                  Print version
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
