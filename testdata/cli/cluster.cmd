# Cluster descriptions that cannot be used.
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --cluster $TESTDATA/clusters/bad/unknown-gpu.toml
exit 1
err| error[E0307]: unknown GPU type `A100-SMX-80GB` in group `a`
err|  --> $TESTDATA/clusters/bad/unknown-gpu.toml:3:7
err|   |
err| 3 | gpu = "A100-SMX-80GB"
err|   |       ^^^^^^^^^^^^^^^ not in the catalogue
err|   = help: did you mean `A100-SXM-80GB`? otherwise describe it in this file with a `[[gpu]]` table
err|
err| error[E0307]: unknown GPU type `abacus` in group `b`
err|  --> $TESTDATA/clusters/bad/unknown-gpu.toml:8:7
err|   |
err| 8 | gpu = "abacus"
err|   |       ^^^^^^^^ not in the catalogue
err|   = note: known types: P100-PCIe-16GB, P100-SXM2-16GB, V100-PCIe-16GB, V100-SXM2-16GB, V100-SXM2-32GB, T4, RTX-2080-Ti, RTX-3090, RTX-4090, RTX-5090, A10, A40, L4, L40S, A100-PCIe-40GB, A100-PCIe-80GB, A100-SXM-40GB, A100-SXM-80GB, H100-PCIe-80GB, H100-SXM-80GB, H100-NVL-94GB, H200-SXM-141GB, B200-SXM-180GB, GB200-186GB, MI250, MI300X, P40-24GB, RTX-A6000-48GB, A10G, MI210, MI250X, Gaudi2, Gaudi3
err|   = help: describe it in this file with a `[[gpu]]` table
err|
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --cluster $TESTDATA/clusters/bad/not-toml.toml
exit 1
err| error[E0301]: `$TESTDATA/clusters/bad/not-toml.toml` is not valid TOML
err|  --> $TESTDATA/clusters/bad/not-toml.toml:2:9
err|   |
err| 2 | [[group]
err|   |         ^ unclosed array table, expected `]`
err|
$ trainc estimate $TESTDATA/models/gpt2.onnx --bind batch=2,seq=8 --cluster nowhere.toml
exit 1
err| error[E1001]: cannot read the cluster description `nowhere.toml`: No such file or directory (os error 2)
err|
