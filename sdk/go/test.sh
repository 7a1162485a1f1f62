#!/bin/sh
# Builds the programs into the given or a temporary folder, without network, and runs the conformance checks.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$(mktemp -d)}
mkdir -p "$out"
[ $# -gt 0 ] || trap 'rm -rf "$out"' EXIT
export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local
cd "$here"
unformatted=$(gofmt -l .)
[ -z "$unformatted" ] || { echo "not formatted: $unformatted" >&2; exit 1; }
go vet ./...
go build -o "$out/example" ./example
go build -o "$out/conformance" ./conformance
python3 "${SCRUPLE_CONFORMANCE:-$here/../conformance}/run.py" -- "$out/conformance"
go build -o "$out/pairs" ./pairs
python3 disassembly.py "$out/pairs"
