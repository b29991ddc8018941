#!/bin/sh
# Judges a sharded data set with GNU parallel and adds the verdicts up:  parallel.sh TOOLS OUT SHARD...
#
# A shard whose summary is there is done: run the same command again after an interruption, and only the others are
# judged. With --sshlogin (and shards and tools on a shared disk) the same line uses other machines.
set -eu
tools=$1 out=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"

parallel "[ -s $out/{/}.summary ] || $here/shard.sh $tools {} $out/{/}.summary > $out/{/}.verdicts" ::: "$@"

cat "$out"/*.summary | awk -F '[:,]' '
    { valid += $2; invalid += $4; unreadable += $6 }
    END { printf "{\"valid\":%d,\"invalid\":%d,\"unreadable\":%d}\n", valid, invalid, unreadable }'
