# A plan replayed on its cluster: what the time of a step goes to, and the timeline as a trace.
$ trainc compile $TESTDATA/models/vit.onnx --cluster $TESTDATA/clusters/mixed.toml --bind *=2 --micro-batches 2 --pp 2 --recompute full -o out --quiet
exit 0
$ trainc simulate out --cluster $TESTDATA/clusters/mixed.toml --trace trace.json
exit 0
out| vit on mixed: 2 ranks replayed with modelled times
out|   step 1.04 ms, bubble 30.2 %
out|   slowest: rank 0, which computes for 726 us (70.1 % of the step)
out|
out| Time of each rank; transfers are exposed where it does not compute meanwhile
out|   rank  GPU            stage    busy    idle (bubble)  exposed transfers  recompute  exposed recompute
out|      0  A100-SXM-80GB      0  726 us  310 us (29.9 %)            41.5 us     114 us            0.00 ns
out|      1  T4                 1  721 us  315 us (30.4 %)            50.7 us     117 us             117 us
out|
out| Critical path: what the step would be shorter without
out|   compute 877 us (84.7 %), recompute 117 us (11.3 %), transfer 10.7 us (1.0 %), load 30.8 us (3.0 %)
out|   part                               times     time   share
out|   block_class_0.backward on rank 1       2   295 us  28.5 %
out|   block_class_0.backward on rank 0       1   145 us  14.0 %
out|   block_class_0.forward on rank 1        2   136 us  13.2 %
out|   block_class_0.recompute on rank 1      2   117 us  11.3 %
out|   head.backward on rank 1                2  68.1 us   6.6 %
out|   block_class_0.forward on rank 0        1  66.3 us   6.4 %
out|   all others                            29   208 us  20.1 %
out|
out| wrote the timeline to trace.json: open it in https://ui.perfetto.dev
$ trainc simulate out/plan.pb --cluster $TESTDATA/clusters/mixed.toml --message-format json
exit 0
out| {"bubble_share":0.3015004153331145,"cluster":"mixed","critical_path":{"compute_s":0.000876763509,"load_s":0.000030780374,"recompute_s":0.000116992686,"transfer_s":0.00001069632},"model":"vit","ranks":[{"busy_s":0.000725661858,"exposed_recompute_s":0.0,"exposed_transfer_s":0.000041476694,"idle_s":0.000309571031,"rank":0,"recompute_s":0.000114484072},{"busy_s":0.000720557628,"exposed_recompute_s":0.000116992686,"exposed_transfer_s":0.000050699114,"idle_s":0.000314675261,"rank":1,"recompute_s":0.000116992686}],"slowest_rank":0,"step_time_s":0.001035232889}
$ cat trace.json
exit 0
out| {"displayTimeUnit":"ns","traceEvents":[
out| {"ph":"M","pid":0,"name":"process_name","args":{"name":"rank 0, A100-SXM-80GB, stage 0"}},
out| {"ph":"M","pid":0,"name":"process_sort_index","args":{"sort_index":0}},
out| {"ph":"M","pid":0,"tid":0,"name":"thread_name","args":{"name":"compute"}},
out| {"ph":"M","pid":0,"tid":0,"name":"thread_sort_index","args":{"sort_index":0}},
out| {"ph":"M","pid":0,"tid":1,"name":"thread_name","args":{"name":"load"}},
out| {"ph":"M","pid":0,"tid":1,"name":"thread_sort_index","args":{"sort_index":1}},
out| {"ph":"M","pid":0,"tid":2,"name":"thread_name","args":{"name":"activations 0 to 1"}},
out| {"ph":"M","pid":0,"tid":2,"name":"thread_sort_index","args":{"sort_index":2}},
out| {"ph":"M","pid":0,"tid":3,"name":"thread_name","args":{"name":"gradients 1 to 0"}},
out| {"ph":"M","pid":0,"tid":3,"name":"thread_sort_index","args":{"sort_index":3}},
out| {"ph":"M","pid":0,"tid":4,"name":"thread_name","args":{"name":"ranks 0 1"}},
out| {"ph":"M","pid":0,"tid":4,"name":"thread_sort_index","args":{"sort_index":4}},
out| {"ph":"M","pid":1,"name":"process_name","args":{"name":"rank 1, T4, stage 1"}},
out| {"ph":"M","pid":1,"name":"process_sort_index","args":{"sort_index":1}},
out| {"ph":"M","pid":1,"tid":0,"name":"thread_name","args":{"name":"compute"}},
out| {"ph":"M","pid":1,"tid":0,"name":"thread_sort_index","args":{"sort_index":0}},
out| {"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"load"}},
out| {"ph":"M","pid":1,"tid":1,"name":"thread_sort_index","args":{"sort_index":1}},
out| {"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"activations 0 to 1"}},
out| {"ph":"M","pid":1,"tid":2,"name":"thread_sort_index","args":{"sort_index":2}},
out| {"ph":"M","pid":1,"tid":3,"name":"thread_name","args":{"name":"gradients 1 to 0"}},
out| {"ph":"M","pid":1,"tid":3,"name":"thread_sort_index","args":{"sort_index":3}},
out| {"ph":"M","pid":1,"tid":4,"name":"thread_name","args":{"name":"ranks 0 1"}},
out| {"ph":"M","pid":1,"tid":4,"name":"thread_sort_index","args":{"sort_index":4}},
out| {"ph":"X","pid":0,"tid":0,"ts":0.000000,"dur":0.000000,"cat":"update","name":"zero_sums","args":{"segment":"s13"}},
out| {"ph":"X","pid":0,"tid":1,"ts":0.000000,"dur":10.000127,"cat":"load","name":"load lr","args":{"bytes":4}},
out| {"ph":"X","pid":0,"tid":1,"ts":10.000127,"dur":10.000254,"cat":"load","name":"load step","args":{"bytes":8}},
out| {"ph":"X","pid":0,"tid":1,"ts":20.000381,"dur":10.779993,"cat":"load","name":"load pixel_values #0","args":{"bytes":24576}},
out| {"ph":"X","pid":0,"tid":0,"ts":30.780374,"dur":24.129013,"cat":"forward","name":"stem.forward #0","args":{"segment":"s0","micro-batch":0}},
out| {"ph":"X","pid":0,"tid":1,"ts":30.780374,"dur":10.779993,"cat":"load","name":"load pixel_values #1","args":{"bytes":24576}},
out| {"ph":"X","pid":0,"tid":0,"ts":54.909387,"dur":66.280349,"cat":"forward","name":"block_class_0.forward #0","args":{"segment":"s1","micro-batch":0}},
out| {"ph":"X","pid":0,"tid":0,"ts":121.189736,"dur":24.979142,"cat":"forward","name":"stem.forward #1","args":{"segment":"s0","micro-batch":1}},
out| {"ph":"X","pid":0,"tid":2,"ts":121.189736,"dur":5.348160,"cat":"transfer","name":"send v85 #0","args":{"bytes":4352,"with ranks":"1","communicator":"c0"}},
out| {"ph":"X","pid":0,"tid":0,"ts":146.168878,"dur":66.280349,"cat":"forward","name":"block_class_0.forward #1","args":{"segment":"s1","micro-batch":1}},
out| {"ph":"X","pid":0,"tid":0,"ts":212.449227,"dur":58.092165,"cat":"recompute","name":"block_class_0.recompute #0","args":{"segment":"s2","micro-batch":0}},
out| {"ph":"X","pid":0,"tid":2,"ts":212.449227,"dur":5.348160,"cat":"transfer","name":"send v85 #1","args":{"bytes":4352,"with ranks":"1","communicator":"c0"}},
out| {"ph":"X","pid":0,"tid":3,"ts":455.759892,"dur":5.348160,"cat":"transfer","name":"recv v188 #0","args":{"bytes":4352,"with ranks":"1","communicator":"c1"}},
out| {"ph":"X","pid":0,"tid":0,"ts":461.108052,"dur":145.362013,"cat":"backward","name":"block_class_0.backward #0","args":{"segment":"s3","micro-batch":0}},
out| {"ph":"X","pid":0,"tid":4,"ts":545.528959,"dur":5.000640,"cat":"broadcast","name":"broadcast loss_count","args":{"bytes":8,"with ranks":"1","communicator":"c2"}},
out| {"ph":"X","pid":0,"tid":0,"ts":606.470065,"dur":39.188838,"cat":"backward","name":"stem.backward #0","args":{"segment":"s4","micro-batch":0}},
out| {"ph":"X","pid":0,"tid":0,"ts":645.658903,"dur":57.242036,"cat":"recompute","name":"block_class_0.recompute #1","args":{"segment":"s2","micro-batch":1}},
out| {"ph":"X","pid":0,"tid":3,"ts":785.776776,"dur":5.348160,"cat":"transfer","name":"recv v188 #1","args":{"bytes":4352,"with ranks":"1","communicator":"c1"}},
out| {"ph":"X","pid":0,"tid":0,"ts":791.124936,"dur":144.567125,"cat":"backward","name":"block_class_0.backward #1","args":{"segment":"s3","micro-batch":1}},
out| {"ph":"X","pid":0,"tid":0,"ts":935.692061,"dur":39.188838,"cat":"backward","name":"stem.backward #1","args":{"segment":"s4","micro-batch":1}},
out| {"ph":"X","pid":0,"tid":0,"ts":974.880899,"dur":3.140440,"cat":"update","name":"update","args":{"segment":"s5"}},
out| {"ph":"X","pid":0,"tid":0,"ts":978.021339,"dur":3.000756,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":0,"tid":0,"ts":981.022095,"dur":3.000756,"cat":"update","name":"update","args":{"segment":"s7"}},
out| {"ph":"X","pid":0,"tid":0,"ts":984.022851,"dur":3.012572,"cat":"update","name":"update","args":{"segment":"s8"}},
out| {"ph":"X","pid":0,"tid":0,"ts":987.035423,"dur":3.000756,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":0,"tid":0,"ts":990.036179,"dur":3.000756,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":0,"tid":0,"ts":993.036935,"dur":3.023650,"cat":"update","name":"update","args":{"segment":"s9"}},
out| {"ph":"X","pid":0,"tid":0,"ts":996.060585,"dur":3.000756,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":0,"tid":0,"ts":999.061341,"dur":3.023650,"cat":"update","name":"update","args":{"segment":"s9"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1002.084991,"dur":3.000756,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1005.085747,"dur":3.023650,"cat":"update","name":"update","args":{"segment":"s9"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1008.109397,"dur":3.000756,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1011.110153,"dur":3.023650,"cat":"update","name":"update","args":{"segment":"s9"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1014.133803,"dur":3.000756,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1017.134559,"dur":3.000756,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1020.135315,"dur":3.000756,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1023.136071,"dur":3.047284,"cat":"update","name":"update","args":{"segment":"s10"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1026.183355,"dur":3.001494,"cat":"update","name":"update","args":{"segment":"s11"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1029.184849,"dur":3.047284,"cat":"update","name":"update","args":{"segment":"s12"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1032.232133,"dur":3.000756,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":0.000000,"dur":0.000000,"cat":"update","name":"zero_sums","args":{"segment":"s18"}},
out| {"ph":"X","pid":1,"tid":1,"ts":0.000000,"dur":10.000254,"cat":"load","name":"load lr","args":{"bytes":4}},
out| {"ph":"X","pid":1,"tid":1,"ts":10.000254,"dur":10.000508,"cat":"load","name":"load step","args":{"bytes":8}},
out| {"ph":"X","pid":1,"tid":1,"ts":20.000762,"dur":10.001016,"cat":"load","name":"load labels #0","args":{"bytes":16}},
out| {"ph":"X","pid":1,"tid":1,"ts":30.001778,"dur":10.001016,"cat":"load","name":"load labels #1","args":{"bytes":16}},
out| {"ph":"X","pid":1,"tid":2,"ts":121.189736,"dur":5.348160,"cat":"transfer","name":"recv v85 #0","args":{"bytes":4352,"with ranks":"0","communicator":"c0"}},
out| {"ph":"X","pid":1,"tid":0,"ts":126.537896,"dur":67.734961,"cat":"forward","name":"block_class_0.forward #0","args":{"segment":"s1","micro-batch":0}},
out| {"ph":"X","pid":1,"tid":0,"ts":194.272857,"dur":21.752415,"cat":"forward","name":"head.forward #0","args":{"segment":"s14","micro-batch":0}},
out| {"ph":"X","pid":1,"tid":2,"ts":212.449227,"dur":5.348160,"cat":"transfer","name":"recv v85 #1","args":{"bytes":4352,"with ranks":"0","communicator":"c0"}},
out| {"ph":"X","pid":1,"tid":0,"ts":216.025272,"dur":33.769446,"cat":"backward","name":"head.backward #0","args":{"segment":"s15","micro-batch":0}},
out| {"ph":"X","pid":1,"tid":0,"ts":249.794718,"dur":58.496343,"cat":"recompute","name":"block_class_0.recompute #0","args":{"segment":"s2","micro-batch":0}},
out| {"ph":"X","pid":1,"tid":0,"ts":308.291061,"dur":147.468831,"cat":"backward","name":"block_class_0.backward #0","args":{"segment":"s3","micro-batch":0}},
out| {"ph":"X","pid":1,"tid":0,"ts":455.759892,"dur":68.585090,"cat":"forward","name":"block_class_0.forward #1","args":{"segment":"s1","micro-batch":1}},
out| {"ph":"X","pid":1,"tid":3,"ts":455.759892,"dur":5.348160,"cat":"transfer","name":"send v188 #0","args":{"bytes":4352,"with ranks":"0","communicator":"c1"}},
out| {"ph":"X","pid":1,"tid":0,"ts":524.344982,"dur":21.183977,"cat":"forward","name":"head.forward #1","args":{"segment":"s14","micro-batch":1}},
out| {"ph":"X","pid":1,"tid":0,"ts":545.528959,"dur":34.282643,"cat":"backward","name":"head.backward #1","args":{"segment":"s15","micro-batch":1}},
out| {"ph":"X","pid":1,"tid":4,"ts":545.528959,"dur":5.000640,"cat":"broadcast","name":"broadcast loss_count","args":{"bytes":8,"with ranks":"0","communicator":"c2"}},
out| {"ph":"X","pid":1,"tid":0,"ts":579.811602,"dur":58.496343,"cat":"recompute","name":"block_class_0.recompute #1","args":{"segment":"s2","micro-batch":1}},
out| {"ph":"X","pid":1,"tid":0,"ts":638.307945,"dur":147.468831,"cat":"backward","name":"block_class_0.backward #1","args":{"segment":"s3","micro-batch":1}},
out| {"ph":"X","pid":1,"tid":3,"ts":785.776776,"dur":5.348160,"cat":"transfer","name":"send v188 #1","args":{"bytes":4352,"with ranks":"0","communicator":"c1"}},
out| {"ph":"X","pid":1,"tid":0,"ts":791.124936,"dur":3.004820,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":794.129756,"dur":3.004820,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":797.134576,"dur":3.150948,"cat":"update","name":"update","args":{"segment":"s9"}},
out| {"ph":"X","pid":1,"tid":0,"ts":800.285524,"dur":3.004820,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":803.290344,"dur":3.150948,"cat":"update","name":"update","args":{"segment":"s9"}},
out| {"ph":"X","pid":1,"tid":0,"ts":806.441292,"dur":3.004820,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":809.446112,"dur":3.150948,"cat":"update","name":"update","args":{"segment":"s9"}},
out| {"ph":"X","pid":1,"tid":0,"ts":812.597060,"dur":3.004820,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":815.601880,"dur":3.150948,"cat":"update","name":"update","args":{"segment":"s9"}},
out| {"ph":"X","pid":1,"tid":0,"ts":818.752828,"dur":3.004820,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":821.757648,"dur":3.004820,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":824.762468,"dur":3.004820,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":827.767288,"dur":3.301790,"cat":"update","name":"update","args":{"segment":"s10"}},
out| {"ph":"X","pid":1,"tid":0,"ts":831.069078,"dur":3.009533,"cat":"update","name":"update","args":{"segment":"s11"}},
out| {"ph":"X","pid":1,"tid":0,"ts":834.078611,"dur":3.301790,"cat":"update","name":"update","args":{"segment":"s12"}},
out| {"ph":"X","pid":1,"tid":0,"ts":837.380401,"dur":3.004820,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":840.385221,"dur":3.004820,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":843.390041,"dur":3.004820,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":846.394861,"dur":3.047244,"cat":"update","name":"update","args":{"segment":"s16"}},
out| {"ph":"X","pid":1,"tid":0,"ts":849.442105,"dur":3.001579,"cat":"update","name":"update","args":{"segment":"s17"}},
out| {"ph":"s","id":0,"pid":0,"tid":2,"ts":121.189736,"cat":"flow","name":"transfer"},
out| {"ph":"f","bp":"e","id":0,"pid":1,"tid":2,"ts":121.189736,"cat":"flow","name":"transfer"},
out| {"ph":"s","id":1,"pid":0,"tid":2,"ts":212.449227,"cat":"flow","name":"transfer"},
out| {"ph":"f","bp":"e","id":1,"pid":1,"tid":2,"ts":212.449227,"cat":"flow","name":"transfer"},
out| {"ph":"s","id":2,"pid":1,"tid":3,"ts":455.759892,"cat":"flow","name":"transfer"},
out| {"ph":"f","bp":"e","id":2,"pid":0,"tid":3,"ts":455.759892,"cat":"flow","name":"transfer"},
out| {"ph":"s","id":3,"pid":1,"tid":4,"ts":545.528959,"cat":"flow","name":"broadcast"},
out| {"ph":"f","bp":"e","id":3,"pid":0,"tid":4,"ts":545.528959,"cat":"flow","name":"broadcast"},
out| {"ph":"s","id":4,"pid":1,"tid":3,"ts":785.776776,"cat":"flow","name":"transfer"},
out| {"ph":"f","bp":"e","id":4,"pid":0,"tid":3,"ts":785.776776,"cat":"flow","name":"transfer"}
out| ]}
# Other links: times of this plan on that cluster.
$ copy $TESTDATA/clusters/mixed.toml slow.toml
exit 0
$ replace slow.toml "bandwidth_gbps = 100" "bandwidth_gbps = 1"
exit 0
$ trainc simulate out --cluster slow.toml
exit 0
out| vit on mixed: 2 ranks replayed with modelled times
out|   step 1.12 ms, bubble 34.2 %
out|   slowest: rank 0, which computes for 737 us (66.1 % of the step)
out|
out| Time of each rank; transfers are exposed where it does not compute meanwhile
out|   rank  GPU            stage    busy    idle (bubble)  exposed transfers  recompute  exposed recompute
out|      0  A100-SXM-80GB      0  737 us  379 us (33.9 %)             110 us     114 us            0.00 ns
out|      1  T4                 1  732 us  384 us (34.4 %)             120 us     117 us             117 us
out|
out| Critical path: what the step would be shorter without
out|   compute 888 us (79.6 %), recompute 117 us (10.5 %), transfer 79.6 us (7.1 %), load 30.8 us (2.8 %)
out|   part                               times     time   share
out|   block_class_0.backward on rank 1       2   295 us  26.4 %
out|   block_class_0.backward on rank 0       1   145 us  13.0 %
out|   block_class_0.forward on rank 1        2   144 us  12.9 %
out|   block_class_0.recompute on rank 1      2   117 us  10.5 %
out|   head.backward on rank 1                2  68.1 us   6.1 %
out|   block_class_0.forward on rank 0        1  66.3 us   5.9 %
out|   all others                            29   280 us  25.1 %
err| note[N1014]: the plan was made for another description of a cluster, named `mixed`: the times are those of this plan on `mixed`
err|   = help: compile the model again for the plan that suits this cluster best
err|
# Another cluster: its groups have other names.
$ trainc simulate out --cluster $TESTDATA/cli/one-t4.toml
exit 1
err| error[E1015]: cannot replay `out/plan.json` on the cluster `one`: the cluster has no group `a100`
err|   = help: give the cluster that the plan was made for, or one with groups of the same names; `trainc verify` says whether the plan itself is sound
err|
# Equal groups are planned with as one; on a cluster where a link tells them apart the group has too few nodes.
$ trainc compile $TESTDATA/models/vit.onnx --cluster $TESTDATA/cli/alike.toml --bind *=2 --micro-batches 2 --pp 2 -o two --quiet
exit 0
$ trainc simulate two --cluster $TESTDATA/cli/alike.toml --message-format json
exit 0
out| {"bubble_share":0.3420389454934291,"cluster":"alike","critical_path":{"compute_s":0.000885686941,"load_s":0.000031560747,"recompute_s":0.0,"transfer_s":0.0000169632},"model":"vit","ranks":[{"busy_s":0.000624786741,"exposed_recompute_s":0.0,"exposed_transfer_s":0.000057005547,"idle_s":0.000309424147,"rank":0,"recompute_s":0.0},{"busy_s":0.000604562021,"exposed_recompute_s":0.0,"exposed_transfer_s":0.000056965994,"idle_s":0.000329648867,"rank":1,"recompute_s":0.0}],"slowest_rank":0,"step_time_s":0.000934210888}
$ trainc simulate two --cluster $TESTDATA/cli/alike-slow.toml
exit 1
err| error[E1015]: cannot replay `two/plan.json` on the cluster `alike`: group `a` has 1 x 1 GPUs, the plan takes 2 x 1 GPUs
err|   = help: give the cluster that the plan was made for, or one with groups of the same names; `trainc verify` says whether the plan itself is sound
err|
