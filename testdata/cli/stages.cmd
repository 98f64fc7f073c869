# The best order of work for unequal stages, and what is wrong with descriptions of them.
$ trainc simulate --stages $TESTDATA/cli/stages.toml
exit 0
out| 4 stages on 4 ranks, 5 micro-batches; backwards may be split
out|
out|   schedule       step
out|   gpipe             -  does not fit
out|   1f1b            393
out|   interleaved     393
out|   breadth-first     -  does not fit
out|   zb-h1             -  does not fit
out|   found           325  by a greedy rule
out|
out|   no order takes less
out|
out|   rank  busy          idle  keeps  room
out|      0   150  175 (53.8 %)    360   400
out|      1   180  145 (44.6 %)    320   400
out|      2   205  120 (36.9 %)    290   300
out|      3   270   55 (16.9 %)    190   200
$ trainc simulate --stages $TESTDATA/cli/stages.toml --emit torch-schedule
exit 0
out| 0F0,0F1,0F2,0F3,0I0,0W0,0F4,0I1,0W1,0I2,0W2,0I3,0W3,0I4,0W4
out| 1F0,1F1,1F2,1F3,1I0,1W0,1I1,1F4,1W1,1I2,1W2,1I3,1W3,1I4,1W4
out| 2F0,2F1,2F2,2I0,2F3,2I1,2W0,2W1,2I2,2F4,2W2,2I3,2W3,2I4,2W4
out| 3F0,3I0,3F1,3I1,3F2,3I2,3W0,3F3,3I3,3W1,3F4,3I4,3W2,3W3,3W4
$ trainc simulate --stages $TESTDATA/cli/stages.toml --message-format json
exit 0
out| {"fixed":[{"schedule":"gpipe","step":null},{"schedule":"1f1b","step":393},{"schedule":"interleaved","step":393},{"schedule":"breadth-first","step":null},{"schedule":"zb-h1","step":null}],"lower_bound":325,"ranks":[{"busy":150,"idle":175,"keeps":360,"order":["0F0","0F1","0F2","0F3","0I0","0W0","0F4","0I1","0W1","0I2","0W2","0I3","0W3","0I4","0W4"]},{"busy":180,"idle":145,"keeps":320,"order":["1F0","1F1","1F2","1F3","1I0","1W0","1I1","1F4","1W1","1I2","1W2","1I3","1W3","1I4","1W4"]},{"busy":205,"idle":120,"keeps":290,"order":["2F0","2F1","2F2","2I0","2F3","2I1","2W0","2W1","2I2","2F4","2W2","2I3","2W3","2I4","2W4"]},{"busy":270,"idle":55,"keeps":190,"order":["3F0","3I0","3F1","3I1","3F2","3I2","3W0","3F3","3I3","3W1","3F4","3I4","3W2","3W3","3W4"]}],"step":325}
$ trainc simulate --stages $TESTDATA/cli/one-t4.toml
exit 1
err| error[E1019]: `$TESTDATA/cli/one-t4.toml` does not describe stages
err|  --> $TESTDATA/cli/one-t4.toml:3:3
err|   |
err| 3 | [[group]]
err|   |   ^^^^^ unknown field `group`, expected one of `micro-batches`, `room`, `stage`
err|
$ trainc simulate --stages nowhere.toml
exit 1
err| error[E1001]: cannot read the stages `nowhere.toml`: No such file or directory (os error 2)
err|
$ trainc simulate --stages $TESTDATA/cli/stages.toml --uniform 4,1,8
exit 2
err| error: the argument '--stages <FILE>' cannot be used with '--uniform <RANKS,LOOPS,MICRO_BATCHES>'
err|
err| Usage: trainc simulate --stages <FILE> [DIR]
err|
err| For more information, try '--help'.
# Times whose sum is beyond what is counted.
$ trainc simulate --stages $TESTDATA/cli/stages-long.toml
exit 1
err| error[E1019]: the times of all stages and micro-batches of `$TESTDATA/cli/stages-long.toml` are 36000000000000000000, at most 1152921504606846976
err|
# An option that means nothing here.
$ trainc simulate --stages $TESTDATA/cli/stages.toml --schedule gpipe
exit 2
err| error: the argument '--stages <FILE>' cannot be used with '--schedule <KIND>'
err|
err| Usage: trainc simulate --stages <FILE> [DIR]
err|
err| For more information, try '--help'.
