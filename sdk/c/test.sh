#!/bin/sh
# Compiles the header in every supported language version into the given or a temporary folder, and runs the checks.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$(mktemp -d)}
[ $# -gt 0 ] || trap 'rm -rf "$out"' EXIT
make -C "$here" check BUILD="$out"
