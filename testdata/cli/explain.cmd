# Codes and rules are explained.
$ trainc explain E0307
exit 0
out| E0307: the GPU type is not in the catalogue
$ trainc explain p21
exit 0
out| P21: what is read was written before, under the same name, and is still whole
$ trainc explain V06
exit 0
out| V06: results have the types that the operator's rule gives
$ trainc explain P99
exit 2
err| error[E1009]: no diagnostic or rule has the code `P99`
err|   = help: `trainc explain` without a code lists all of them
err|
