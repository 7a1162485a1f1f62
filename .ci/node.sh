#!/bin/sh
# Installs the locked Node packages of a folder into another: `node.sh FOLDER WHERE`. Does nothing, without network
# access, if they are installed already.
set -eu
from=$1 where=$2
if cmp -s "$from/package-lock.json" "$where/installed.json"; then
    echo "packages: those of $from are there"
    exit 0
fi
echo "packages: installing those of $from into $where"
mkdir -p "$where"
cp "$from/package.json" "$from/package-lock.json" "$where/"
(cd "$where" && npm ci --ignore-scripts --no-audit --no-fund --silent) || {
    echo "packages: cannot install those of $from: tests that need them will be skipped" >&2
    exit 0
}
cp "$where/package-lock.json" "$where/installed.json"
