#!/bin/sh
# Judges one shard of recorded calls:  shard.sh TOOLS SHARD [SUMMARY]
#
# Each verdict line begins with the shard's name, its line and its call: together they are an id that stays the same
# however often and wherever the shard is judged. Invalid calls are a finding (exit 1, as unreadable lines are exit 2),
# no failure of the work; what failed is a shard without a summary.
set -eu
tools=$1 shard=$2
if [ $# -eq 3 ]; then
    summary=$3
else
    scratch=$(mktemp -d)
    trap 'rm -r "$scratch"' EXIT
    summary=$scratch/summary
fi
"${PITOOL:-pitool}" validate --tools "$tools" --report jsonl --source "$(basename "$shard")" \
    --summary "$summary" < "$shard" || [ -s "$summary" ]
