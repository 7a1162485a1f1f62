#!/bin/sh
# Compiles the programs into the given or a temporary folder, without network, and runs the conformance checks.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$(mktemp -d)}
[ $# -gt 0 ] || trap 'rm -rf "$out"' EXIT
# Guile compiles what it runs into this cache; warnings and notes appear here, not during the checks.
export XDG_CACHE_HOME="$out" GUILE_AUTO_COMPILE=1
guile=$(command -v guile)
for program in example conformance; do
    PATH= "$guile" -L "$here" "$here/$program.scm" && code=0 || code=$?
    [ "$code" -eq 2 ] || { echo "$program ended with $code" >&2; exit 1; }
done
python3 "${SCRUPLE_CONFORMANCE:-$here/../conformance}/run.py" -- "$guile" -L "$here" "$here/conformance.scm"
