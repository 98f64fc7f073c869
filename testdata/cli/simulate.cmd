# A plan replayed on its cluster: what the time of a step goes to, and the timeline as a trace.
$ trainc compile $TESTDATA/models/vit.onnx --cluster $TESTDATA/clusters/mixed.toml --bind *=2 --micro-batches 2 --pp 2 --recompute full -o out --quiet
exit 0
$ trainc simulate out --cluster $TESTDATA/clusters/mixed.toml --trace trace.json
exit 0
out| vit on mixed: 2 ranks replayed with modelled times
out|   step 1.03 ms, bubble 30.1 %
out|   slowest: rank 0, which computes for 724 us (70.5 % of the step)
out|
out| Time of each rank; transfers are exposed where it does not compute meanwhile
out|   rank  GPU            stage    busy    idle (bubble)  exposed transfers  recompute  exposed recompute
out|      0  A100-SXM-80GB      0  724 us  304 us (29.5 %)            41.5 us     114 us            0.00 ns
out|      1  T4                 1  714 us  314 us (30.6 %)            50.7 us     116 us             116 us
out|
out| Critical path: what the step would be shorter without
out|   compute 871 us (84.7 %), recompute 116 us (11.3 %), transfer 10.7 us (1.0 %), load 30.8 us (3.0 %)
out|   part                               times     time   share
out|   block_class_0.backward on rank 1       2   292 us  28.4 %
out|   block_class_0.backward on rank 0       1   144 us  14.0 %
out|   block_class_0.forward on rank 1        2   135 us  13.1 %
out|   block_class_0.recompute on rank 1      2   116 us  11.3 %
out|   head.backward on rank 1                2  67.5 us   6.6 %
out|   block_class_0.forward on rank 0        1  66.2 us   6.4 %
out|   all others                            29   207 us  20.2 %
out|
out| wrote the timeline to trace.json: open it in https://ui.perfetto.dev
$ trainc simulate out/plan.pb --cluster $TESTDATA/clusters/mixed.toml --message-format json
exit 0
out| {"bubble_share":0.30063506193582124,"cluster":"mixed","critical_path":{"compute_s":0.000870969932,"load_s":0.000030780374,"recompute_s":0.000115774502,"transfer_s":0.00001069632},"model":"vit","ranks":[{"busy_s":0.000724449178,"exposed_recompute_s":0.0,"exposed_transfer_s":0.000041476694,"idle_s":0.00030377195,"rank":0,"recompute_s":0.000114278498},{"busy_s":0.000713754433,"exposed_recompute_s":0.000115774502,"exposed_transfer_s":0.000050699114,"idle_s":0.000314466695,"rank":1,"recompute_s":0.000115774502}],"slowest_rank":0,"step_time_s":0.001028221128}
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
out| {"ph":"X","pid":0,"tid":0,"ts":30.780374,"dur":24.090166,"cat":"forward","name":"stem.forward #0","args":{"segment":"s0","micro-batch":0}},
out| {"ph":"X","pid":0,"tid":1,"ts":30.780374,"dur":10.779993,"cat":"load","name":"load pixel_values #1","args":{"bytes":24576}},
out| {"ph":"X","pid":0,"tid":0,"ts":54.870540,"dur":66.165694,"cat":"forward","name":"block_class_0.forward #0","args":{"segment":"s1","micro-batch":0}},
out| {"ph":"X","pid":0,"tid":0,"ts":121.036234,"dur":24.940295,"cat":"forward","name":"stem.forward #1","args":{"segment":"s0","micro-batch":1}},
out| {"ph":"X","pid":0,"tid":2,"ts":121.036234,"dur":5.348160,"cat":"transfer","name":"send v85 #0","args":{"bytes":4352,"with ranks":"1","communicator":"c0"}},
out| {"ph":"X","pid":0,"tid":0,"ts":145.976529,"dur":66.165694,"cat":"forward","name":"block_class_0.forward #1","args":{"segment":"s1","micro-batch":1}},
out| {"ph":"X","pid":0,"tid":0,"ts":212.142223,"dur":57.989378,"cat":"recompute","name":"block_class_0.recompute #0","args":{"segment":"s2","micro-batch":0}},
out| {"ph":"X","pid":0,"tid":2,"ts":212.142223,"dur":5.348160,"cat":"transfer","name":"send v85 #1","args":{"bytes":4352,"with ranks":"1","communicator":"c0"}},
out| {"ph":"X","pid":0,"tid":3,"ts":452.374580,"dur":5.348160,"cat":"transfer","name":"recv v188 #0","args":{"bytes":4352,"with ranks":"1","communicator":"c1"}},
out| {"ph":"X","pid":0,"tid":0,"ts":457.722740,"dur":145.110727,"cat":"backward","name":"block_class_0.backward #0","args":{"segment":"s3","micro-batch":0}},
out| {"ph":"X","pid":0,"tid":4,"ts":541.326213,"dur":5.000640,"cat":"broadcast","name":"broadcast loss_count","args":{"bytes":8,"with ranks":"1","communicator":"c2"}},
out| {"ph":"X","pid":0,"tid":0,"ts":602.833467,"dur":39.134661,"cat":"backward","name":"stem.backward #0","args":{"segment":"s4","micro-batch":0}},
out| {"ph":"X","pid":0,"tid":0,"ts":641.968128,"dur":57.139249,"cat":"recompute","name":"block_class_0.recompute #1","args":{"segment":"s2","micro-batch":1}},
out| {"ph":"X","pid":0,"tid":3,"ts":779.159654,"dur":5.348160,"cat":"transfer","name":"recv v188 #1","args":{"bytes":4352,"with ranks":"1","communicator":"c1"}},
out| {"ph":"X","pid":0,"tid":0,"ts":784.507814,"dur":144.315839,"cat":"backward","name":"block_class_0.backward #1","args":{"segment":"s3","micro-batch":1}},
out| {"ph":"X","pid":0,"tid":0,"ts":928.823653,"dur":39.134661,"cat":"backward","name":"stem.backward #1","args":{"segment":"s4","micro-batch":1}},
out| {"ph":"X","pid":0,"tid":0,"ts":967.958314,"dur":3.105476,"cat":"update","name":"update","args":{"segment":"s5"}},
out| {"ph":"X","pid":0,"tid":0,"ts":971.063790,"dur":3.000562,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":0,"tid":0,"ts":974.064352,"dur":3.000562,"cat":"update","name":"update","args":{"segment":"s7"}},
out| {"ph":"X","pid":0,"tid":0,"ts":977.064914,"dur":3.009351,"cat":"update","name":"update","args":{"segment":"s8"}},
out| {"ph":"X","pid":0,"tid":0,"ts":980.074265,"dur":3.000562,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":0,"tid":0,"ts":983.074827,"dur":3.000562,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":0,"tid":0,"ts":986.075389,"dur":3.017590,"cat":"update","name":"update","args":{"segment":"s9"}},
out| {"ph":"X","pid":0,"tid":0,"ts":989.092979,"dur":3.000562,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":0,"tid":0,"ts":992.093541,"dur":3.017590,"cat":"update","name":"update","args":{"segment":"s9"}},
out| {"ph":"X","pid":0,"tid":0,"ts":995.111131,"dur":3.000562,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":0,"tid":0,"ts":998.111693,"dur":3.017590,"cat":"update","name":"update","args":{"segment":"s9"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1001.129283,"dur":3.000562,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1004.129845,"dur":3.017590,"cat":"update","name":"update","args":{"segment":"s9"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1007.147435,"dur":3.000562,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1010.147997,"dur":3.000562,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1013.148559,"dur":3.000562,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1016.149121,"dur":3.035167,"cat":"update","name":"update","args":{"segment":"s10"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1019.184288,"dur":3.001111,"cat":"update","name":"update","args":{"segment":"s11"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1022.185399,"dur":3.035167,"cat":"update","name":"update","args":{"segment":"s12"}},
out| {"ph":"X","pid":0,"tid":0,"ts":1025.220566,"dur":3.000562,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":0.000000,"dur":0.000000,"cat":"update","name":"zero_sums","args":{"segment":"s18"}},
out| {"ph":"X","pid":1,"tid":1,"ts":0.000000,"dur":10.000254,"cat":"load","name":"load lr","args":{"bytes":4}},
out| {"ph":"X","pid":1,"tid":1,"ts":10.000254,"dur":10.000508,"cat":"load","name":"load step","args":{"bytes":8}},
out| {"ph":"X","pid":1,"tid":1,"ts":20.000762,"dur":10.001016,"cat":"load","name":"load labels #0","args":{"bytes":16}},
out| {"ph":"X","pid":1,"tid":1,"ts":30.001778,"dur":10.001016,"cat":"load","name":"load labels #1","args":{"bytes":16}},
out| {"ph":"X","pid":1,"tid":2,"ts":121.036234,"dur":5.348160,"cat":"transfer","name":"recv v85 #0","args":{"bytes":4352,"with ranks":"0","communicator":"c0"}},
out| {"ph":"X","pid":1,"tid":0,"ts":126.384394,"dur":67.055751,"cat":"forward","name":"block_class_0.forward #0","args":{"segment":"s1","micro-batch":0}},
out| {"ph":"X","pid":1,"tid":0,"ts":193.440145,"dur":21.488708,"cat":"forward","name":"head.forward #0","args":{"segment":"s14","micro-batch":0}},
out| {"ph":"X","pid":1,"tid":2,"ts":212.142223,"dur":5.348160,"cat":"transfer","name":"recv v85 #1","args":{"bytes":4352,"with ranks":"0","communicator":"c0"}},
out| {"ph":"X","pid":1,"tid":0,"ts":214.928853,"dur":33.546099,"cat":"backward","name":"head.backward #0","args":{"segment":"s15","micro-batch":0}},
out| {"ph":"X","pid":1,"tid":0,"ts":248.474952,"dur":57.887251,"cat":"recompute","name":"block_class_0.recompute #0","args":{"segment":"s2","micro-batch":0}},
out| {"ph":"X","pid":1,"tid":0,"ts":306.362203,"dur":146.012377,"cat":"backward","name":"block_class_0.backward #0","args":{"segment":"s3","micro-batch":0}},
out| {"ph":"X","pid":1,"tid":0,"ts":452.374580,"dur":67.905880,"cat":"forward","name":"block_class_0.forward #1","args":{"segment":"s1","micro-batch":1}},
out| {"ph":"X","pid":1,"tid":3,"ts":452.374580,"dur":5.348160,"cat":"transfer","name":"send v188 #0","args":{"bytes":4352,"with ranks":"0","communicator":"c1"}},
out| {"ph":"X","pid":1,"tid":0,"ts":520.280460,"dur":21.045753,"cat":"forward","name":"head.forward #1","args":{"segment":"s14","micro-batch":1}},
out| {"ph":"X","pid":1,"tid":0,"ts":541.326213,"dur":33.933813,"cat":"backward","name":"head.backward #1","args":{"segment":"s15","micro-batch":1}},
out| {"ph":"X","pid":1,"tid":4,"ts":541.326213,"dur":5.000640,"cat":"broadcast","name":"broadcast loss_count","args":{"bytes":8,"with ranks":"0","communicator":"c2"}},
out| {"ph":"X","pid":1,"tid":0,"ts":575.260026,"dur":57.887251,"cat":"recompute","name":"block_class_0.recompute #1","args":{"segment":"s2","micro-batch":1}},
out| {"ph":"X","pid":1,"tid":0,"ts":633.147277,"dur":146.012377,"cat":"backward","name":"block_class_0.backward #1","args":{"segment":"s3","micro-batch":1}},
out| {"ph":"X","pid":1,"tid":3,"ts":779.159654,"dur":5.348160,"cat":"transfer","name":"send v188 #1","args":{"bytes":4352,"with ranks":"0","communicator":"c1"}},
out| {"ph":"X","pid":1,"tid":0,"ts":784.507814,"dur":3.003579,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":787.511393,"dur":3.003579,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":790.514972,"dur":3.112079,"cat":"update","name":"update","args":{"segment":"s9"}},
out| {"ph":"X","pid":1,"tid":0,"ts":793.627051,"dur":3.003579,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":796.630630,"dur":3.112079,"cat":"update","name":"update","args":{"segment":"s9"}},
out| {"ph":"X","pid":1,"tid":0,"ts":799.742709,"dur":3.003579,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":802.746288,"dur":3.112079,"cat":"update","name":"update","args":{"segment":"s9"}},
out| {"ph":"X","pid":1,"tid":0,"ts":805.858367,"dur":3.003579,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":808.861946,"dur":3.112079,"cat":"update","name":"update","args":{"segment":"s9"}},
out| {"ph":"X","pid":1,"tid":0,"ts":811.974025,"dur":3.003579,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":814.977604,"dur":3.003579,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":817.981183,"dur":3.003579,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":820.984762,"dur":3.224079,"cat":"update","name":"update","args":{"segment":"s10"}},
out| {"ph":"X","pid":1,"tid":0,"ts":824.208841,"dur":3.007079,"cat":"update","name":"update","args":{"segment":"s11"}},
out| {"ph":"X","pid":1,"tid":0,"ts":827.215920,"dur":3.224079,"cat":"update","name":"update","args":{"segment":"s12"}},
out| {"ph":"X","pid":1,"tid":0,"ts":830.439999,"dur":3.003579,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":833.443578,"dur":3.003579,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":836.447157,"dur":3.003579,"cat":"update","name":"update","args":{"segment":"s6"}},
out| {"ph":"X","pid":1,"tid":0,"ts":839.450736,"dur":3.035079,"cat":"update","name":"update","args":{"segment":"s16"}},
out| {"ph":"X","pid":1,"tid":0,"ts":842.485815,"dur":3.001172,"cat":"update","name":"update","args":{"segment":"s17"}},
out| {"ph":"s","id":0,"pid":0,"tid":2,"ts":121.036234,"cat":"flow","name":"transfer"},
out| {"ph":"f","bp":"e","id":0,"pid":1,"tid":2,"ts":121.036234,"cat":"flow","name":"transfer"},
out| {"ph":"s","id":1,"pid":0,"tid":2,"ts":212.142223,"cat":"flow","name":"transfer"},
out| {"ph":"f","bp":"e","id":1,"pid":1,"tid":2,"ts":212.142223,"cat":"flow","name":"transfer"},
out| {"ph":"s","id":2,"pid":1,"tid":3,"ts":452.374580,"cat":"flow","name":"transfer"},
out| {"ph":"f","bp":"e","id":2,"pid":0,"tid":3,"ts":452.374580,"cat":"flow","name":"transfer"},
out| {"ph":"s","id":3,"pid":1,"tid":4,"ts":541.326213,"cat":"flow","name":"broadcast"},
out| {"ph":"f","bp":"e","id":3,"pid":0,"tid":4,"ts":541.326213,"cat":"flow","name":"broadcast"},
out| {"ph":"s","id":4,"pid":1,"tid":3,"ts":779.159654,"cat":"flow","name":"transfer"},
out| {"ph":"f","bp":"e","id":4,"pid":0,"tid":3,"ts":779.159654,"cat":"flow","name":"transfer"}
out| ]}
# Other links: times of this plan on that cluster.
$ copy $TESTDATA/clusters/mixed.toml slow.toml
exit 0
$ replace slow.toml "bandwidth_gbps = 100" "bandwidth_gbps = 1"
exit 0
$ trainc simulate out --cluster slow.toml
exit 0
out| vit on mixed: 2 ranks replayed with modelled times
out|   step 1.11 ms, bubble 34.1 %
out|   slowest: rank 0, which computes for 735 us (66.4 % of the step)
out|
out| Time of each rank; transfers are exposed where it does not compute meanwhile
out|   rank  GPU            stage    busy    idle (bubble)  exposed transfers  recompute  exposed recompute
out|      0  A100-SXM-80GB      0  735 us  373 us (33.6 %)             110 us     114 us            0.00 ns
out|      1  T4                 1  725 us  383 us (34.6 %)             120 us     116 us             116 us
out|
out| Critical path: what the step would be shorter without
out|   compute 882 us (79.6 %), recompute 116 us (10.4 %), transfer 79.6 us (7.2 %), load 30.8 us (2.8 %)
out|   part                               times     time   share
out|   block_class_0.backward on rank 1       2   292 us  26.4 %
out|   block_class_0.backward on rank 0       1   144 us  13.0 %
out|   block_class_0.forward on rank 1        2   142 us  12.8 %
out|   block_class_0.recompute on rank 1      2   116 us  10.4 %
out|   head.backward on rank 1                2  67.5 us   6.1 %
out|   block_class_0.forward on rank 0        1  66.2 us   6.0 %
out|   all others                            29   280 us  25.3 %
err| note[N1014]: the plan was made for another description of a cluster, named `mixed`: the times are those of this plan on `mixed`
err|   = help: compile the model again for the plan that suits this cluster best
err|
# Another cluster: its groups have other names.
$ trainc simulate out --cluster $TESTDATA/cli/one-t4.toml
exit 1
err| error[E1015]: cannot replay `out/plan.json` on the cluster `one`: the cluster has no group `a100`
err|   = help: give the cluster that the plan was made for, or one with groups of the same names; `trainc verify` says whether the plan itself is sound
err|
