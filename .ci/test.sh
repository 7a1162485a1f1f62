#!/bin/sh
# Runs all tests: the crates, the SDKs in their languages, the examples. Prints the number of skipped tests at the end.
# With the name of a step, runs only that: format, build, whole (tests of the whole program), waiting (tests of the crates
# that mostly wait), parts (all other tests of the crates), accuracy, or an SDK such as go.
set -eu
cd "$(dirname "$0")/.."
PATH=$PATH:$PWD/target/nginx/usr/sbin
# What is built once need not be built incrementally, which takes a quarter longer.
CARGO_INCREMENTAL=0
export PATH CARGO_INCREMENTAL

# Tests create and remove many files, which is cheaper in memory than on a disk. The folder has to have room for them and
# let programs run.
if [ -z "${TMPDIR:-}" ] && probe=$(mktemp -p /dev/shm 2>/dev/null); then
    printf '#!/bin/sh\n' >"$probe"
    chmod +x "$probe"
    room=$(df -Pk /dev/shm | awk 'END { print $4 }')
    if "$probe" 2>/dev/null && [ "$room" -gt 4000000 ]; then export TMPDIR=/dev/shm; fi
    rm "$probe"
fi

# The tests start many programs in Python. A `python3` that starts a version manager first takes ten times as long.
pythons=$PWD/target/python
mkdir -p "$pythons"
[ ! -x /usr/bin/python3 ] || ln -sf /usr/bin/python3 "$pythons/python3"

# Starts the program of a test. Cargo lets it, and all that it starts, search dozens of folders for each library.
# shellcheck disable=SC2016 # The variables belong to the shell that cargo starts.
start='unset LD_LIBRARY_PATH; exec "$0" "$@"'

# The tests of all crates. Clippy's driver compiles the crates where it is installed, so that a lint ends the build. Rust may
# have been installed without it.
lints=
if clippy-driver --version >/dev/null 2>&1; then
    lints='--config build.rustc-workspace-wrapper=".ci/rustc.sh"'
fi
cargo_test() {
    # shellcheck disable=SC2086 # Two words, or none.
    PATH=$pythons:$PATH CLIPPY_ARGS=-Dwarnings cargo test --workspace $lints --config "target.'cfg(unix)'.runner=['sh', '-c', '''$start''']" "$@"
}

# A test on the real machine may fail under load. If at most five tests fail, each is run once more, alone; those that
# pass then are printed as flaky and counted, the others with their output and in a list at the end. The arguments select the
# tests.
cargo_tests() {
    tests=$(mktemp)
    trap 'rm -f "$tests" "$tests.code" "$tests.again" "$tests.failed"' EXIT
    { cargo_test --no-fail-fast "$@" 2>&1; echo $? >"$tests.code"; } | tee "$tests"
    [ "$(cat "$tests.code")" != 0 ] || return 0
    # The lists at the end of each program: the lines of single tests may be mixed with what other tests print.
    names=$(awk '/^failures:$/ { list = 1; next } /^test result:/ { list = 0 } list && /^    [^ ]+$/ { print $1 }' "$tests")
    counted=$(awk '/^test result:/ { for (i = 2; i <= NF; i++) if ($i ~ /^failed/) n += $(i - 1) } END { print n + 0 }' "$tests")
    # A failure without a test's name, such as a compiler error, is not retried.
    [ -n "$names" ] && [ "$(echo "$names" | wc -l)" = "$counted" ] && [ "$counted" -le 5 ] || return 1
    : >"$tests.failed"
    for name in $names; do
        echo "== again, alone: $name"
        if cargo_test -- --exact "$name" --nocapture >"$tests.again" 2>&1 &&
            grep '^test result: ok\. 1 passed' "$tests.again"; then
            echo "flaky: $name"
        else
            cat "$tests.again"
            echo "failed twice: $name" >>"$tests.failed"
        fi
    done
    cat "$tests.failed"
    [ ! -s "$tests.failed" ]
}

if [ $# -gt 0 ]; then
    case $1 in
    format) if cargo fmt --version >/dev/null 2>&1; then cargo fmt --all --check; fi ;;
    build) cargo_test --no-run ;;
    # Many of these tests wait for programs and servers, so there are three for each core.
    whole) cargo_tests --test it -- --nocapture --test-threads=$((3 * $(nproc))) || exit 1 ;;
    waiting) cargo_tests --test load --test runtimes -- --nocapture || exit 1 ;;
    # Selected by exclusion, so that no test can be forgotten.
    parts)
        # shellcheck disable=SC2016 # As above.
        start='case $0 in */it-* | */load-* | */runtimes-*) ;; *) unset LD_LIBRARY_PATH; exec "$0" "$@" ;; esac'
        cargo_tests -- --nocapture || exit 1
        ;;
    # The accuracy of each runtime's figures on this machine, as in docs/runtimes.md.
    accuracy) target/debug/examples/runtimes ;;
    *) sh "sdk/$1/test.sh" ;;
    esac
    exit
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
trap 'exit 130' INT TERM
export out
# Runs steps, the given number at a time. Lines of two steps must not be mixed: only the first is shown while it runs, the
# others when all have ended.
steps() {
    at_once=$1
    shift
    shown=$1
    printf '%s\n' "$@" | xargs -P "$at_once" -I STEP sh -c '
        show() { if [ STEP = "$0" ]; then tee "$out/STEP"; else cat >"$out/STEP"; fi; }
        start=$(date +%s)
        {
            sh .ci/test.sh STEP 2>&1 || echo "FAILED: STEP" >>"$out/failed"
            times >"$out/times.STEP"
            echo "STEP took $(($(date +%s) - start)) s; user and system time: $(tail -n 1 "$out/times.STEP")"
        } | show' "$shown" ||
        echo "FAILED: a step was killed" >>"$out/failed"
    shift
    for name in "$@"; do
        echo "== $name"
        cat "$out/$name"
    done
}
# The SDKs need nothing that the build makes. They leave a core idle where they wait, which the build then uses; the tests
# of the crates fill both cores to their end.
echo "== build and SDKs"
steps "$(nproc)" build format haskell rust c go java guile js python
echo "== tests"
steps $(($(nproc) + 1)) whole parts waiting accuracy
echo "skips: $(cat "$out"/* | grep -c 'skipped: ' || true)"
# A test that runs alone prints its reason after its own name.
grep -ho 'skipped: .*' "$out"/* | sort | uniq -c || true
# What an SDK does on the real machine may fail beside the tests, so it is run once more, alone.
if [ -e "$out/failed" ]; then
    mv "$out/failed" "$out/first"
    while read -r line; do
        step=${line#FAILED: }
        case $step in
        haskell | rust | c | go | java | guile | js | python | accuracy)
            echo "== again, alone: $step"
            sh .ci/test.sh "$step" >"$out/again" 2>&1 && echo "flaky: $step" | tee -a "$out/flaky" && continue
            cat "$out/again"
            ;;
        esac
        echo "$line" >>"$out/failed"
    done <"$out/first"
fi
echo "flaky: $(cat "$out"/* | grep -c '^flaky: ' || true)"
[ -e "$out/failed" ] || exit 0
cat "$out/failed"
exit 1
