#!/bin/sh
# Builds the programs into the given or a temporary folder, without network, and runs the conformance checks.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$(mktemp -d)}
[ $# -gt 0 ] || trap 'rm -rf "$out"' EXIT
javac --release 11 -encoding UTF-8 -Xlint:all -Werror -d "$out" "$here"/*.java
python3 "${SCRUPLE_CONFORMANCE:-$here/../conformance}/run.py" -- java -cp "$out" Conformance
