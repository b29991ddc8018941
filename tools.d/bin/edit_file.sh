#!/bin/sh
# Replaces OLD, which must stand exactly once in the file PATH, by NEW. The file changes at once or not at all.
# Usage: edit_file.sh --path=PATH --old=OLD --new=NEW

for argument; do
  case $argument in
    --path=*) path=${argument#*=} ;;
    --old=*) old=${argument#*=} ;;
    --new=*) new=${argument#*=} ;;
  esac
done

fail() {
  printf '%s\n' "$1" >&2
  exit 1
}

[ -e "$path" ] || fail "$path does not exist"
[ -f "$path" ] || fail "$path is not a regular file"

# The file itself is replaced, not a link to it.
file=$path
if [ -L "$path" ]; then
  file=$(readlink -f -- "$path") || fail "$path is a link that leads nowhere"
fi
case $file in /*) ;; *) file=./$file ;; esac

edited=$file.$$.edited
trap 'rm -f "$edited"' EXIT
trap 'exit 143' HUP INT TERM
# The copy brings the mode and, where that is allowed, the owner.
cp -p "$file" "$edited" || exit 1

# awk drops the end of the last line, so a sentinel stands behind it. A control character as record separator lets
# the usual file come as one record.
{ cat "$file" && printf x; } | LC_ALL=C OLD=$old NEW=$new awk '
  BEGIN { RS = "\001"; old = ENVIRON["OLD"] }
  { text = NR == 1 ? $0 : text RS $0 }
  END {
    text = substr(text, 1, length(text) - 1)
    at = index(text, old)
    if (!at) exit 3
    if (index(substr(text, at + 1), old)) exit 4
    printf "%s", substr(text, 1, at - 1)
    printf "%s", ENVIRON["NEW"]
    printf "%s", substr(text, at + length(old))
  }' >"$edited"
case $? in
  0) ;;
  3) fail "oldText does not stand in $path" ;;
  4) fail "oldText stands more than once in $path: give more of the text around it" ;;
  *) fail "$path could not be edited" ;;
esac

# Whatever awk could not carry, a NUL for example, must not be lost silently.
size() { LC_ALL=C wc -c | tr -d ' '; }
expected=$(($(size <"$file") - $(printf %s "$old" | size) + $(printf %s "$new" | size)))
[ "$(size <"$edited")" -eq "$expected" ] || fail "$path holds bytes that are no text"

mv -f "$edited" "$file" || exit 1
printf 'Replaced one text in %s\n' "$path"
