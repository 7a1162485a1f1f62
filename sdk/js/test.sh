#!/bin/sh
# Runs the conformance checks on the SDK. Builds and downloads nothing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
for file in "$here"/*.mjs; do node --check "$file"; done
python3 "${SCRUPLE_CONFORMANCE:-$here/../conformance}/run.py" -- node "$here/conformance.mjs"
node "$here/elements.mjs"
node "$here/promises.mjs"
node "$here/external.mjs"
