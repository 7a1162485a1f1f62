#!/bin/sh
# The cost of versions of Scruple: a small run, and the report of a stored run, over a range of its own commits.
# Without a range: the last release and everything since. Needs `scruple` on the search path; builds each version.
#   sh bench/itself/run.sh [RANGE [OPTION OF scruple history…]]
set -eu
cd "$(dirname "$0")"
root=$(git rev-parse --show-toplevel)
release=$(git describe --tags --abbrev=0 2>/dev/null || echo HEAD~3)
range=${1:-$release..HEAD}
[ $# -eq 0 ] || shift
mkdir -p target
rm -f target/itself.db
scruple run --store target/itself.db --label itself --time-only -r 200 true true
exec scruple history --repo "$root" --store target/history.db "$@" "$range"
