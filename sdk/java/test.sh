#!/bin/sh
# Builds the programs into the given or a temporary folder, without network, and runs the conformance checks.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$(mktemp -d)}
[ $# -gt 0 ] || trap 'rm -rf "$out"' EXIT
javac --release 11 -encoding UTF-8 -Xlint:all -Werror -d "$out" "$here"/*.java
python3 "${SCRUPLE_CONFORMANCE:-$here/../conformance}/run.py" -- java -cp "$out" Conformance
# A compiler that sees the loops late, as on a busy machine, has seen little besides one body.
late="-XX:Tier3InvocationThreshold=20000 -XX:Tier3MinInvocationThreshold=20000 -XX:Tier3CompileThreshold=100000 -XX:Tier3BackEdgeThreshold=200000"
python3 "${SCRUPLE_CONFORMANCE:-$here/../conformance}/run.py" --only grows -- java $late -cp "$out" Conformance
