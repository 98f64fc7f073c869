#!/bin/sh
# Compares the plans of your models with the ones kept under version control, and fails where one got worse than allowed.
# `check.sh --accept` keeps the new ones. TRAINC names the program, where it is not on the path.
set -eu
trainc=${TRAINC:-trainc}
testdata=${TESTDATA:-../../testdata}
kept=${KEPT:-plans}
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
status=0

check() {
    name=$1
    shift
    "$trainc" compile "$@" -o "$new/$name" --quiet
    if [ "${accept:-}" = --accept ] || [ ! -e "$kept/$name.json" ]; then
        mkdir -p "$kept"
        cp "$new/$name/summary.json" "$kept/$name.json"
        echo "$name: kept"
        return
    fi
    echo "$name:"
    "$trainc" diff "$kept/$name.json" "$new/$name/summary.json" --fail-if 'peak>+2%,step>+5%,gpus>+0' || status=1
}

accept=${1:-}
check gpt2 "$testdata/models/gpt2.onnx" --cluster "$testdata/clusters/mixed.toml" --bind batch=2,seq=64 \
    --micro-batches 4 ${GPT2_OPTIONS:-}
check vit "$testdata/models/vit.onnx" --cluster "$testdata/clusters/mixed.toml" --bind '*=4' --micro-batches 2
exit $status
