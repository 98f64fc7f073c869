# Codes and rules are explained.
$ trainc explain E0307
exit 0
out| E0307: the GPU type is not in the catalogue
out|
out| why it matters: memory, speed and element types come from the GPU type.
out| how to fix it: use the name that the message suggests; otherwise describe the type with a [[gpu]] table.
out| example: gpu = "A1000"
$ trainc explain p21
exit 0
out| P21: what is read was written before, under the same name, and is still whole
out|
out| why it matters: a plan is only run when it provably computes a training step of its model; this rule is a part of the proof
out| how to fix it: compile the model again; if nobody changed the plan, please report it
out| example: a plan.json that was edited by hand
$ trainc explain V06
exit 0
out| V06: results have the types that the operator's rule gives
out|
out| why it matters: every pass takes and gives valid graphs; without this rule a graph would mean nothing, or two things
out| how to fix it: correct the graph at the place that the message names; if a pass made it, please report it
out| example: a text graph that was edited by hand
$ trainc explain P99
exit 2
err| error[E1009]: no diagnostic or rule has the code `P99`
err|   = help: `trainc explain` without a code lists all of them
err|
# Explanations for machines.
$ trainc explain E0117 --message-format json
exit 0
out| {"code":"E0117","example":"trainc inspect gpt2.onnx, without --bind","fix":"bind it by its symbol, by its place, or all that are left: --bind batch=8, --bind input_ids.1=1024, --bind '*=8'.","meaning":"an input dimension has no number: bind it with --bind NAME=N","why":"every buffer gets its exact place, so every dimension needs a number."}
# The number alone is enough.
$ trainc explain 1018
exit 0
out| W1018: more threads were asked for than the machine can use; fewer are taken, and the results are the same
out|
out| why it matters: threads that wait for each other take longer than fewer that do not, up to a standstill.
out| how to fix it: leave out --threads; the default is the number of cores.
out| example: trainc run out --threads 2000
$ trainc explain E1018
exit 0
out| W1018: more threads were asked for than the machine can use; fewer are taken, and the results are the same
out|
out| why it matters: threads that wait for each other take longer than fewer that do not, up to a standstill.
out| how to fix it: leave out --threads; the default is the number of cores.
out| example: trainc run out --threads 2000
