#!/bin/sh
# Works in steps and prints one update, a line of JSON, after each.
# Usage: long_task.sh STEPS [MILLISECONDS_PER_STEP]

steps=$1
milliseconds=${2:-100}
pause=$(printf '%d.%03d' $((milliseconds / 1000)) $((milliseconds % 1000)))
step=0
unit=steps
[ "$steps" -eq 1 ] && unit=step

# A stop ends it: what was done so far is the result.
stopped() {
  printf '{"content":[{"type":"text","text":"Stopped after %d of %d %s"}],"isError":true}\n' "$step" "$steps" "$unit"
  exit
}
trap stopped TERM

while [ "$step" -lt "$steps" ]; do
  sleep "$pause"
  step=$((step + 1))
  printf '{"type":"update","content":[{"type":"text","text":"Step %d of %d"}],"details":{"progress":%d,"total":%d}}\n' \
    "$step" "$steps" "$step" "$steps"
done
printf '{"content":[{"type":"text","text":"Finished %d %s"}],"details":{"progress":%d,"total":%d}}\n' \
  "$steps" "$unit" "$steps" "$steps"
