#!/bin/sh
# Prints a file, or LIMIT lines of it from line OFFSET on.
# Usage: read_file.sh --path=PATH [--offset=OFFSET] [--limit=LIMIT]

offset=1 limit=
for argument; do
  case $argument in
    --path=*) path=${argument#*=} ;;
    --offset=*) offset=${argument#*=} ;;
    --limit=*) limit=${argument#*=} ;;
  esac
done

fail() {
  printf '%s\n' "$1" >&2
  exit 1
}

[ -e "$path" ] || fail "$path does not exist"
[ -f "$path" ] || fail "$path is not a regular file"

if [ -n "$limit" ]; then
  last=$((offset + limit - 1))
  exec sed -n "$offset,${last}p;${last}q" <"$path"
fi
exec tail -n "+$offset" <"$path"
