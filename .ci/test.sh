#!/bin/sh
# Everything that is tested: the crates, the SDKs in their languages, the examples. Prints the count of skips at the end.
set -eu
cd "$(dirname "$0")/.."
PATH=$PATH:$PWD/target/nginx/usr/sbin
export PATH
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
step() {
    echo "== $*"
    # The pipe must not hide the status of the step.
    { "$@" 2>&1 || echo "FAILED: $*"; } | tee -a "$log"
}

if cargo fmt --version >/dev/null 2>&1; then step cargo fmt --all --check; fi
if cargo clippy --version >/dev/null 2>&1; then step cargo clippy --workspace --quiet -- -D warnings; fi
step cargo test --workspace --no-fail-fast -- --nocapture
for sdk in c rust python go js java guile haskell; do
    step sh "sdk/$sdk/test.sh"
done
# What each runtime's figures are worth, on this machine, as docs/runtimes.md has it.
step cargo run --quiet -p scruple-measure --example runtimes
grep -q '^FAILED: ' "$log" && status=1
echo "skips: $(grep -c '^skipped: ' "$log" || true)"
grep '^skipped: ' "$log" | sort | uniq -c || true
grep '^FAILED: ' "$log" || true
exit $status
