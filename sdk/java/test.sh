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
# A body whose work continues in other threads is refused unless it is awaited.
printf 'block 0:c:2\nblock 1:c:2\nblock 2:c:2\nblock 3:c:2\nblock 4:c:2 4:t:2\nbye\n' >"$out/requests"
SCRUPLE_BENCH_IN="$out/requests" SCRUPLE_BENCH_OUT="$out/replies" java -cp "$out" UnawaitedStage
if [ "$(grep -c 'declare it with async' "$out/replies")" != 2 ] || [ "$(grep -c '"block":' "$out/replies")" != 3 ]; then
    cat "$out/replies"
    echo "functions that return a stage: the first two of five are to be refused"
    exit 1
fi
