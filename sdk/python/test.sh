#!/bin/sh
# Runs the conformance checks and, if pytest is installed, the tests, which also plant mistakes that the runner must
# find.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python3 "$here/../conformance/run.py" -- python3 "$here/conformance.py"
if command -v pypy3 >/dev/null; then
    python3 "$here/../conformance/run.py" -- pypy3 "$here/conformance.py"
else
    echo "pypy3 is not installed: not tested with it"
fi
if python3 -c "import pytest" 2>/dev/null; then
    python3 -m pytest -q -p no:cacheprovider "$here/tests"
else
    echo "pytest is not installed: its tests are left out"
fi
