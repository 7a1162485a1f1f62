#!/bin/sh
# Runs all tests: the crates, the SDKs in their languages, the examples. Prints the number of skipped tests at the end.
set -eu
cd "$(dirname "$0")/.."
PATH=$PATH:$PWD/target/nginx/usr/sbin
export PATH
log=$(mktemp)
tests=$(mktemp)
trap 'rm -f "$log" "$tests" "$tests.code" "$tests.again"' EXIT
status=0
step() {
    echo "== $*"
    # The pipe must not hide the status of the step.
    { "$@" 2>&1 || echo "FAILED: $*"; } | tee -a "$log"
}

# A test on the real machine may fail under load. If at most five tests fail, each is run once more, alone; those that
# pass then are printed as flaky and counted. Many tests wait for programs and servers, so there are two for each core.
cargo_tests() {
    { cargo test --workspace --no-fail-fast -- --nocapture --test-threads=$((2 * $(nproc))) 2>&1; echo $? >"$tests.code"; } | tee "$tests"
    [ "$(cat "$tests.code")" != 0 ] || return 0
    # The lists at the end of each program: the lines of single tests may be mixed with what other tests print.
    names=$(awk '/^failures:$/ { list = 1; next } /^test result:/ { list = 0 } list && /^    [^ ]+$/ { print $1 }' "$tests")
    counted=$(awk '/^test result:/ { for (i = 2; i <= NF; i++) if ($i ~ /^failed/) n += $(i - 1) } END { print n + 0 }' "$tests")
    # A failure without a test's name, such as a compiler error, is not retried.
    [ -n "$names" ] && [ "$(echo "$names" | wc -l)" = "$counted" ] && [ "$counted" -le 5 ] || return 1
    for name in $names; do
        echo "== again, alone: $name"
        cargo test --workspace -- --exact "$name" --nocapture >"$tests.again" 2>&1 || { cat "$tests.again"; return 1; }
        grep '^test result: ok\. 1 passed' "$tests.again" || return 1
        echo "flaky: $name"
    done
}

# Each SDK on a core of its own; what one prints stays together.
sdk_tests() {
    printf '%s\n' haskell rust c go java guile js python | xargs -P "$(nproc)" -I NAME sh -c '
        said=$(sh "sdk/NAME/test.sh" 2>&1) && code=0 || code=$?
        echo "== sdk/NAME/test.sh"
        echo "$said"
        [ $code = 0 ] || echo "FAILED: sdk/NAME/test.sh"'
}

if cargo fmt --version >/dev/null 2>&1; then step cargo fmt --all --check; fi
if cargo clippy --version >/dev/null 2>&1; then step cargo clippy --workspace --quiet -- -D warnings; fi
step cargo_tests
step sdk_tests
# The accuracy of each runtime's figures on this machine, as in docs/runtimes.md. The tests have built it.
step target/debug/examples/runtimes
grep -q '^FAILED: ' "$log" && status=1
# A test that runs alone prints its reason after its own name.
echo "skips: $(grep -c 'skipped: ' "$log" || true)"
grep -o 'skipped: .*' "$log" | sort | uniq -c || true
echo "flaky: $(grep -c '^flaky: ' "$log" || true)"
grep '^FAILED: ' "$log" || true
exit $status
