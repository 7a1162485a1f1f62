#!/bin/sh
# Runs the studies that need only Debian packages, and says how long that took.
set -u
cd "$(dirname "$0")/.."
PATH=$PATH:$PWD/target/nginx/usr/sbin
export PATH
began=$(date +%s)
studies/run --debian --report "${1:-docs/gallery}" --scruple "${CARGO_TARGET_DIR:-target}/release/scruple"
code=$?
echo "studies: $(($(date +%s) - began)) s of wall time"
exit $code
